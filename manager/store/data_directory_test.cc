#include "manager/store/data_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/units.h"

namespace mosa::manager {
namespace {

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
  // Without its reserve, the directory keeps the same amount free for it.
  EXPECT_TRUE(ViewRoom(plan, capacity, mark, false, false).is_full);
  const RoomView view = ViewRoom(plan, capacity, mark, true, false);
  EXPECT_EQ(view.used_bytes, view.limit_bytes);
}

std::filesystem::path MakeTemporary() {
  std::string pattern = (std::filesystem::temp_directory_path() / "mosa-room-XXXXXX").string();
  return ::mkdtemp(pattern.data());
}

TEST(DataDirectory, TakesAReserveAndGivesItUp) {
  const std::filesystem::path path = MakeTemporary();
  auto directory = DataDirectory::Open(path / "data");
  ASSERT_TRUE(directory.ok()) << directory.status();
  const RoomView view = directory->Look();
  if (!view.is_full) {
    EXPECT_EQ(std::filesystem::file_size(path / "data/mosa-reserve"),
              directory->plan().reserve_bytes);
  }
  directory->GiveReserveUp();
  EXPECT_FALSE(std::filesystem::exists(path / "data/mosa-reserve"));
  EXPECT_NE(directory->WhyFull(view).find(path.string()), std::string::npos);
  std::filesystem::remove_all(path);
}

TEST(DataDirectory, ASecondManagerLeavesTheReserveOfTheFirstAlone) {
  const std::filesystem::path path = MakeTemporary();
  const std::filesystem::path reserve = path / "mosa-reserve";
  {
    auto first = DataDirectory::Open(path);
    ASSERT_TRUE(first.ok()) << first.status();
    std::ofstream(reserve) << "taken";
    const auto second = DataDirectory::Open(path);
    EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
    EXPECT_NE(MessageOf(second.status()).find("another manager"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(reserve));
  }
  EXPECT_TRUE(DataDirectory::Open(path).ok());
  EXPECT_FALSE(std::filesystem::exists(reserve));
  std::filesystem::remove_all(path);
}

TEST(DataDirectory, LeavesFilesOfOthersAlone) {
  const std::filesystem::path path = MakeTemporary();
  std::ofstream(path / "reserve") << "seats";
  auto directory = DataDirectory::Open(path);
  ASSERT_TRUE(directory.ok()) << directory.status();
  directory->Look();
  directory->GiveReserveUp();
  EXPECT_EQ(std::filesystem::file_size(path / "reserve"), 5U);
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace mosa::manager
