#include "manager/store/data_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace mosa::manager {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(PlanRoom, TheReserveHoldsTheLogsAndLeavesMostOfTheDirectory) {
  for (const uint64_t capacity : {96 * kMiB, 1024 * kMiB, uint64_t{1} << 40}) {
    const RoomPlan plan = PlanRoom(capacity);
    EXPECT_GE(plan.reserve_bytes, plan.log_bytes + 3 * plan.buffer_bytes);
    EXPECT_LT(plan.reserve_bytes + plan.watermark_bytes, capacity / 3);
  }
}

TEST(ViewRoom, IsFullBelowTheWatermarkAndNotAgainJustAboveIt) {
  const uint64_t capacity = 800 * kMiB;
  const RoomPlan plan = PlanRoom(capacity);
  const uint64_t mark = plan.watermark_bytes;
  EXPECT_FALSE(ViewRoom(plan, capacity, mark, true, false).is_full);
  EXPECT_TRUE(ViewRoom(plan, capacity, mark - 1, true, false).is_full);
  EXPECT_TRUE(ViewRoom(plan, capacity, mark + 1, true, true).is_full);
  EXPECT_FALSE(ViewRoom(plan, capacity, mark + mark / 4, true, true).is_full);
  // Without its reserve the directory keeps as much free for it.
  EXPECT_TRUE(ViewRoom(plan, capacity, mark, false, false).is_full);
  const RoomView view = ViewRoom(plan, capacity, mark, true, false);
  EXPECT_EQ(view.used_bytes, view.limit_bytes);
}

TEST(DataDirectory, TakesAReserveAndGivesItUp) {
  std::string pattern = (std::filesystem::temp_directory_path() / "mosa-room-XXXXXX").string();
  const std::filesystem::path path = ::mkdtemp(pattern.data());
  auto directory = DataDirectory::Open(path / "data");
  ASSERT_TRUE(directory.ok()) << directory.status();
  const RoomView view = directory->Look();
  if (!view.is_full) {
    EXPECT_EQ(std::filesystem::file_size(path / "data/reserve"), directory->plan().reserve_bytes);
  }
  directory->GiveReserveUp();
  EXPECT_FALSE(std::filesystem::exists(path / "data/reserve"));
  EXPECT_NE(directory->WhyFull(view).find(path.string()), std::string::npos);
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace mosa::manager
