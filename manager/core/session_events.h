// Sessions begin, end, and come back after a restart; time passes.
#ifndef MOSA_MANAGER_CORE_SESSION_EVENTS_H_
#define MOSA_MANAGER_CORE_SESSION_EVENTS_H_

#include <string_view>

#include "manager/core/answers.h"
#include "manager/core/cluster.h"
#include "manager/core/copy_queue.h"
#include "manager/core/copy_reviews.h"
#include "manager/core/delegations.h"
#include "manager/core/envelopes.h"
#include "manager/core/file_table.h"
#include "manager/core/generations.h"
#include "manager/core/grants.h"
#include "manager/core/hint_rules.h"
#include "manager/core/interests.h"
#include "manager/core/lifetimes.h"
#include "manager/core/lock_table.h"
#include "manager/core/node_events.h"
#include "manager/core/node_table.h"
#include "manager/core/recalls.h"
#include "manager/core/reclaim.h"
#include "manager/core/reply_logs.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/wait_queues.h"
#include "manager/core/writer_fences.h"

namespace mosa::manager {

class SessionEvents {
 public:
  SessionEvents(Step& step, WaitQueues& queues, Cluster& cluster, FileTable& files,
                NodeTable& nodes, SessionTable& sessions, CopyWork& copy, WriterFences& fences,
                Interests& interests, LockTable& locks, HintRules& rules, ReplyLogs& reply_logs,
                Recalls& recalls, Lifetimes& lifetimes, CopyQueue& copy_queue, Grants& grants,
                Generations& generations, Delegations& delegations, NodeEvents& node_events,
                CopyReviews& copy_reviews, Answers& answers, Reclaim& reclaim, Envelopes& envelopes)
      : step_(step),
        queues_(queues),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        copy_(copy),
        fences_(fences),
        interests_(interests),
        locks_(locks),
        rules_(rules),
        reply_logs_(reply_logs),
        recalls_(recalls),
        lifetimes_(lifetimes),
        copy_queue_(copy_queue),
        grants_(grants),
        generations_(generations),
        delegations_(delegations),
        node_events_(node_events),
        copy_reviews_(copy_reviews),
        answers_(answers),
        reclaim_(reclaim),
        envelopes_(envelopes) {}

  void Handle(const SessionRequest& command);
  void Handle(const StartSession& command);
  void Handle(const SessionLost& command);
  void Handle(const SessionClosed& command);
  void Handle(const Tick& command);
  void Handle(const Stalled& command);

 private:
  void ForgetHeld(Session& session, bool ended, bool clean);
  // `recalled`: since when what it held of directories is recalled.
  void RedeclareNames(Session& session, const std::vector<HeldName>& names,
                      const std::map<FileId, Time>& recalled);
  void Redeclare(Session& session, const SessionStart& start, bool was_known);
  void EndSession(ClientId client, std::string_view reason, bool clean);
  void EndGraceIfAllAreBack();
  void EndGrace();

  Step& step_;
  WaitQueues& queues_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  CopyWork& copy_;
  WriterFences& fences_;
  Interests& interests_;
  LockTable& locks_;
  HintRules& rules_;
  ReplyLogs& reply_logs_;
  Recalls& recalls_;
  Lifetimes& lifetimes_;
  CopyQueue& copy_queue_;
  Grants& grants_;
  Generations& generations_;
  Delegations& delegations_;
  NodeEvents& node_events_;
  CopyReviews& copy_reviews_;
  Answers& answers_;
  Reclaim& reclaim_;
  Envelopes& envelopes_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_SESSION_EVENTS_H_
