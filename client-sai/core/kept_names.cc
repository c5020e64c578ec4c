#include "client-sai/core/kept_names.h"

#include <algorithm>

namespace mosa::sai {
namespace {

// How long the kernel may not keep the names of a directory that others have changed; doubles at
// each further change. Meanwhile a lookup costs some tens of microseconds.
constexpr Duration kPatienceMin = Seconds(30);
constexpr Duration kPatienceMax = Seconds(300);

}  // namespace

bool KeptNames::Tell(uint64_t epoch, Time now) {
  if (now < shared_until_) return false;
  epoch_ = epoch;
  return true;
}

bool KeptNames::Forget(uint64_t epoch, Time now) {
  const bool kept = epoch_ == epoch;
  if (kept) patience_ = std::clamp(patience_ * 2, kPatienceMin, kPatienceMax);
  shared_until_ = now + patience_;
  return kept;
}

}  // namespace mosa::sai
