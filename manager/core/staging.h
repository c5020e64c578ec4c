// Files that were copied out of the store, and at which version. The version counts commits, and a
// mount that writes commits later. So a copy is accepted only when no client has the file open for
// writing. The end of a write open may be reported too early (several descriptors share one), so
// every mount that knows the file is asked first.
#ifndef MOSA_MANAGER_CORE_STAGING_H_
#define MOSA_MANAGER_CORE_STAGING_H_

#include <cstdint>
#include <map>

#include "absl/container/btree_map.h"
#include "manager/core/cluster.h"
#include "manager/core/delegations.h"
#include "manager/core/file_table.h"
#include "manager/core/generations.h"
#include "manager/core/interests.h"
#include "manager/core/recalls.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/writer_fences.h"

namespace mosa::manager {

class Staging {
 public:
  Staging(Step& step, Cluster& cluster, FileTable& files, SessionTable& sessions,
          WriterFences& fences, Interests& interests, Recalls& recalls, Generations& generations,
          Delegations& delegations)
      : step_(step),
        cluster_(cluster),
        files_(files),
        sessions_(sessions),
        fences_(fences),
        interests_(interests),
        recalls_(recalls),
        generations_(generations),
        delegations_(delegations) {}

  void NoteWriter(Session& session, FileId file);
  void Forget(FileId file);
  bool IsStaged(FileId file, const Inode& inode) const;
  void Handle(const MarkStaged& command);
  void Handle(const RecallMakers& command);

  void Load(FileId file, uint64_t data_version) { staged_[file] = data_version; }

 private:
  StageOutcome Stage(const StagedFile& staged);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  SessionTable& sessions_;
  WriterFences& fences_;
  Interests& interests_;
  Recalls& recalls_;
  Generations& generations_;
  Delegations& delegations_;
  absl::btree_map<FileId, uint64_t> staged_;  // The data_version that was copied out.
  // Versions being staged while mounts are asked whether they write.
  std::map<FileId, uint64_t> in_work_;
  Time users_recall_at_;  // No user may recall delegations before this.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_STAGING_H_
