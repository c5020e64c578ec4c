// Replies that had to wait: they are brought up to date and sent. Also answers to requests for
// locks.
#ifndef MOSA_MANAGER_CORE_ANSWERS_H_
#define MOSA_MANAGER_CORE_ANSWERS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "manager/core/copy_view.h"
#include "manager/core/delegations.h"
#include "manager/core/file_table.h"
#include "manager/core/file_view.h"
#include "manager/core/generations.h"
#include "manager/core/lock_table.h"
#include "manager/core/node_table.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/wait_queues.h"

namespace mosa::manager {

class Answers {
 public:
  Answers(Step& step, WaitQueues& queues, FileTable& files, NodeTable& nodes,
          SessionTable& sessions, LockTable& locks, CopyView& copy_view, Generations& generations,
          Delegations& delegations, FileView& file_view)
      : step_(step),
        queues_(queues),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        locks_(locks),
        copy_view_(copy_view),
        generations_(generations),
        delegations_(delegations),
        file_view_(file_view) {}

  void CorrectAccess(Session& session, const std::vector<FileId>& files,
                     std::vector<Reply>& replies);
  static std::vector<std::pair<size_t, FileId>> CommittedBy(const std::vector<Request>& requests);
  void CorrectCommits(const std::vector<std::pair<size_t, FileId>>& commits,
                      std::vector<Reply>& replies) const;
  void FinishPending(const Waiter& waiter);
  Reply Apply(const GetLockRequest& request);
  Reply Apply(const SetLockRequest& request);
  Reply Apply(const CancelLockRequest& request);
  void AnswerLocks(const std::vector<LockTable::Waiting>& waiting, const Reply& reply);

 private:
  void AnswerPending(Session& session, RequestId id, Pending pending);

  Step& step_;
  WaitQueues& queues_;
  FileTable& files_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  LockTable& locks_;
  CopyView& copy_view_;
  Generations& generations_;
  Delegations& delegations_;
  FileView& file_view_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_ANSWERS_H_
