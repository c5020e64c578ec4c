// AnswerAccount: bytes that gRPC has been given for peers, or that wait in queues for it, and that
// the peers have not taken yet. Streams and unary calls count in it together.
//
// A stream pauses and ends by its own rules (stream.h); a unary answer that does not fit is not
// given. Unary answers get half of what all may have, so that they alone never make streams wait,
// and one connection a quarter of that.
// Safe to use from many threads.
#ifndef MOSA_MANAGER_SERVICE_ANSWER_ACCOUNT_H_
#define MOSA_MANAGER_SERVICE_ANSWER_ACCOUNT_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "common/base/status.h"
#include "fmt/format.h"

namespace mosa::manager {

inline constexpr uint64_t kQueuedBytesMax = uint64_t{256} << 20;
inline constexpr uint64_t kUnaryBytesMax = kQueuedBytesMax / 2;
inline constexpr uint64_t kUnaryBytesPerConnectionMax = kUnaryBytesMax / 4;
// About what gRPC keeps of a call whose answer is under way, however short it is.
inline constexpr uint64_t kUnaryOverheadBytes = 8192;

class AnswerAccount {
 public:
  // ---- streams
  void Add(uint64_t bytes) { bytes_ += bytes; }
  void Subtract(uint64_t bytes) { bytes_ -= bytes; }

  // ---- unary answers; a connection is named as gRPC does
  // ResourceExhausted if so much more would be too much. A single answer always fits its
  // connection.
  Status CheckUnary(const std::string& connection, uint64_t bytes) const {
    const uint64_t all = bytes_;
    if (all + bytes > kUnaryBytesMax)
      return ResourceExhaustedError(fmt::format(
          "{} bytes of replies are waiting for peers to read them: try again in a moment", all));
    const std::lock_guard lock(mutex_);
    const auto found = connections_.find(connection);
    const uint64_t own = found == connections_.end() ? 0 : found->second;
    if (own > 0 && own + bytes > kUnaryBytesPerConnectionMax)
      return ResourceExhaustedError(fmt::format(
          "{} bytes of replies are waiting on this connection: read them and try again", own));
    return OkStatus();
  }
  void AddUnary(const std::string& connection, uint64_t bytes) {
    bytes_ += bytes;
    const std::lock_guard lock(mutex_);
    connections_[connection] += bytes;
  }
  void SubtractUnary(const std::string& connection, uint64_t bytes) {
    bytes_ -= bytes;
    const std::lock_guard lock(mutex_);
    const auto found = connections_.find(connection);
    if (found != connections_.end() && (found->second -= bytes) == 0) connections_.erase(found);
  }

  uint64_t bytes() const { return bytes_; }

 private:
  std::atomic<uint64_t> bytes_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> connections_;  // Guarded by mutex_. Counts unary answers.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_ANSWER_ACCOUNT_H_
