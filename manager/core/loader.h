// Reads the durable image.
#ifndef MOSA_MANAGER_CORE_LOADER_H_
#define MOSA_MANAGER_CORE_LOADER_H_

#include <cstdint>
#include <string_view>

#include "manager/core/cluster.h"
#include "manager/core/copy_queue.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/generations.h"
#include "manager/core/groups.h"
#include "manager/core/hint_rules.h"
#include "manager/core/lifetimes.h"
#include "manager/core/limits.h"
#include "manager/core/node_table.h"
#include "manager/core/recalls.h"
#include "manager/core/records.h"
#include "manager/core/recovery_rules.h"
#include "manager/core/reply_logs.h"
#include "manager/core/runs.h"
#include "manager/core/session_table.h"
#include "manager/core/staging.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"
#include "manager/core/writer_fences.h"

namespace mosa::manager {

class Loader {
 public:
  Loader(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes, SessionTable& sessions,
         CopyWork& copy, WriterFences& fences, Groups& groups, HintRules& rules, Runs& runs,
         TextPool& texts, FileHints& hints, Limits& limits, ReplyLogs& reply_logs, Recalls& recalls,
         Lifetimes& lifetimes, CopyQueue& copy_queue, RecoveryRules& recovery_rules,
         Generations& generations, Staging& staging)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        copy_(copy),
        fences_(fences),
        groups_(groups),
        rules_(rules),
        runs_(runs),
        texts_(texts),
        hints_(hints),
        limits_(limits),
        reply_logs_(reply_logs),
        recalls_(recalls),
        lifetimes_(lifetimes),
        copy_queue_(copy_queue),
        recovery_rules_(recovery_rules),
        generations_(generations),
        staging_(staging) {}

  Status LoadRecord(std::string_view key, std::string_view value);
  Status FinishLoad(Time now);

  bool loaded() const { return loaded_; }

 private:
  void CountGroups();
  // Loads records whose keys are not one number: the cluster's own, groups, workflows.
  Status LoadNamed(std::string_view key, std::string_view value);
  Status LoadOwner(std::string_view key, std::string_view value);
  Status LoadSession(ClientId client, std::string_view key, std::string_view value);
  Status LoadRule(uint64_t number, std::string_view key, std::string_view value);
  void NoteRefusedHint(std::string_view whose, const HintValue& hint);
  Status LoadNode(uint64_t number, std::string_view key, std::string_view value);
  Status LoadInode(FileId file, const InodeRecord& record);
  Status CheckTree();
  Status LinkEntries();

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  CopyWork& copy_;
  WriterFences& fences_;
  Groups& groups_;
  HintRules& rules_;
  Runs& runs_;
  TextPool& texts_;
  FileHints& hints_;
  Limits& limits_;
  ReplyLogs& reply_logs_;
  Recalls& recalls_;
  Lifetimes& lifetimes_;
  CopyQueue& copy_queue_;
  RecoveryRules& recovery_rules_;
  Generations& generations_;
  Staging& staging_;
  bool cluster_loaded_ = false, image_found_ = false, loaded_ = false;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_LOADER_H_
