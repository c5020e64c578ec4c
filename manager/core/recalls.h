// Messages that ask mounts to give up what they know of a file, and the replies that wait for them.
//
// Invariant: the outstanding recalls of a session are exactly those in `by_file` under its client.
#ifndef MOSA_MANAGER_CORE_RECALLS_H_
#define MOSA_MANAGER_CORE_RECALLS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "manager/core/file_table.h"
#include "manager/core/interests.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"

namespace mosa::manager {

class Recalls {
 public:
  Recalls(Step& step, FileTable& files, SessionTable& sessions, Interests& interests)
      : step_(step), files_(files), sessions_(sessions), interests_(interests) {}

  uint32_t TakeSlot(ClientId client);
  RecallId Send(Session& session, FileId file, RecallKind kind);
  // Both withhold a request's reply until other clients have confirmed earlier recalls. They return
  // how many recalls the reply now waits for.
  size_t AwaitSameNames(ClientId client, const RequestEnvelope& envelope,
                        const std::vector<Reply>& replies);
  size_t AwaitRecalls(FileId file, const Waiter& waiter);
  // Recalls Step::touched and Step::access_changed from all interested clients but `actor`.
  // `waiter`, if given, waits for these recalls, except access recalls that need no wait, and for
  // earlier ones of the same files. Returns the number of recalls that it waits for.
  size_t RecallTouched(ClientId actor, std::optional<Waiter> waiter);
  bool IsRecalledFrom(ClientId client, FileId file) const;
  void AskHolder(Session& session, FileId file);

  // Returns true if some client has yet to answer a recall of the file.
  bool IsRecalled(FileId file) const { return by_file_.contains(file); }
  // The same, for recalls of what the client may still show.
  bool IsAwaited(FileId file) const;
  // The client's unanswered entries recall of the directory, if there is one.
  static std::optional<RecallId> EntriesRecallOf(const Session& session, FileId directory);
  bool IsRecalledFromOthers(ClientId client, FileId file) const;
  void NoteDone(ClientId client, RecallId id, FileId file);

 private:
  size_t RecallAccess(ClientId actor, std::optional<Waiter> waiter);

  Step& step_;
  FileTable& files_;
  SessionTable& sessions_;
  Interests& interests_;
  std::map<FileId, std::set<std::pair<ClientId, RecallId>>> by_file_;
  uint64_t last_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_RECALLS_H_
