// FifoServer: a queue before `servers` equal servers, first come first served, without limit. As
// the service time is known when a request comes, so is its end: a request costs O(log servers) and
// one event.
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
  // A request comes now that needs `service`: when it is served.
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

  // How long a request that comes now waits.
  Duration Backlog() const { return std::max(free_at_.front() - loop_.now(), Duration()); }
  // The service of all requests that have come.
  Duration busy() const { return busy_; }

 private:
  EventLoop& loop_;
  std::vector<Time> free_at_;  // A heap, the first to be free on top.
  Duration busy_;
};

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_FIFO_SERVER_H_
