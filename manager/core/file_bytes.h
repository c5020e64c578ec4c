// What a file's record says of its bytes: the objects on nodes that hold them and their copies.
// Functions of one record, without the state of nodes.
#ifndef MOSA_MANAGER_CORE_FILE_BYTES_H_
#define MOSA_MANAGER_CORE_FILE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "manager/core/state_types.h"

namespace mosa::manager {

// Attributes as they are recorded. Names of a directory and allocated bytes are not counted.
Attributes StoredAttributes(const Inode& inode);
FileBytes& BytesOf(Inode& inode);
// Null: the node has no object of the file.
const NodeObject* FindObject(const FileBytes& bytes, NodeId node);
NodeObject& ObjectOn(FileBytes& bytes, NodeId node);
bool HasCommitted(const NodeObject& object);
void NoteCopies(NodeObject& object);
// Returns true if the stripe position holds a byte of a file of this size. The first position
// always counts, so that an empty file has copies too.
bool HasBytes(const FileBytes& bytes, uint64_t size_bytes, size_t segment, size_t position);
bool IsLost(const FileBytes& bytes, NodeId node);
std::set<NodeId> NamedNodes(const FileBytes& bytes);
bool IsFirstCopyLost(const Inode& inode);
// Carries over the copies of segments that `bytes` still has unchanged.
void KeepCells(FileBytes& bytes, const std::vector<Segment>& before);
// Readers may have bytes of the file that they got from nodes.
bool ShowsBytesOfNodes(const Inode& inode);
bool HasUnmarkedCopies(const Inode& inode);
bool HoldsLastCommit(const Inode& inode, const CopyCell& cell);
bool IsDamaged(const FileBytes& bytes, NodeId node);
bool TellsOfObjects(const CommitRequest& request);
bool MayHoldOtherBytes(const FileBytes& bytes, NodeId node, const std::vector<NodeId>& first);
std::vector<NodeId> UncutNodesOf(const Inode& inode);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_FILE_BYTES_H_
