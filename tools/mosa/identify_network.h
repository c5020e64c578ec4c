// A sender and a receiver of our own, for what the network between hosts carries, not through any
// store: streams of bytes, and single bytes back and forth.
//
// A receiver listens while it exists, and talks only to who knows its token.
#ifndef MOSA_TOOLS_MOSA_IDENTIFY_NETWORK_H_
#define MOSA_TOOLS_MOSA_IDENTIFY_NETWORK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace mosa::cli {

// Answers any number of senders, on threads of its own. One owner.
class StreamReceiver {
 public:
  static Result<std::unique_ptr<StreamReceiver>> Open(std::string token);
  ~StreamReceiver();
  StreamReceiver(const StreamReceiver&) = delete;
  StreamReceiver& operator=(const StreamReceiver&) = delete;

  uint16_t port() const { return port_; }

 private:
  StreamReceiver(UniqueFd listener, uint16_t port, std::string token);
  void Accept();
  void Serve(UniqueFd connection) const;

  const UniqueFd listener_;
  const uint16_t port_;
  const std::string token_;
  std::atomic<bool> ending_ = false;
  std::vector<std::thread> serving_;  // Of the accepting thread; then of the destructor.
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

// Mean seconds of a byte there and back, of `count` of them; while a stream goes there, if asked.
Result<double> RoundTripSeconds(const StreamTarget& target, uint32_t count, bool under_stream);

// Addresses of this host's own, loopback last.
std::vector<std::string> OwnAddresses();

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_IDENTIFY_NETWORK_H_
