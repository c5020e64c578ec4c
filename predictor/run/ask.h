// Internal to predictor/run: sends one request of a simulated client to the manager.
#ifndef MOSA_PREDICTOR_RUN_ASK_H_
#define MOSA_PREDICTOR_RUN_ASK_H_

#include <map>
#include <utility>
#include <vector>

#include "predictor/run/simulated_client.h"

namespace mosa::predict {

// Returns the reply at `index` as a T, or the first Failure up to it.
template <typename T>
sai::Outcome<T> ReplyAs(const std::vector<Reply>& replies, size_t index) {
  for (size_t i = 0; i < replies.size() && i <= index; ++i)
    if (const auto* failure = std::get_if<Failure>(&replies[i])) return *failure;
  const auto* reply = index < replies.size() ? std::get_if<T>(&replies[index]) : nullptr;
  if (reply != nullptr) return *reply;
  return Failure{StatusCode::kInternal, ErrorReason::kNone, "the manager sent an unexpected reply"};
}

template <typename T>
des::Activity<sai::Outcome<T>> SimulatedClient::Ask(Request request) {
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  const std::vector<Reply> replies = co_await manager_.Call(id_, std::move(requests));
  co_return ReplyAs<T>(replies, 0);
}

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_ASK_H_
