#include "manager/core/quotas.h"

#include <fmt/format.h>

#include <array>

#include "common/base/check.h"

namespace mosa::manager {
namespace {

constexpr uint32_t kRoot = 0;
// Within this fraction of a limit counts as near.
constexpr uint64_t kMarginDivisor = 16;

struct Resource {
  uint64_t Amounts::*amount;
  std::string_view noun;
};
constexpr std::array<Resource, 3> kResources = {{
    {&Amounts::names, "names"},
    {&Amounts::inline_bytes, "bytes of small files"},
    {&Amounts::attribute_bytes, "bytes of attributes"},
}};

bool Fits(uint64_t used, uint64_t growth, uint64_t limit) {
  return growth == 0 || (used <= limit && growth <= limit - used);
}

bool IsNear(const Amounts& used, const Amounts& limits) {
  for (const Resource& resource : kResources) {
    const uint64_t limit = limits.*resource.amount;
    if (limit != kNoLimit && used.*resource.amount >= limit - limit / kMarginDivisor) return true;
  }
  return false;
}

void Add(Amounts& sum, const Charge& charge) {
  sum.names += charge.names;
  sum.inline_bytes += charge.inline_bytes;
  sum.attribute_bytes += charge.attribute_bytes;
}

void Subtract(Amounts& sum, const Charge& charge) {
  MOSA_CHECK(sum.names >= charge.names && sum.inline_bytes >= charge.inline_bytes &&
             sum.attribute_bytes >= charge.attribute_bytes);
  sum.names -= charge.names;
  sum.inline_bytes -= charge.inline_bytes;
  sum.attribute_bytes -= charge.attribute_bytes;
}

bool IsNothing(const Charge& charge) {
  return charge.names == 0 && charge.inline_bytes == 0 && charge.attribute_bytes == 0;
}

Failure Full(ErrorReason reason, std::string message) {
  return {StatusCode::kResourceExhausted, reason, std::move(message)};
}

}  // namespace

void Quotas::Recharge(Charge& charged, const Charge& now) {
  if (charged == now) return;
  if (!IsNothing(charged)) {
    Subtract(all_, charged);
    const auto user = users_.find(charged.uid);
    MOSA_CHECK(user != users_.end());
    Subtract(user->second, charged);
    if (user->second == Amounts{}) users_.erase(user);
  }
  if (!IsNothing(now)) {
    Add(all_, now);
    Add(users_[now.uid], now);
  }
  charged = now;
}

std::optional<Failure> Quotas::Check(uint32_t uid, const Amounts& growth) const {
  if (growth == Amounts{}) return std::nullopt;
  if (refusal_) return Full(ErrorReason::kNoSpace, *refusal_);
  const Amounts own = Of(uid);
  for (const Resource& resource : kResources) {
    const uint64_t wanted = growth.*resource.amount;
    const uint64_t limit = options_.all.*resource.amount;
    if (!Fits(all_.*resource.amount, wanted, limit))
      return Full(ErrorReason::kNoSpace,
                  fmt::format("the store has {} {}, and its limit is {}: remove files, or start "
                              "its manager with a higher limit",
                              all_.*resource.amount, resource.noun, limit));
    const uint64_t user_limit = options_.per_user.*resource.amount;
    if (uid != kRoot && !Fits(own.*resource.amount, wanted, user_limit))
      return Full(ErrorReason::kQuota,
                  fmt::format("user {} has {} {} in the store, and the limit per user is {}: "
                              "remove files, or start its manager with a higher limit per user",
                              uid, own.*resource.amount, resource.noun, user_limit));
  }
  return std::nullopt;
}

bool Quotas::IsNearLimit(uint32_t uid) const {
  if (refusal_ || IsNear(all_, options_.all)) return true;
  return uid != kRoot && IsNear(Of(uid), options_.per_user);
}

Amounts Quotas::Of(uint32_t uid) const {
  const auto user = users_.find(uid);
  return user == users_.end() ? Amounts{} : user->second;
}

}  // namespace mosa::manager
