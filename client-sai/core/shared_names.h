// SharedNames: what a client knows of the names of a shared directory, of whose changes it is not
// told ("Shared directories" in common/model/session.h): those that are reserved for it, and those
// that it saw last. A client that is interested in a file is told when the file gets or loses a
// name. So a name that it saw is the file's still if nobody else has changed the file since.
//
// Pure; driven by the mount and by the simulator. One owner.
#ifndef MOSA_CLIENT_SAI_CORE_SHARED_NAMES_H_
#define MOSA_CLIENT_SAI_CORE_SHARED_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa::sai {

// How long the attributes of a shared directory are shown after they were asked for.
constexpr Duration kSharedAttributesFor = Milliseconds(100);

class SharedNames {
 public:
  // A reply has said whether the directory is shared.
  void Note(bool shared) { shared_ = shared; }
  bool is_shared() const { return shared_; }

  // The answer to a question that was asked at `log_mark`, in the client's record of recalls: the
  // name does not exist, and this client alone may make it, for this user.
  void Reserve(std::string_view name, uint32_t uid, uint64_t log_mark) {
    if (!HasEndedSince(name, log_mark)) free_.insert_or_assign(std::string(name), uid);
  }
  bool IsFree(std::string_view name) const { return free_.contains(name); }
  // The user makes a file of that name. False: it is not reserved for that user. The name stays
  // reserved until the manager knows the file, also beyond Clear.
  bool Take(std::string_view name, uint32_t uid) {
    const auto found = free_.find(name);
    if (found == free_.end() || found->second != uid) return false;
    taken_.insert(std::move(free_.extract(found).key()));
    return true;
  }
  // This client has changed the name, or the manager has learned what became of it. Answers to
  // questions from before `log_mark` are out of date.
  void End(std::string_view name, uint64_t log_mark) {
    if (const auto found = free_.find(name); found != free_.end()) free_.erase(found);
    if (const auto found = taken_.find(name); found != taken_.end()) taken_.erase(found);
    if (const auto found = seen_.find(name); found != seen_.end()) seen_.erase(found);
    if (!shared_) return;
    if (ended_.size() >= kNamesMax) {
      ended_.clear();
      ended_floor_ = log_mark;
    }
    ended_.insert_or_assign(std::string(name), log_mark);
  }
  // The directory was recalled, or the session is over.
  void Clear() { free_.clear(); }

  struct Seen {
    FileId file;  // FileId{}: unknown; none.
    // When it was last known to have that name; absent: the client is not told when the file's
    // names change.
    std::optional<uint64_t> log_mark{};
  };
  // `asked`: the mark of the question. (A later mark in `seen` says that nothing has changed.)
  void Saw(std::string_view name, Seen seen, uint64_t asked) {
    if (HasEndedSince(name, asked)) return;
    if (seen.file == FileId{}) {
      if (const auto found = seen_.find(name); found != seen_.end()) seen_.erase(found);
      return;
    }
    if (seen_.size() >= kNamesMax) seen_.clear();
    seen_.insert_or_assign(std::string(name), seen);
  }
  Seen LastSeen(std::string_view name) const {
    const auto found = seen_.find(name);
    return found == seen_.end() ? Seen{} : found->second;
  }

  // Those of files that the manager does not know yet.
  const std::set<std::string, std::less<>>& taken() const { return taken_; }

 private:
  static constexpr size_t kNamesMax = 1024;

  bool HasEndedSince(std::string_view name, uint64_t log_mark) const {
    const auto found = ended_.find(name);
    return log_mark < (found == ended_.end() ? ended_floor_ : found->second);
  }

  bool shared_ = false;
  std::map<std::string, uint32_t, std::less<>> free_;
  std::set<std::string, std::less<>> taken_;
  std::map<std::string, Seen, std::less<>> seen_;
  // When names ended; all others before the floor.
  std::map<std::string, uint64_t, std::less<>> ended_;
  uint64_t ended_floor_ = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_SHARED_NAMES_H_
