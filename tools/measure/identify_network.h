// A sender and a receiver of our own, for what the network between hosts carries, not through any
// store: streams of bytes, and single bytes back and forth.
//
// A receiver listens while it exists, on one address, and talks only to senders that know its
// token: of those that have not said it yet there are few at a time, and for a second each.
#ifndef MOSA_TOOLS_MEASURE_IDENTIFY_NETWORK_H_
#define MOSA_TOOLS_MEASURE_IDENTIFY_NETWORK_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"

namespace mosa::cli {

// Answers senders, on threads of its own. One owner.
class StreamReceiver {
 public:
  // `address`: as in "10.0.0.1" or "fd00::1", one of this host's own.
  static Result<std::unique_ptr<StreamReceiver>> Open(const std::string& address,
                                                      std::string token);
  ~StreamReceiver();
  StreamReceiver(const StreamReceiver&) = delete;
  StreamReceiver& operator=(const StreamReceiver&) = delete;

  uint16_t port() const { return port_; }

 private:
  StreamReceiver(UniqueFd listener, uint16_t port, std::string token);
  struct Serving {
    UniqueFd connection;
    std::thread thread;
    std::atomic<bool> strange = true;  // It has not said the token.
    std::atomic<bool> ended = false;
  };
  void Accept();
  bool HasRoom();
  void Serve(Serving& serving) const;

  const UniqueFd listener_;
  const uint16_t port_;
  const std::string token_;
  std::atomic<bool> ending_ = false;
  std::list<Serving> serving_;  // The accepting thread's; then the destructor's.
  std::thread accepting_;
};

// Where a receiver is: the first of the addresses that answers and knows the token is taken.
struct StreamTarget {
  std::vector<std::string> addresses;
  uint16_t port = 0;
  std::string token;
};

// What a receiver saw of streams, by its own clock.
struct StreamSpan {
  uint64_t bytes = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  // With another one that the same receiver saw at the same time.
  void Join(const StreamSpan& other);
  double BytesPerSecond() const;
};

// Sends so many bytes over each of so many connections at once. The first `warm_bytes` of each are
// not counted: in them connections warm up, and links may give more than they can keep.
Result<StreamSpan> SendStreams(const StreamTarget& target, uint64_t bytes, uint64_t warm_bytes,
                               uint32_t connections);

// So many streams to each of the targets at once, each by itself: what came in the first `counted`
// of its time. Precondition: `bytes` are so many that none ends before that.
Result<std::vector<StreamSpan>> SendStreamsApart(const std::vector<StreamTarget>& targets,
                                                 uint64_t bytes, Duration counted,
                                                 uint32_t connections);

// Mean seconds of a byte there and back, of `count` of them; while a stream goes there, if asked.
Result<double> RoundTripSeconds(const StreamTarget& target, uint32_t count, bool under_stream);

// The address of this host's own that the route to `peer` has: where others of the same network as
// `peer` reach it. Loopback if there is none, or `peer` is empty.
std::string AddressTowards(const std::string& peer);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_IDENTIFY_NETWORK_H_
