// Directories in which one mount may make files without asking.
#ifndef MOSA_MANAGER_CORE_DELEGATIONS_H_
#define MOSA_MANAGER_CORE_DELEGATIONS_H_

#include <cstdint>
#include <map>
#include <set>

#include "manager/core/file_table.h"
#include "manager/core/hint_rules.h"
#include "manager/core/interests.h"
#include "manager/core/lifetimes.h"
#include "manager/core/recalls.h"
#include "manager/core/session_table.h"
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
  bool IsDelegatedElsewhere(const Session& session, FileId directory) const;
  // Mounts must not defer creations where a rule may settle the placement. These recall the
  // delegations of such directories: all below `within`, or those where one rule settles placement
  // (returns true if there are none).
  void RecallRuled(FileId within);
  bool RecallUnder(uint64_t rule);
  bool Holds(ClientId client, FileId directory) const;
  bool MayDelegate(const Session& session, FileId directory) const;
  void Delegate(Session& session, FileId directory);
  void End(FileId directory);

  // Asks the holder to report what it has made, and to ask from then on. The directory must be
  // delegated.
  void Recall(FileId directory);
  void RecallAll();
  // As Recall, so that `file` in it can be removed.
  void RecallForDue(FileId directory, FileId file);
  void TakeRecallBack(FileId directory, ClientId holder);
  // Null: the directory is not delegated.
  const Delegation* Find(FileId directory) const;
  bool empty() const { return by_directory_.empty(); }
  void ForgetContended(FileId directory) { contended_.erase(directory); }
  void Tick();
  // Time in which clients could not answer does not count.
  void Postpone(Duration time);

 private:
  void NoteContended(FileId directory);

  Step& step_;
  WaitQueues& queues_;
  FileTable& files_;
  SessionTable& sessions_;
  Interests& interests_;
  HintRules& rules_;
  Recalls& recalls_;
  Lifetimes& lifetimes_;
  std::map<FileId, Delegation> by_directory_;
  std::map<FileId, Time> contended_;  // Directories that are not delegated before then.
  // Due files, by the directory whose delegation is being recalled.
  std::map<FileId, std::set<FileId>> due_delegated_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_DELEGATIONS_H_
