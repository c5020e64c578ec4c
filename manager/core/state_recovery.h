// ManagerCore::State's rules for state that may have been forgotten (recovery.h). A view of the
// state that lives for one step. Only the sources of ManagerCore include it.
#ifndef MOSA_MANAGER_CORE_STATE_RECOVERY_H_
#define MOSA_MANAGER_CORE_STATE_RECOVERY_H_

#include <set>
#include <string>
#include <vector>

#include "manager/core/state.h"

namespace mosa::manager {

struct ManagerCore::State::RecoveryRules {
  State& state;

  // ---- loading
  void BeginEmpty();
  // Recovers if the image may lack changes. Raises the versions of files with bytes to the floor
  // that this or an earlier recovery has set.
  void FinishLoad();

  // ---- registration of a node
  // Orders the node to drop unowned objects, or to put those aside that a forgotten file may own.
  // An id of which the node holds an object is never given to another file. Returns the node's
  // objects, without those that have lost bytes since they were committed.
  std::set<FileId> TakeObjects(NodeId node, const NodeRegistration& registration);
  // Returns true if the object that the file lost on `node` for being short has all bytes that a
  // file of `size_bytes` has there.
  bool HoldsUpTo(FileId file, const Inode& inode, uint64_t size_bytes, NodeId node) const;
  // Returns true if a file of `size_bytes` would lack bytes of its first copy.
  bool WouldLack(FileId file, const Inode& inode, uint64_t size_bytes) const;
  // Call when a file has become shorter after its objects were cut. Objects that were marked lost
  // for being short may now suffice.
  void NoteShortened(FileId file, Inode& inode);
  // Takes the full list of what the node has put aside. Orders it to restore objects of known
  // files.
  static bool HasCommittedBytes(const FileBytes& bytes, NodeId node);
  void NoteAside(NodeId node, const std::vector<AsideObject>& objects);

  // ---- adoption
  // Where adopted files go: the first of "lost+found", "lost+found.1", ... that is free, or is a
  // directory that only root may enter. So no user can have made it, and none can read there.
  struct AdoptedPlace {
    std::string name;
    std::optional<FileId> directory;  // If it already exists.
  };
  std::optional<AdoptedPlace> FindAdoptedPlace() const;
  AdoptOutcome Adopt(FileId file);
  AdoptOutcome Discard(FileId file);
  std::vector<AsideFile> ListAside(size_t files_max, FileId after) const;

 private:
  struct Unowned {
    std::vector<FileId> dropped;  // Their files are known to be gone.
    std::vector<FileId> aside;    // Their files may have been forgotten.
  };
  Unowned FindUnowned(NodeId node, const NodeRegistration& registration);
  std::set<FileId> PresentOn(NodeId node, const NodeRegistration& registration);
  // Returns the directory for adopted files and makes it if necessary. Nothing if all its names are
  // taken.
  std::optional<FileId> AdoptedDirectory();
  // Returns `name`, or an unused name that begins with it.
  std::string FreeName(FileId directory, std::string_view name) const;
  void MakeAdopted(FileId file, FileId directory, const std::string& name,
                   const JoinedParts& joined);
  void KeepId(FileId file);
  bool IsShort(FileId file, const HeldSize& held, NodeId node) const;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_STATE_RECOVERY_H_
