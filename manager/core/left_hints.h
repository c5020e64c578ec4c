// LeftHints: a file's own hints for the next file of its name. A runner tags an output before it is
// written, on an empty file, and some programs remove an output before they write it. So the own
// hints of a file that is removed before anybody has stored bytes in it go to the file that the
// same user makes next under that name, if that is soon. They do not outlive the process. Pure; not
// thread-safe.
#ifndef MOSA_MANAGER_CORE_LEFT_HINTS_H_
#define MOSA_MANAGER_CORE_LEFT_HINTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/time.h"
#include "common/model/ids.h"
#include "manager/core/hints.h"

namespace mosa::manager {

class LeftHints {
 public:
  static constexpr Duration kKeptFor = Seconds(60);
  static constexpr size_t kNamesMax = 10'000;  // Beyond it, the earliest are forgotten.

  void Leave(FileId directory, std::string_view name, uint32_t uid, Hints own, Time now) {
    Expire(now);
    Key key(directory, name);
    left_.insert_or_assign(key, Left{uid, std::move(own), now + kKeptFor});
    order_.emplace_back(now + kKeptFor, std::move(key));
  }

  // Empty if there are none.
  Hints Take(FileId directory, std::string_view name, uint32_t uid, Time now) {
    Expire(now);
    const auto found = left_.find(Key(directory, name));
    if (found == left_.end() || found->second.uid != uid) return {};
    Hints own = std::move(found->second.own);
    left_.erase(found);
    return own;
  }

 private:
  using Key = std::pair<FileId, std::string>;
  struct Left {
    uint32_t uid = 0;
    Hints own;
    Time until;
  };

  void Expire(Time now) {
    while (!order_.empty() && (order_.front().first <= now || order_.size() >= kNamesMax)) {
      const auto& [until, key] = order_.front();
      // The name may have been left once more.
      if (const auto found = left_.find(key); found != left_.end() && found->second.until == until)
        left_.erase(found);
      order_.pop_front();
    }
  }

  std::map<Key, Left> left_;
  std::deque<std::pair<Time, Key>> order_;  // The earliest first.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_LEFT_HINTS_H_
