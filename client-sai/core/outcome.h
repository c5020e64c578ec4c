// Outcome<T>: a value, or the Failure that says why there is none. What every operation of the SAI
// answers; the reason in the Failure becomes an errno in client-sai/fuse.
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
  // Preconditions: ok().
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

// Returns the failure of `expression` (an Outcome<anything>) from the enclosing function, if it is
// one.
#define MOSA_RETURN_IF_FAILED(expression) \
  do {                                    \
    auto mosa_outcome_ = (expression);    \
    if (!mosa_outcome_.ok()) [[unlikely]] \
      return mosa_outcome_.failure();     \
  } while (false)

#endif  // MOSA_CLIENT_SAI_CORE_OUTCOME_H_
