// What administrators ask about the cluster and about many files at once.
#ifndef MOSA_MANAGER_CORE_QUERIES_H_
#define MOSA_MANAGER_CORE_QUERIES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "manager/core/cluster.h"
#include "manager/core/copy_view.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_scan.h"
#include "manager/core/file_table.h"
#include "manager/core/file_view.h"
#include "manager/core/lock_table.h"
#include "manager/core/node_table.h"
#include "manager/core/quotas.h"
#include "manager/core/reply_logs.h"
#include "manager/core/runs.h"
#include "manager/core/session_table.h"
#include "manager/core/staging.h"
#include "manager/core/state_types.h"
#include "manager/core/text_pool.h"

namespace mosa::manager {

class Queries {
 public:
  Queries(Cluster& cluster, FileTable& files, NodeTable& nodes, SessionTable& sessions,
          LockTable& locks, Quotas& quotas, Runs& runs, TextPool& texts, FileHints& hints,
          ReplyLogs& reply_logs, CopyView& copy_view, Staging& staging, FileView& file_view)
      : cluster_(cluster),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        locks_(locks),
        quotas_(quotas),
        runs_(runs),
        texts_(texts),
        hints_(hints),
        reply_logs_(reply_logs),
        copy_view_(copy_view),
        staging_(staging),
        file_view_(file_view) {}

  std::vector<FileLocation> ListLocations(const std::vector<std::string>& paths,
                                          bool with_chunks) const;
  bool ContinueScan(FileScan& scan, size_t steps) const;
  ClusterStatus GetClusterStatus(Time now) const;
  std::vector<ReadableFile> ListReadable(const std::vector<std::string>& paths) const;

 private:
  std::vector<LimitStatus> ListLimits() const;
  bool CountUnstaged(UnstagedFiles& unstaged, FileId file, const Inode& inode) const;
  void ScanFile(FileScan& scan, FileId file, const Inode& inode) const;
  void ScanFiles(FileScan& scan, size_t& steps) const;
  bool ScanNames(FileScan& scan, FileId id, const Directory& directory, size_t& steps) const;
  void ScanLikelyDirectories(FileScan& scan, size_t& steps) const;
  void ScanAllDirectories(FileScan& scan, size_t& steps) const;

  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  LockTable& locks_;
  Quotas& quotas_;
  Runs& runs_;
  TextPool& texts_;
  FileHints& hints_;
  ReplyLogs& reply_logs_;
  CopyView& copy_view_;
  Staging& staging_;
  FileView& file_view_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_QUERIES_H_
