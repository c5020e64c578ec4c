// Which copies of a file can be read now, what is lost or damaged, and where readers go.
//
// Writers store in the first copy and report to the manager at the commit. Until then the other
// copies hold the last commit and remain valid. So before a client may store, the file's record is
// marked (`may_differ`), also if there is only one copy, since readers keep pages. The last
// close ends the mark, or the file's next version if nobody has it open for writing any more. After
// a new version, all other copies are older and must be compared before they count again. A client
// that ends without a commit leaves an unknown number of bytes in the first copy. Its files
// therefore get a new version, as do all marked files that nobody has open after a restart of the
// manager (Generations). So readers are sent to the first copy, and to others only once they equal
// it.
//
// If the first copy is lost before that, any copy with the last commit replaces it. Each of its
// bytes is from the last commit or was stored later, since such a copy is compared only with the
// first one, or with others like itself (CopyOrdering::SourceFor). A program may find exactly that
// after a writer has failed: acknowledged bytes are present, missing ones were not acknowledged.
#ifndef MOSA_MANAGER_CORE_COPY_VIEW_H_
#define MOSA_MANAGER_CORE_COPY_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "manager/core/file_hints.h"
#include "manager/core/node_table.h"
#include "manager/core/state_types.h"
#include "manager/core/text_pool.h"

namespace mosa::manager {

class CopyView {
 public:
  CopyView(NodeTable& nodes, TextPool& texts, FileHints& hints)
      : nodes_(nodes), texts_(texts), hints_(hints) {}

  // Returns the first node, if any, whose loss or silence makes bytes of the file unavailable.
  std::optional<NodeId> LostAt(const Inode& inode) const;
  bool IsValid(const Inode& inode, size_t segment, size_t cell) const;
  bool MustCopy(const Inode& inode, size_t segment, size_t cell) const;
  Layout ReaderLayoutOf(const Inode& inode) const;
  std::optional<NodeId> UncoveredNode(const Inode& inode, bool count_silent) const;
  uint32_t ValidCopies(const Inode& inode) const;
  bool HasEnoughHolders(const FileBytes& bytes, size_t segment, uint32_t wanted) const;
  std::vector<NodeId> NodesWithOlderBytes(const Inode& inode, uint64_t offset) const;
  std::optional<NodeId> DamagedAt(const Inode& inode) const;
  std::string DamageOf(const Inode& inode) const;
  std::vector<NodeId> EmptyNodesOf(const Inode& inode, const Layout& layout) const;
  std::vector<std::string> NodeNamesOf(const Inode& inode) const;
  Result<std::string> ChunkLocationsOf(const Inode& inode) const;

 private:
  NodeTable& nodes_;
  TextPool& texts_;
  FileHints& hints_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_COPY_VIEW_H_
