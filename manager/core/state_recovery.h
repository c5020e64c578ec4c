// What ManagerCore::State does about things that may have been forgotten (recovery.h), on its own
// tables. A view of the state for the length of one step. Only the sources of ManagerCore include
// it.
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
  // Recovers if the image may have forgotten something, and gives files with bytes the versions
  // that a recovery, this or an earlier one, has raised them to.
  void FinishLoad();

  // ---- a node registers
  // Has the node drop what no file owns, or put aside what a file may own that was forgotten. An id
  // that the node holds an object of is never given to another file. Returns the objects that the
  // node has, without those that have lost bytes since they were committed.
  std::set<FileId> TakeObjects(NodeId node, const NodeRegistration& registration);
  // The file has become shorter, and the objects of its layout had been cut for that before. What a
  // node has of it may suffice now, although it was marked as lost for being short.
  void NoteShortened(FileId file, Inode& inode);
  // All that the node has put aside. What belongs to files that are known by now is ordered back.
  void NoteAside(NodeId node, const std::vector<AsideObject>& objects);

  // ---- what becomes of it
  // Where adopted files go: the first of "lost+found", "lost+found.1" and so on that is free or a
  // directory which root alone may enter, so that nobody else can have made it, or reads there.
  struct AdoptedPlace {
    std::string name;
    std::optional<FileId> directory;  // If it is there already.
  };
  std::optional<AdoptedPlace> FindAdoptedPlace() const;
  AdoptOutcome Adopt(FileId file);
  AdoptOutcome Discard(FileId file);
  std::vector<AsideFile> ListAside(size_t files_max, FileId after) const;

 private:
  struct Unowned {
    std::vector<FileId> dropped;  // Belonged to files that are known to be gone.
    std::vector<FileId> aside;    // May belong to files that were forgotten.
  };
  Unowned FindUnowned(NodeId node, const NodeRegistration& registration);
  std::set<FileId> PresentOn(NodeId node, const NodeRegistration& registration);
  // The directory for adopted files, which is made if it is not there. Nothing if all names for it
  // are taken.
  std::optional<FileId> AdoptedDirectory();
  // `name`, or one that begins with it and that nothing has.
  std::string FreeName(FileId directory, std::string_view name) const;
  void MakeAdopted(FileId file, FileId directory, const std::string& name,
                   const JoinedParts& joined);
  void KeepId(FileId file);
  bool IsShort(FileId file, const HeldSize& held, NodeId node) const;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_STATE_RECOVERY_H_
