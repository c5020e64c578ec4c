// What the core does about state that it may have forgotten (recovery.h): objects of nodes that no
// file owns, and files whose objects are short.
#ifndef MOSA_MANAGER_CORE_RECOVERY_RULES_H_
#define MOSA_MANAGER_CORE_RECOVERY_RULES_H_

#include <cstdint>
#include <set>
#include <vector>

#include "manager/core/cluster.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/node_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/writer_fences.h"

namespace mosa::manager {

class RecoveryRules {
 public:
  RecoveryRules(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes, CopyWork& copy,
                WriterFences& fences, FileHints& hints)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        copy_(copy),
        fences_(fences),
        hints_(hints) {}

  void BeginEmpty();
  // Recovers if the image may lack changes. Raises the versions of files with bytes to the floor
  // that this or an earlier recovery has set.
  void RecoverLoaded();
  // Orders the node to drop unowned objects, or to put those aside that a forgotten file may own.
  // An id of which the node holds an object is never given to another file. Returns the node's
  // objects, without those that have lost bytes since they were committed.
  std::set<FileId> TakeObjects(NodeId node, const NodeRegistration& registration);
  // Returns true if a file of `size_bytes` would lack bytes of its first copy.
  bool WouldLack(FileId file, const Inode& inode, uint64_t size_bytes) const;
  // Call when a file has become shorter after its objects were cut. Objects that were marked lost
  // for being short may now suffice.
  void NoteShortened(FileId file, Inode& inode);
  void Handle(const NodeReportedAside& command);

 private:
  struct Unowned {
    std::vector<FileId> dropped;  // Their files are known to be gone.
    std::vector<FileId> aside;    // Their files may have been forgotten.
  };
  void KeepId(FileId file);
  Unowned FindUnowned(NodeId node, const NodeRegistration& registration);
  bool IsShort(FileId file, const HeldSize& held, NodeId node) const;
  std::set<FileId> PresentOn(NodeId node, const NodeRegistration& registration);
  // Returns true if the object that the file lost on `node` for being short has all bytes that a
  // file of `size_bytes` has there.
  bool HoldsUpTo(FileId file, const Inode& inode, uint64_t size_bytes, NodeId node) const;
  static bool HasCommittedBytes(const FileBytes& bytes, NodeId node);
  // Takes the full list of what the node has put aside. Orders it to restore objects of known
  // files.
  void NoteAside(NodeId node, const std::vector<AsideObject>& objects);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  CopyWork& copy_;
  WriterFences& fences_;
  FileHints& hints_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_RECOVERY_RULES_H_
