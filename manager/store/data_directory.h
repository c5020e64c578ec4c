// DataDirectory: the file system with the metadata. Tracks how full it is, and keeps a reserve that
// is released when it is full, so that the manager can still start and still write what frees room.
#ifndef MOSA_MANAGER_STORE_DATA_DIRECTORY_H_
#define MOSA_MANAGER_STORE_DATA_DIRECTORY_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace mosa::manager {

// How a file system of a given size is divided.
struct RoomPlan {
  uint64_t buffer_bytes = 0;     // RocksDB's write buffer: flushed to a table when full.
  uint64_t log_bytes = 0;        // All of RocksDB's logs together.
  uint64_t reserve_bytes = 0;    // Enough to replay the logs and write the tables at a restart.
  uint64_t watermark_bytes = 0;  // Growth is refused if less than this is free besides the reserve.
  bool operator==(const RoomPlan&) const = default;
};
RoomPlan PlanRoom(uint64_t capacity_bytes);

// The state of the file system. Changes of `is_full` have hysteresis.
struct RoomView {
  uint64_t used_bytes = 0;
  uint64_t limit_bytes = 0;  // Nothing may grow from here on.
  bool is_full = false;
};
RoomView ViewRoom(const RoomPlan& plan, uint64_t capacity_bytes, uint64_t free_bytes,
                  bool has_reserve, bool was_full);

// Not thread-safe. At most one process has a directory open at a time.
class DataDirectory {
 public:
  // Makes the directory if it is missing, and releases the reserve of an earlier run. Unavailable
  // if another process has it open, whose reserve stays.
  static Result<DataDirectory> Open(const std::string& path);

  const RoomPlan& plan() const { return plan_; }
  uint64_t capacity_bytes() const { return capacity_bytes_; }

  // Measures free space again. Takes the reserve when there is room for it.
  RoomView Look();
  // Call when a write found no room.
  void GiveReserveUp();
  // Returns why nothing may grow, with numbers and what to do.
  std::string WhyFull(const RoomView& view) const;

 private:
  DataDirectory(std::string path, UniqueFd lock, uint64_t capacity_bytes);
  void TakeReserve();

  std::string path_, reserve_path_;
  UniqueFd lock_;
  uint64_t capacity_bytes_;
  RoomPlan plan_;
  bool has_reserve_ = false;
  bool was_full_ = false;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_STORE_DATA_DIRECTORY_H_
