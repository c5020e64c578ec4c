// AnswerAccount: counts the bytes that gRPC, or a queue for it, holds for peers that have not read
// them yet. Streams and unary calls share one account.
//
// Streams pause and end by their own rules (stream.h). A unary answer that does not fit is refused.
// Unary answers get half of the total, so that they alone never stall streams; one connection gets
// a quarter of that half.
// Thread-safe.
#ifndef MOSA_MANAGER_SERVICE_ANSWER_ACCOUNT_H_
#define MOSA_MANAGER_SERVICE_ANSWER_ACCOUNT_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "fmt/format.h"

namespace mosa::manager {

inline constexpr uint64_t kQueuedBytesMax = uint64_t{256} << 20;
inline constexpr uint64_t kUnaryBytesMax = kQueuedBytesMax / 2;
inline constexpr uint64_t kUnaryBytesPerConnectionMax = kUnaryBytesMax / 4;
// Approximate memory that gRPC keeps for a call with an outstanding answer of any length.
inline constexpr uint64_t kUnaryOverheadBytes = 8192;

class AnswerAccount {
 public:
  // ---- streams
  void Add(uint64_t bytes) { bytes_ += bytes; }
  void Subtract(uint64_t bytes) { bytes_ -= bytes; }

  // ---- unary answers; connections have gRPC's names
  // ResourceExhausted if `bytes` more would exceed a limit. A connection without outstanding
  // answers is limited only by the total.
  Status CheckUnary(const std::string& connection, uint64_t bytes) const {
    const uint64_t all = bytes_;
    if (all + bytes > kUnaryBytesMax)
      return ResourceExhaustedError(fmt::format(
          "{} bytes of replies are waiting for peers to read them: try again in a moment", all));
    const SystemMutexLock lock(mutex_);
    const auto found = connections_.find(connection);
    const uint64_t own = found == connections_.end() ? 0 : found->second;
    if (own > 0 && own + bytes > kUnaryBytesPerConnectionMax)
      return ResourceExhaustedError(fmt::format(
          "{} bytes of replies are waiting on this connection: read them and try again", own));
    return OkStatus();
  }
  void AddUnary(const std::string& connection, uint64_t bytes) {
    bytes_ += bytes;
    const SystemMutexLock lock(mutex_);
    connections_[connection] += bytes;
  }
  void SubtractUnary(const std::string& connection, uint64_t bytes) {
    bytes_ -= bytes;
    const SystemMutexLock lock(mutex_);
    const auto found = connections_.find(connection);
    if (found != connections_.end() && (found->second -= bytes) == 0) connections_.erase(found);
  }

  uint64_t bytes() const { return bytes_; }

 private:
  std::atomic<uint64_t> bytes_ = 0;
  mutable SystemMutex mutex_;
  std::map<std::string, uint64_t> connections_ ABSL_GUARDED_BY(mutex_);  // Unary answers only.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_ANSWER_ACCOUNT_H_
