// The implementation of ManagerCore: its tables and its rules, put together. Each has a header of
// its own. Tables are plain data that rules share; a rule borrows tables, and only rules that are
// declared before it. Only manager_core.cc includes this header.
#ifndef MOSA_MANAGER_CORE_STATE_H_
#define MOSA_MANAGER_CORE_STATE_H_

#include "manager/core/adoption.h"
#include "manager/core/answers.h"
#include "manager/core/byte_requests.h"
#include "manager/core/cluster.h"
#include "manager/core/copy_ordering.h"
#include "manager/core/copy_planner.h"
#include "manager/core/copy_queue.h"
#include "manager/core/copy_reviews.h"
#include "manager/core/copy_view.h"
#include "manager/core/delegations.h"
#include "manager/core/envelopes.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/file_view.h"
#include "manager/core/generations.h"
#include "manager/core/grants.h"
#include "manager/core/groups.h"
#include "manager/core/hint_commands.h"
#include "manager/core/hint_rules.h"
#include "manager/core/interests.h"
#include "manager/core/lifetimes.h"
#include "manager/core/limits.h"
#include "manager/core/loader.h"
#include "manager/core/lock_table.h"
#include "manager/core/manager_core.h"
#include "manager/core/names.h"
#include "manager/core/node_events.h"
#include "manager/core/node_table.h"
#include "manager/core/orphans.h"
#include "manager/core/placing.h"
#include "manager/core/queries.h"
#include "manager/core/quotas.h"
#include "manager/core/recalls.h"
#include "manager/core/reclaim.h"
#include "manager/core/recovery_rules.h"
#include "manager/core/reply_logs.h"
#include "manager/core/runs.h"
#include "manager/core/session_events.h"
#include "manager/core/session_table.h"
#include "manager/core/staging.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"
#include "manager/core/uncut_objects.h"
#include "manager/core/wait_queues.h"
#include "manager/core/writer_fences.h"
#include "manager/core/xattrs.h"

namespace mosa::manager {

struct ManagerCore::State {
  explicit State(ManagerOptions options);

  Effects Run(const Command& command, Time now);
  void Dispatch(const Command& command);
  void FinishStep();

  // ---- tables
  manager::Step step;
  Cluster cluster;
  TextPool texts;
  HintRules rules;
  Groups groups;
  WriterFences fences;
  Runs runs;
  Quotas quotas;
  LockTable locks;
  Interests interests;
  CopyWork copy;
  WaitQueues queues;
  FileTable files;
  NodeTable nodes;
  SessionTable sessions;

  // ---- rules
  FileHints hints;
  Limits limits;
  ReplyLogs reply_logs;
  CopyView copy_view;
  Recalls recalls;
  Lifetimes lifetimes;
  CopyQueue copy_queue;
  UncutObjects uncut_objects;
  Grants grants;
  RecoveryRules recovery_rules;
  Generations generations;
  Delegations delegations;
  CopyOrdering copy_ordering;
  Staging staging;
  CopyPlanner copy_planner;
  NodeEvents node_events;
  CopyReviews copy_reviews;
  Placing placing;
  FileView file_view;
  Loader loader;
  ByteRequests byte_requests;
  Namespace names;
  Xattrs xattrs;
  Answers answers;
  Queries queries;
  Reclaim reclaim;
  HintCommands hint_commands;
  Orphans orphans;
  Adoption adoption;
  Envelopes envelopes;
  SessionEvents session_events;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_STATE_H_
