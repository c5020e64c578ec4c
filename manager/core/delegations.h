// What mounts may make without asking: files in a directory that is delegated to one of them, and
// files of names that are reserved for one of them in a shared directory. A mount "holds" both
// until it makes the file, or gives them back when they are recalled.
#ifndef MOSA_MANAGER_CORE_DELEGATIONS_H_
#define MOSA_MANAGER_CORE_DELEGATIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "manager/core/file_table.h"
#include "manager/core/hint_rules.h"
#include "manager/core/interests.h"
#include "manager/core/lifetimes.h"
#include "manager/core/recalls.h"
#include "manager/core/session_table.h"
#include "manager/core/shared_directories.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/wait_queues.h"

namespace mosa::manager {

class Delegations {
 public:
  Delegations(Step& step, WaitQueues& queues, FileTable& files, SessionTable& sessions,
              Interests& interests, HintRules& rules, Recalls& recalls, Lifetimes& lifetimes)
      : step_(step),
        queues_(queues),
        files_(files),
        sessions_(sessions),
        interests_(interests),
        rules_(rules),
        recalls_(recalls),
        lifetimes_(lifetimes) {}

  void Correct(ClientId client, Pending& pending) const;
  // True if another session holds the directory, or names in it.
  bool IsHeldElsewhere(const Session& session, FileId directory) const;
  // Why others need what a session holds. Those that only look leave it the names that it knows.
  enum class Need : uint8_t { kLook, kChange };
  // These recall what another session holds: the delegation of the directory; the same, or one name
  // in it; the same, or any name in it. False: nothing.
  bool RecallDelegationFromOthers(const Session& session, FileId directory, Need need);
  bool RecallNameFromOthers(const Session& session, FileId directory, std::string_view name,
                            Need need);
  bool RecallFromOthers(const Session& session, FileId directory, Need need);
  // Mounts must not defer creations where a rule may settle the placement. These recall what they
  // hold of such directories: all below `within`, or those where one rule settles placement
  // (returns true if there are none).
  void RecallRuled(FileId within);
  bool RecallUnder(uint64_t rule);
  bool Holds(ClientId client, FileId directory) const;
  bool MayDelegate(const Session& session, FileId directory) const;
  void Delegate(Session& session, FileId directory);
  void End(FileId directory);

  bool IsShared(FileId directory) const { return shared_.IsShared(directory, step_.now); }
  // The session makes a name there. The directory is shared from the `turns`-th change of sessions
  // on.
  void NoteMaker(const Session& session, FileId directory, uint32_t turns);
  // For a name that does not exist. True if it is reserved for the session from now on.
  bool Reserve(Session& session, FileId directory, const std::string& name);
  // Restores a reservation of a session that has returned, unless others have wanted it for too
  // long: since `wanted_since`, when it was recalled.
  bool RestoreName(const Session& session, FileId directory, const std::string& name,
                   std::optional<Time> wanted_since);
  // The name exists now.
  void EndName(FileId directory, const std::string& name) { shared_.EndName(directory, name); }
  void EndNames(FileId directory, ClientId client);
  void EndAllNames(ClientId client);

  // True if a session holds the directory, or names in it.
  bool IsHeld(FileId directory) const;
  // Asks the holders to report what they have made, and to ask from then on.
  void Recall(FileId directory);
  // As Recall, for a command that is to be repeated: nothing is held there again for a while.
  void RecallToAnswer(FileId directory);
  void RecallAll();
  // As Recall, so that `file` in it can be removed.
  void RecallForDue(FileId directory, FileId file);
  void TakeRecallBack(FileId directory, ClientId holder);
  // Null: the directory is not delegated.
  const Delegation* Find(FileId directory) const;
  bool empty() const { return by_directory_.empty() && !shared_.has_names(); }
  void Forget(FileId directory);
  void Tick();
  // Time in which clients could not answer does not count.
  void Postpone(Duration time);

 private:
  void NoteContended(FileId directory);
  void RecallDelegation(FileId directory, Delegation& delegation, Need need);
  RecallId RecallNames(FileId directory, ClientId client);
  bool MayReserve(const Session& session, FileId directory) const;
  std::set<FileId> Held() const;
  // Runs the requests again that waited for what others held of the directory.
  void Resume(FileId directory);

  Step& step_;
  WaitQueues& queues_;
  FileTable& files_;
  SessionTable& sessions_;
  Interests& interests_;
  HintRules& rules_;
  Recalls& recalls_;
  Lifetimes& lifetimes_;
  std::map<FileId, Delegation> by_directory_;
  SharedDirectories shared_;
  std::map<FileId, Time> contended_;  // Directories that are not delegated before then.
  // Due files, by the directory whose delegation is being recalled.
  std::map<FileId, std::set<FileId>> due_delegated_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_DELEGATIONS_H_
