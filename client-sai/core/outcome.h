// Outcome<T>: a value, or the Failure that explains its absence. Every SAI operation returns one.
// client-sai/fuse maps the Failure's reason to an errno.
#ifndef MOSA_CLIENT_SAI_CORE_OUTCOME_H_
#define MOSA_CLIENT_SAI_CORE_OUTCOME_H_

#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/model/messages.h"

namespace mosa::sai {

struct Done {
  bool operator==(const Done&) const = default;
};

template <typename T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : state_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Outcome(Failure failure) : state_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  // Precondition: ok().
  const T& value() const {
    MOSA_CHECK(ok());
    return std::get<0>(state_);
  }
  T& value() {
    MOSA_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& operator*() const { return value(); }
  T& operator*() { return value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  // Precondition: !ok().
  const Failure& failure() const {
    MOSA_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Failure> state_;
};

}  // namespace mosa::sai

// If `expression` (an Outcome) is a failure, returns it from the enclosing function.
#define MOSA_RETURN_IF_FAILED(expression) \
  do {                                    \
    auto mosa_outcome_ = (expression);    \
    if (!mosa_outcome_.ok()) [[unlikely]] \
      return mosa_outcome_.failure();     \
  } while (false)

#endif  // MOSA_CLIENT_SAI_CORE_OUTCOME_H_
