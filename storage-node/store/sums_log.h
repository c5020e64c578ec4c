// SumsLog: the records of core/sums_record.h in files beside the objects.
//
// Records are appended by one write each, so that they outlive the process; Sync makes them outlive
// the machine. Files are numbered: those that are found are read in order, and records go to a new
// one. BeginNext and FinishNext replace all files by one with what is still true.
//
// Safe from any thread. After a record could not be written, all that was recorded is removed and
// nothing is recorded any more: a record that no longer holds must never be found again.
#ifndef MOSA_STORAGE_NODE_STORE_SUMS_LOG_H_
#define MOSA_STORAGE_NODE_STORE_SUMS_LOG_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "storage-node/core/sums_record.h"

namespace mosa::node {

class SumsLog {
 public:
  // In directory `name` below `parent_fd`, made if absent. `keep_before_damage`: what is read
  // before damage in a file counts; else damage makes all checksums count for nothing. Generations
  // always count: they only rise.
  static Result<std::unique_ptr<SumsLog>> Open(int parent_fd, const std::string& name,
                                               bool keep_before_damage);

  // What was found. To be called once.
  SumsFound TakeFound() { return std::move(found_); }
  // True if something was written that cannot be read.
  bool found_damage() const { return found_damage_; }
  // True if records were kept before at all.
  bool found_any() const { return found_any_; }

  Status Append(std::string_view record);
  Status Sync();
  // Later records go to a new file. Until FinishNext those before count as well.
  Status BeginNext();
  // Removes all files but the last.
  Status FinishNext();
  uint64_t bytes() const;  // Size of the last file.
  bool given_up() const;

 private:
  explicit SumsLog(UniqueFd directory) : directory_(std::move(directory)) {}
  Status Read(bool keep_before_damage);
  Status OpenNext();  // Needs mutex_, but for Open.
  void GiveUp();      // Needs mutex_.

  const UniqueFd directory_;
  SumsFound found_;
  bool found_damage_ = false, found_any_ = false;

  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::set<uint64_t> files_;  // Numbers of the files that exist.
  UniqueFd last_;
  uint64_t last_bytes_ = 0;
  bool given_up_ = false;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_STORE_SUMS_LOG_H_
