// ReplyLog: the replies of one client that it may ask for again.
#ifndef MOSA_MANAGER_CORE_REPLY_LOG_H_
#define MOSA_MANAGER_CORE_REPLY_LOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/time.h"
#include "common/model/ids.h"
#include "manager/core/held_bytes.h"

namespace mosa::manager {

struct ReplyLog {
  using Replies = std::map<RequestId, std::string>;  // Encoded.

  Replies replies;
  RequestId cut;                // Highest id that was dropped before it was confirmed, or 0.
  std::optional<Time> drop_at;  // Set once the session has ended.
  HeldBytes held;               // Size of `replies`, counted in the sum passed to Put.

  // `sum` is the size of all logs. It must outlive this log.
  void Put(uint64_t* sum, RequestId id, std::string encoded) {
    std::string& kept = replies[id];
    const uint64_t before = kept.empty() ? 0 : BytesOf(kept);
    held.Hold(sum, held.bytes() - before + BytesOf(encoded));
    kept = std::move(encoded);
  }
  Replies::iterator Erase(uint64_t* sum, Replies::iterator reply) {
    held.Hold(sum, held.bytes() - BytesOf(reply->second));
    return replies.erase(reply);
  }

 private:
  static uint64_t BytesOf(const std::string& encoded) {
    constexpr uint64_t kOverheadBytes = 96;
    return encoded.size() + kOverheadBytes;
  }
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_REPLY_LOG_H_
