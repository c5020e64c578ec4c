// Shared directories: those in which several sessions make names, and the names there that are
// reserved for one of them ("Shared directories" in common/model/session.h).
//
// A table: Delegations recalls reserved names and lets requests wait for them. Not thread-safe.
// Operations on one name cost O(log names); those on a session or on time, O(reserved names).
#ifndef MOSA_MANAGER_CORE_SHARED_DIRECTORIES_H_
#define MOSA_MANAGER_CORE_SHARED_DIRECTORIES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa::manager {

class SharedDirectories {
 public:
  // A session has made a name there, and has no delegation. The directory is shared from the
  // `turns`-th change of sessions on.
  void NoteMaker(FileId directory, ClientId client, uint32_t turns, Time now);
  bool IsShared(FileId directory, Time now) const;
  // No name is to be reserved there for a while.
  void Pause(FileId directory, Time until) { paused_[directory] = until; }
  bool IsPaused(FileId directory, Time now) const;
  void EndPauses(Time now);

  // The name must not be reserved for another client. False if the client has too many.
  bool Reserve(FileId directory, const std::string& name, ClientId client, Time now);
  // The name exists now.
  void EndName(FileId directory, std::string_view name);
  void EndNames(FileId directory, ClientId client);
  // Returns the directories in which it had names.
  std::set<FileId> EndNamesOf(ClientId client);
  void Forget(FileId directory);

  bool has_names() const { return !reserved_.empty(); }
  std::optional<ClientId> HolderOf(FileId directory, std::string_view name) const;
  bool HasNames(FileId directory, ClientId except = ClientId()) const;
  std::vector<ClientId> HoldersIn(FileId directory) const;
  // The holders, with the directory, of names that were reserved then or before.
  std::set<std::pair<FileId, ClientId>> HoldersSince(Time then) const;
  // When the oldest name that was reserved after then was reserved.
  std::optional<Time> OldestAfter(Time then) const;
  std::set<FileId> DirectoriesWithNames() const;

 private:
  struct Makers {
    ClientId last;
    Time at;  // When it last made a name.
    uint32_t turns = 0;
    Time shared_until{};
  };
  struct Reserved {
    ClientId client;
    Time since;
  };
  struct Names {
    std::map<std::string, Reserved, std::less<>> by_name;
    std::map<ClientId, size_t> counts;
  };

  std::map<FileId, Makers> makers_;
  std::map<FileId, Time> paused_;
  std::map<FileId, Names> reserved_;
  std::map<ClientId, size_t> counts_;  // Reserved names.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_SHARED_DIRECTORIES_H_
