// Finds the rule of ManagerCore that handles a request or a command, when the program is compiled.
#ifndef MOSA_MANAGER_CORE_DISPATCH_H_
#define MOSA_MANAGER_CORE_DISPATCH_H_

#include <optional>
#include <utility>

#include "manager/core/manager_core.h"

namespace mosa::manager {

template <typename Rule, typename RequestType>
concept Applies = requires(Rule& rule, const RequestType& request) {
  rule.Apply(request);
};
template <typename Rule, typename CommandType>
concept Handles = requires(Rule& rule, const CommandType& command) {
  rule.Handle(command);
};

// Calls the Apply of the rule that has one for this type of request.
template <typename RequestType, typename... Rules>
Reply ApplyBy(const RequestType& request, Rules&... rules) {
  static_assert((Applies<Rules, RequestType> + ...) == 1, "exactly one rule applies it");
  std::optional<Reply> reply;
  const auto offer = [&](auto& rule) {
    if constexpr (Applies<decltype(rule), RequestType>) reply = rule.Apply(request);
  };
  (offer(rules), ...);
  return *std::move(reply);
}

// Calls the Handle of the rule that has one for this type of command.
template <typename CommandType, typename... Rules>
void HandleBy(const CommandType& command, Rules&... rules) {
  static_assert((Handles<Rules, CommandType> + ...) == 1, "exactly one rule handles it");
  const auto offer = [&](auto& rule) {
    if constexpr (Handles<decltype(rule), CommandType>) rule.Handle(command);
  };
  (offer(rules), ...);
}

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_DISPATCH_H_
