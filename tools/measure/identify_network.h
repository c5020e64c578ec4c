// A sender and a receiver of our own that measure the network between hosts without any store:
// streams of bytes, and single bytes back and forth.
//
// A receiver listens while it exists, on one address, and serves only senders that know its token.
// It admits a few connections at a time that have not sent the token yet, for a second each.
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
  // `address`: such as "10.0.0.1" or "fd00::1", one of this host's own.
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
    std::atomic<bool> strange = true;  // It has not sent the token.
    std::atomic<bool> ended = false;
  };
  void Accept();
  bool HasRoom();
  void Serve(Serving& serving) const;

  const UniqueFd listener_;
  const uint16_t port_;
  const std::string token_;
  std::atomic<bool> ending_ = false;
  std::list<Serving> serving_;  // Belongs to the accepting thread; then to the destructor.
  std::thread accepting_;
};

// Where a receiver is: connects to the first of the addresses that answers and knows the token.
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
  // Includes another span that the same receiver saw at the same time.
  void Join(const StreamSpan& other);
  double BytesPerSecond() const;
};

// Sends `bytes` over each of the connections at once. Does not count the first `warm_bytes` of
// each: in them connections warm up, and links may give more than they can sustain.
Result<StreamSpan> SendStreams(const StreamTarget& target, uint64_t bytes, uint64_t warm_bytes,
                               uint32_t connections);

// Sends streams to all targets at once, and measures each by itself: what arrived in the first
// `counted` of its time. Precondition: `bytes` suffice for none to end before that.
Result<std::vector<StreamSpan>> SendStreamsApart(const std::vector<StreamTarget>& targets,
                                                 uint64_t bytes, Duration counted,
                                                 uint32_t connections);

// Mean seconds of a one-byte round trip, over `count` of them; if asked, beside a stream to the
// same target.
Result<double> RoundTripSeconds(const StreamTarget& target, uint32_t count, bool under_stream);

// This host's address on the route to `peer`, where others of the same network reach it. Loopback
// if there is none, or `peer` is empty.
std::string AddressTowards(const std::string& peer);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_IDENTIFY_NETWORK_H_
