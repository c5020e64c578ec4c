#include "common/base/rare_log.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace mosa {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> LinesOf(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(RareLog, WritesSomeLinesAndCountsTheOthers) {
  std::string pattern = fs::temp_directory_path().string() + "/mosa-log-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const fs::path path = fs::path(pattern) / "log";
  ASSERT_TRUE(OpenLog({.program = "test", .file = path}).ok());
  RareLog log(2, Seconds(2));
  for (int i = 0; i < 5; ++i) log.Warning("line {}", i);
  std::vector<std::string> lines = LinesOf(path);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].ends_with("warning test: line 0"));
  EXPECT_TRUE(lines[1].ends_with("line 1 (others are left out for up to 2 s)"));
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  for (int i = 5; i < 9; ++i) log.Info("line {}", i);
  lines = LinesOf(path);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_TRUE(lines[2].ends_with("info test: line 5 (3 other lines were left out)"));
  EXPECT_TRUE(lines[3].ends_with("line 6 (others are left out for up to 2 s)"));
  ASSERT_TRUE(OpenLog({.program = "test", .file = ""}).ok());
  fs::remove_all(pattern);
}

}  // namespace
}  // namespace mosa
