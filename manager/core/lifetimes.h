// Files that are to be removed: temporary ones when their workflow ends, and those with a number of
// readers when these have succeeded. See Reclaim.
#ifndef MOSA_MANAGER_CORE_LIFETIMES_H_
#define MOSA_MANAGER_CORE_LIFETIMES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "manager/core/cluster.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/runs.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"

namespace mosa::manager {

std::string_view RunOf(std::string_view task);
std::optional<Failure> CheckRun(std::string_view run);

class Lifetimes {
 public:
  Lifetimes(Step& step, Cluster& cluster, FileTable& files, Runs& runs, TextPool& texts,
            FileHints& hints)
      : step_(step), cluster_(cluster), files_(files), runs_(runs), texts_(texts), hints_(hints) {}

  // Called when a file gets its hints. `name` is empty if unknown.
  void Follow(FileId file, const Inode& inode, std::string_view name);
  void Forget(FileId file);
  void ContentChanged(FileId file);
  bool CountsReaders(FileId file) const;
  void LoadReader(FileId file, uint64_t reader, bool counts);
  void FinishLoad();
  void NoteRead(FileId file, std::string_view task);
  void Handle(const BeginWorkflow& command);
  // PermissionDenied if the run has begun and a user other than its owner asks.
  Status CheckRunOwner(std::string_view run, Asker asker) const;
  void Handle(const EndTask& command);
  void MarkDue(FileId file) { MarkDue(file, by_file_.at(file)); }
  // Rechecks a due file after a change in which clients may have it open.
  void RecheckDue(FileId file);
  void RecheckAll() { due_checks_ = due_; }
  void NoteHolder(FileId file, ClientId client, bool holds_open);
  // Finds the file's name. Files made with their lifetime have it recorded. Scanning a directory
  // finds the names of all such files in it.
  bool FindName(FileId file);
  void NoteName(FileId file, const std::string& name);

  void ForgetHolder(ClientId client);
  const std::map<FileId, Lifetime>& by_file() const { return by_file_; }
  const std::set<FileId>& due() const { return due_; }
  size_t CountDueChecks() const { return due_checks_.size(); }
  std::set<FileId> TakeDueChecks() { return std::exchange(due_checks_, {}); }

 private:
  void MarkDue(FileId file, Lifetime& lifetime);
  void ForgetReaders(FileId file, Lifetime& lifetime);
  void SetReader(FileId file, Lifetime& lifetime, uint64_t reader, bool counts);
  void StopWaiting(FileId file, uint64_t reader);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  Runs& runs_;
  TextPool& texts_;
  FileHints& hints_;
  std::map<FileId, Lifetime> by_file_;  // Files with one name and a lifetime other than `keep`.
  std::set<FileId> due_;                // To be removed once no client has them open.
  std::set<FileId> due_checks_;         // Due files that a client may have closed.
  std::map<uint64_t, std::set<FileId>> waiting_reads_;  // By reader that does not count yet.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_LIFETIMES_H_
