// Objects that may hold bytes which are no longer their file's, because they could not be cut or
// dropped: no byte is placed on their nodes before they are gone.
#ifndef MOSA_MANAGER_CORE_UNCUT_OBJECTS_H_
#define MOSA_MANAGER_CORE_UNCUT_OBJECTS_H_

#include <cstdint>
#include <vector>

#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/node_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"

namespace mosa::manager {

class UncutObjects {
 public:
  UncutObjects(Step& step, FileTable& files, NodeTable& nodes, CopyWork& copy, FileHints& hints)
      : step_(step), files_(files), nodes_(nodes), copy_(copy), hints_(hints) {}

  void Note(FileId file, Inode& inode, const std::vector<NodeId>& nodes);
  bool AwaitsDrops(FileId file, const Inode& inode) const;
  void OrderDrops(Node& node);
  void TakeFrom(Node& node, bool new_incarnation);
  void NoteDropsDone(Node& node, uint64_t drops_done);
  void NoteFurtherCopies(Inode& inode);
  void ForgetCommittedBeyondEnd(Inode& inode);

 private:
  void Forget(Node& node, FileId file);

  Step& step_;
  FileTable& files_;
  NodeTable& nodes_;
  CopyWork& copy_;
  FileHints& hints_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_UNCUT_OBJECTS_H_
