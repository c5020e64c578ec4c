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
  RareLog log(2, Milliseconds(200));
  for (int i = 0; i < 5; ++i) log.Warning("line {}", i);
  ASSERT_EQ(LinesOf(path).size(), 2U);
  EXPECT_TRUE(LinesOf(path)[1].ends_with("warning test: line 1"));
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  for (int i = 5; i < 9; ++i) log.Info("line {}", i);
  ASSERT_EQ(LinesOf(path).size(), 4U);
  EXPECT_TRUE(LinesOf(path)[2].ends_with("info test: line 5 (3 more since the last line)"));
  EXPECT_TRUE(LinesOf(path)[3].ends_with("line 6"));
  ASSERT_TRUE(OpenLog({.program = "test", .file = ""}).ok());
  fs::remove_all(pattern);
}

}  // namespace
}  // namespace mosa
