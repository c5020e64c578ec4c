// StrongId<Tag, Integer>: an integer that identifies one kind of thing. Ids of different kinds do
// not convert to each other.
#ifndef MOSA_COMMON_BASE_STRONG_ID_H_
#define MOSA_COMMON_BASE_STRONG_ID_H_

#include <compare>
#include <cstdint>
#include <utility>

namespace mosa {

template <typename Tag, typename Integer>
struct StrongId {
  Integer value = 0;

  constexpr StrongId() = default;
  constexpr explicit StrongId(Integer v) : value(v) {}
  constexpr auto operator<=>(const StrongId&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const StrongId& id) {
    return H::combine(std::move(state), id.value);
  }
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_STRONG_ID_H_
