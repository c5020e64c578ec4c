// Requests that wait, by what they wait for.
#ifndef MOSA_MANAGER_CORE_WAIT_QUEUES_H_
#define MOSA_MANAGER_CORE_WAIT_QUEUES_H_

#include <deque>
#include <map>

#include "manager/core/state_types.h"

namespace mosa::manager {

struct WaitQueues {
  std::map<FileId, std::deque<Waiter>> parked;  // By the directory whose delegation is recalled.
  std::deque<Waiter> ready;
  std::deque<Waiter> grace;
  std::deque<Waiter> space;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_WAIT_QUEUES_H_
