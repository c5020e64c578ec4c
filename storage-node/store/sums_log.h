// SumsLog: the records of core/sums_record.h, in files beside the objects.
//
// Each record is appended by one write, so that it survives the process; Sync makes records survive
// the machine. Files are numbered: existing ones are read in order, and new records go to a new
// file. BeginNext and FinishNext replace all files by one that holds only what is still true.
//
// Thread-safe. If a record cannot be written, the log removes all files and records nothing more: a
// record that no longer holds must never be found again.
#ifndef MOSA_STORAGE_NODE_STORE_SUMS_LOG_H_
#define MOSA_STORAGE_NODE_STORE_SUMS_LOG_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "storage-node/core/sums_record.h"

namespace mosa::node {

class SumsLog {
 public:
  // Opens directory `name` below `parent_fd`; makes it if absent. `keep_before_damage`: records
  // before the damage in a file count; otherwise any damage discards all checksums. Generations
  // always count: they only rise.
  static Result<std::unique_ptr<SumsLog>> Open(int parent_fd, const std::string& name,
                                               bool keep_before_damage);

  // Returns the records that Open read. Call once.
  SumsFound TakeFound() { return std::move(found_); }
  // True if Open met data that it could not read.
  bool found_damage() const { return found_damage_; }
  // True if Open found any log files.
  bool found_any() const { return found_any_; }

  Status Append(std::string_view record);
  Status Sync();
  // Starts a new file for later records. Earlier files remain until FinishNext.
  Status BeginNext();
  // Removes all files but the last.
  Status FinishNext();
  uint64_t bytes() const;  // Size of the last file.
  bool given_up() const;

 private:
  explicit SumsLog(UniqueFd directory) : directory_(std::move(directory)) {}
  Status Read(bool keep_before_damage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status OpenNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const UniqueFd directory_;
  SumsFound found_;
  bool found_damage_ = false, found_any_ = false;

  mutable SystemMutex mutex_;
  std::set<uint64_t> files_ ABSL_GUARDED_BY(mutex_);  // Numbers of the files that exist.
  UniqueFd last_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_STORE_SUMS_LOG_H_
