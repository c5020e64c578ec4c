// The file system that the metadata lives on: how full it is, and a reserve that is given up when
// it is full, so that the manager can still start, and still write what frees room.
#ifndef MOSA_MANAGER_STORE_DATA_DIRECTORY_H_
#define MOSA_MANAGER_STORE_DATA_DIRECTORY_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace mosa::manager {

// How a file system of a given size is shared out.
struct RoomPlan {
  uint64_t buffer_bytes = 0;     // What RocksDB gathers before it writes a table.
  uint64_t log_bytes = 0;        // Its logs together.
  uint64_t reserve_bytes = 0;    // Enough to replay the logs and write the tables of a restart.
  uint64_t watermark_bytes = 0;  // With less than this free besides the reserve nothing may grow.
  bool operator==(const RoomPlan&) const = default;
};
RoomPlan PlanRoom(uint64_t capacity_bytes);

// What is free, and what that means. Decides with a margin, so that it does not go to and fro.
struct RoomView {
  uint64_t used_bytes = 0;
  uint64_t limit_bytes = 0;  // Nothing may grow from there on.
  bool is_full = false;
};
RoomView ViewRoom(const RoomPlan& plan, uint64_t capacity_bytes, uint64_t free_bytes,
                  bool has_reserve, bool was_full);

// One owner, one thread. Only one in all processes has a directory at a time.
class DataDirectory {
 public:
  // Makes the directory if it is missing, and gives the reserve of an earlier run up. Unavailable
  // if another one has it, whose reserve stays.
  static Result<DataDirectory> Open(const std::string& path);

  const RoomPlan& plan() const { return plan_; }
  uint64_t capacity_bytes() const { return capacity_bytes_; }

  // Looks again. Takes the reserve when there is room for it.
  RoomView Look();
  // To be called when a write found no room.
  void GiveReserveUp();
  // Why nothing may grow, with the numbers and what to do.
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
