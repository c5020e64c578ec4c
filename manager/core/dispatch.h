// Finds the rule of ManagerCore that handles a request or a command, when the program is compiled.
#ifndef MOSA_MANAGER_CORE_DISPATCH_H_
#define MOSA_MANAGER_CORE_DISPATCH_H_

#include "manager/core/manager_core.h"

namespace mosa::manager {

// Calls the Apply of the first rule that has one for this type of request.
template <typename RequestType, typename First, typename... Others>
Reply ApplyBy(const RequestType& request, First& first, Others&... others) {
  if constexpr (requires { first.Apply(request); })
    return first.Apply(request);
  else
    return ApplyBy(request, others...);
}

// Calls the Handle of the first rule that has one for this type of command.
template <typename CommandType, typename First, typename... Others>
void HandleBy(const CommandType& command, First& first, Others&... others) {
  if constexpr (requires { first.Handle(command); })
    first.Handle(command);
  else
    HandleBy(command, others...);
}

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_DISPATCH_H_
