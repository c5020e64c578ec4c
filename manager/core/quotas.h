// What may grow in the manager, how far it has grown, and who made it grow.
//
// Each file is charged to its owner: one name for each of its links, the bytes that its record
// keeps inline, and the bytes of its attributes. A charge is replaced whenever the file has
// changed, by what the file takes then; nobody counts up or down by hand.
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

// What one file takes. Kept with the file, so it is small.
struct Charge {
  uint32_t uid = 0;
  uint32_t names = 0;
  uint32_t inline_bytes = 0;
  uint32_t attribute_bytes = 0;
  bool operator==(const Charge&) const = default;
};

// What all files of one owner, or of all owners, take; or how much they may.
struct Amounts {
  uint64_t names = 0;
  uint64_t inline_bytes = 0;
  uint64_t attribute_bytes = 0;
  bool operator==(const Amounts&) const = default;
};

struct QuotaOptions {
  Amounts all = {kNoLimit, kNoLimit, kNoLimit};
  // For each user but root, to whom only `all` applies.
  Amounts per_user = {kNoLimit, kNoLimit, kNoLimit};
};

// One owner, one thread.
class Quotas {
 public:
  explicit Quotas(const QuotaOptions& options) : options_(options) {}

  // The file that is charged `charged` takes `now` instead; Charge{} if it is gone.
  void Recharge(Charge& charged, const Charge& now);

  // While set, nothing may grow, whatever the counts are: the data directory is nearly full. `why`
  // says so with the numbers, and what to do.
  void RefuseGrowth(std::string why) { refusal_ = std::move(why); }
  void AllowGrowth() { refusal_.reset(); }
  bool is_refused() const { return refusal_.has_value(); }

  // Why `uid` may not take `growth` more: kNoSpace if the store is full, kQuota if the user is.
  std::optional<Failure> Check(uint32_t uid, const Amounts& growth) const;
  // True if the user, or the store, has less than a sixteenth of a limit left: what is promised
  // ahead of the count, such as names that a mount may give by itself, may no longer fit.
  bool IsNearLimit(uint32_t uid) const;

  const QuotaOptions& options() const { return options_; }
  const Amounts& all() const { return all_; }
  Amounts Of(uint32_t uid) const;
  // Users who are charged for anything.
  const std::map<uint32_t, Amounts>& users() const { return users_; }

 private:
  const QuotaOptions options_;
  Amounts all_;
  std::map<uint32_t, Amounts> users_;
  std::optional<std::string> refusal_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_QUOTAS_H_
