// Envelopes of requests: each runs once, as one step, and is answered when all other clients have
// let go of what it changed.
#ifndef MOSA_MANAGER_CORE_ENVELOPES_H_
#define MOSA_MANAGER_CORE_ENVELOPES_H_

#include <cstddef>
#include <vector>

#include "manager/core/answers.h"
#include "manager/core/byte_requests.h"
#include "manager/core/cluster.h"
#include "manager/core/copy_reviews.h"
#include "manager/core/delegations.h"
#include "manager/core/file_table.h"
#include "manager/core/grants.h"
#include "manager/core/interests.h"
#include "manager/core/lifetimes.h"
#include "manager/core/limits.h"
#include "manager/core/names.h"
#include "manager/core/orphans.h"
#include "manager/core/recalls.h"
#include "manager/core/reply_logs.h"
#include "manager/core/session_table.h"
#include "manager/core/staging.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/wait_queues.h"
#include "manager/core/xattrs.h"

namespace mosa::manager {

class Envelopes {
 public:
  Envelopes(Step& step, WaitQueues& queues, Cluster& cluster, FileTable& files,
            SessionTable& sessions, CopyWork& copy, Interests& interests, Limits& limits,
            ReplyLogs& reply_logs, Recalls& recalls, Lifetimes& lifetimes, Delegations& delegations,
            Staging& staging, Namespace& names, ByteRequests& byte_requests, Xattrs& xattrs,
            Grants& grants, CopyReviews& copy_reviews, Answers& answers, Orphans& orphans)
      : step_(step),
        queues_(queues),
        cluster_(cluster),
        files_(files),
        sessions_(sessions),
        copy_(copy),
        interests_(interests),
        limits_(limits),
        reply_logs_(reply_logs),
        recalls_(recalls),
        lifetimes_(lifetimes),
        delegations_(delegations),
        staging_(staging),
        names_(names),
        byte_requests_(byte_requests),
        xattrs_(xattrs),
        grants_(grants),
        copy_reviews_(copy_reviews),
        answers_(answers),
        orphans_(orphans) {}

  void ReceiveEnvelope(Session& session, const RequestEnvelope& envelope);
  bool MayRunReady() const;
  void RunReady();
  Reply Apply(const FileIdRangeRequest& request);
  Reply Apply(const ForgetRequest& request);
  Reply Apply(const RecallDoneRequest& request);
  void FinishRecall(Session& session, const RecallDoneRequest& done);
  void RetrySpaceWaiters(bool only_expired);

 private:
  static void NoteGivenUp(Session& session, const RequestEnvelope& envelope);
  void HoldWaiting(Session& session, Pending& pending);
  bool AnswerAsRecorded(Session& session, const RequestEnvelope& envelope);
  std::vector<Reply> RunRequests(const RequestEnvelope& envelope);
  // `names_awaited`: every client already shows the names that a listing would return.
  void RunEnvelope(Session& session, const RequestEnvelope& envelope, bool names_awaited = false);
  void Withhold(Session& session, const RequestEnvelope& envelope, size_t recalls,
                std::vector<Reply> replies);
  // Recalls what other sessions hold and `request` needs. Returns the directories.
  std::vector<FileId> RecallHeld(const Session& session, const Request& request);
  bool ParkListing(Session& session, const RequestEnvelope& envelope);
  void Park(Session& session, RequestEnvelope envelope, FileId directory);

  Step& step_;
  WaitQueues& queues_;
  Cluster& cluster_;
  FileTable& files_;
  SessionTable& sessions_;
  CopyWork& copy_;
  Interests& interests_;
  Limits& limits_;
  ReplyLogs& reply_logs_;
  Recalls& recalls_;
  Lifetimes& lifetimes_;
  Delegations& delegations_;
  Staging& staging_;
  Namespace& names_;
  ByteRequests& byte_requests_;
  Xattrs& xattrs_;
  Grants& grants_;
  CopyReviews& copy_reviews_;
  Answers& answers_;
  Orphans& orphans_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_ENVELOPES_H_
