// Quotas: the limits on what may grow in the manager, and what each user has used of them.
//
// Each file is charged to its owner: one name per link, the bytes kept inline, and the bytes of its
// attributes. Whenever a file changes, its charge is replaced by the file's current size, so no
// caller counts up or down.
#ifndef MOSA_MANAGER_CORE_QUOTAS_H_
#define MOSA_MANAGER_CORE_QUOTAS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/model/messages.h"

namespace mosa::manager {

inline constexpr uint64_t kNoLimit = UINT64_MAX;

// The charge of one file. Stored with each file, so it is small.
struct Charge {
  uint32_t uid = 0;
  uint32_t names = 0;
  uint32_t inline_bytes = 0;
  uint32_t attribute_bytes = 0;
  bool operator==(const Charge&) const = default;
};

// Totals, or limits, for one owner or for all owners.
struct Amounts {
  uint64_t names = 0;
  uint64_t inline_bytes = 0;
  uint64_t attribute_bytes = 0;
  bool operator==(const Amounts&) const = default;
};

struct QuotaOptions {
  Amounts all = {kNoLimit, kNoLimit, kNoLimit};
  // For each user except root, to whom only `all` applies.
  Amounts per_user = {kNoLimit, kNoLimit, kNoLimit};
};

// Not thread-safe.
class Quotas {
 public:
  explicit Quotas(const QuotaOptions& options) : options_(options) {}

  // Replaces a file's charge by `now`; Charge{} if the file is gone.
  void Recharge(Charge& charged, const Charge& now);

  // Refuses all growth, whatever the counts, until AllowGrowth: the data directory is nearly full.
  // `why` states it with numbers and what to do.
  void RefuseGrowth(std::string why) { refusal_ = std::move(why); }
  void AllowGrowth() { refusal_.reset(); }
  bool is_refused() const { return refusal_.has_value(); }

  // Returns why `uid` may not use `growth` more: kNoSpace if the store is full, kQuota if the user
  // is at a limit.
  std::optional<Failure> Check(uint32_t uid, const Amounts& growth) const;
  // Returns true if the user or the store has less than a sixteenth of a limit left. Then promises
  // made ahead of the count, such as names that a mount may give by itself, may no longer fit.
  bool IsNearLimit(uint32_t uid) const;

  const QuotaOptions& options() const { return options_; }
  const Amounts& all() const { return all_; }
  Amounts Of(uint32_t uid) const;
  // Only users with charges.
  const std::map<uint32_t, Amounts>& users() const { return users_; }

 private:
  const QuotaOptions options_;
  Amounts all_;
  std::map<uint32_t, Amounts> users_;
  std::optional<std::string> refusal_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_QUOTAS_H_
