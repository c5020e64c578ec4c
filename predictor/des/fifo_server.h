// FifoServer: an unbounded first-come, first-served queue in front of `servers` equal servers.
// Service times are known on arrival, so end times are too: a request costs O(log servers) and one
// event.
#ifndef MOSA_PREDICTOR_DES_FIFO_SERVER_H_
#define MOSA_PREDICTOR_DES_FIFO_SERVER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "predictor/des/event_loop.h"

namespace mosa::des {

class FifoServer {
 public:
  // Precondition: servers > 0.
  explicit FifoServer(EventLoop& loop, uint32_t servers = 1) : loop_(loop), free_at_(servers) {}

  struct Turn {
    Time begin;
    Time end;
  };
  // Enqueues a request that needs `service`. Returns when it is served.
  Turn Enter(Duration service) {
    std::pop_heap(free_at_.begin(), free_at_.end(), std::greater<>());
    Turn turn;
    turn.begin = std::max(free_at_.back(), loop_.now());
    turn.end = turn.begin + service;
    free_at_.back() = turn.end;
    std::push_heap(free_at_.begin(), free_at_.end(), std::greater<>());
    busy_ = busy_ + service;
    return turn;
  }
  // `co_await server.Serve(service)`.
  auto Serve(Duration service) { return loop_.Until(Enter(service).end); }

  // How long a request that arrives now would wait.
  Duration Backlog() const { return std::max(free_at_.front() - loop_.now(), Duration()); }
  // Sum of the service times of all requests so far.
  Duration busy() const { return busy_; }

 private:
  EventLoop& loop_;
  std::vector<Time> free_at_;  // A min-heap: the server that is free first is on top.
  Duration busy_;
};

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_FIFO_SERVER_H_
