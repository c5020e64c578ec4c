#include "common/base/daemon.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "common/base/exit_code.h"

namespace mosa {
namespace {

namespace fs = std::filesystem;

class ReadyFile : public ::testing::Test {
 protected:
  ReadyFile() {
    std::string pattern = fs::temp_directory_path().string() + "/mosa-daemon-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  ~ReadyFile() override { fs::remove_all(directory_); }

  std::string Path() const { return directory_ / "ready"; }
  std::string Text() const {
    std::ifstream file(Path());
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

 private:
  fs::path directory_;
};

TEST_F(ReadyFile, HoldsTheFactsAndTheProcessOnOneLine) {
  ASSERT_TRUE(WriteReadyFile(Path(), {{"address", "127.0.0.1:7400"}}).ok());
  const std::string text = Text();
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const auto ready = nlohmann::json::parse(text);
  EXPECT_EQ(ready.at("address"), "127.0.0.1:7400");
  EXPECT_EQ(ready.at("pid").get<pid_t>(), ::getpid());
  EXPECT_FALSE(fs::exists(Path() + ".part"));
}

TEST_F(ReadyFile, TakesAPathThatIsNotUtf8) {
  ASSERT_TRUE(WriteReadyFile(Path(), {{"mount", "/mnt/\xff"}}).ok());
  EXPECT_EQ(nlohmann::json::parse(Text()).at("mount"), "/mnt/\xef\xbf\xbd");
}

TEST_F(ReadyFile, SaysWhichFileCannotBeWritten) {
  const Status written = WriteReadyFile(Path() + "/none/ready", {{"a", 1}});
  EXPECT_EQ(written.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(MessageOf(written).find(Path() + "/none/ready: No such file"), std::string::npos)
      << MessageOf(written);
}

TEST_F(ReadyFile, IsNotWrittenWithoutAPath) { EXPECT_TRUE(WriteReadyFile("", {{"a", 1}}).ok()); }

TEST(FailProgram, PrintsOneSentenceAndChoosesTheExitCodeByWhatToDoNext) {
  const struct {
    StatusCode code;
    int exit_code;
  } rows[] = {{StatusCode::kInvalidArgument, 2},   {StatusCode::kFailedPrecondition, 3},
              {StatusCode::kResourceExhausted, 4}, {StatusCode::kUnavailable, 5},
              {StatusCode::kDeadlineExceeded, 5},  {StatusCode::kDataLoss, 6},
              {StatusCode::kInternal, 70},         {StatusCode::kUnknown, 70}};
  for (const auto& row : rows) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(FailProgram("mosa-x", Status(row.code, "no {} room")), row.exit_code);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "mosa-x: no {} room\n");
  }
  EXPECT_EQ(ToExitCode(StatusCode::kOk), 0);
}

}  // namespace
}  // namespace mosa
