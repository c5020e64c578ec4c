// Work on copies that is yet to be done: files to examine, orders to cancel, and objects to drop.
#ifndef MOSA_MANAGER_CORE_COPY_QUEUE_H_
#define MOSA_MANAGER_CORE_COPY_QUEUE_H_

#include <cstdint>
#include <vector>

#include "manager/core/file_table.h"
#include "manager/core/node_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"

namespace mosa::manager {

inline constexpr Duration kNextSlice = Milliseconds(1);
inline constexpr Duration kFailedFor = Seconds(5);

struct CopyPlace {
  size_t segment = 0;
  size_t cell = 0;
  NodeId current{};  // The node it is fetched from now.
  NodeId avoided{};  // The node it could not be fetched from.
  bool follow = false;
};

class CopyQueue {
 public:
  CopyQueue(Step& step, FileTable& files, NodeTable& nodes, CopyWork& copy)
      : step_(step), files_(files), nodes_(nodes), copy_(copy) {}

  void ReviewLater(FileId file, const Inode& inode);
  // Examines all files, some thousand per step.
  void StartScan();
  void FindLeftovers(FileId file, FileBytes& bytes);
  std::vector<NodeId> StillOrdered(FileId file) const;
  void EndTask(FileId file, NodeId node);
  void Forget(FileId file);
  void ForgetBy(NodeId node);
  void Retry(FileId file, Time at);
  bool MayGetCopy(FileId file, NodeId node) const;

 private:
  Step& step_;
  FileTable& files_;
  NodeTable& nodes_;
  CopyWork& copy_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_COPY_QUEUE_H_
