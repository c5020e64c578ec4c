// Objects with bytes that are no longer their file's. A file may be cut to nothing while a node
// that holds some of its bytes does not answer. It is then laid out anew, and every node drops its
// object, those that are silent when they answer again. So does a node whose copy is no longer
// needed. Until a node has reported that, the file gets no byte there: the old bytes would be read
// again in the holes between new ones.
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
