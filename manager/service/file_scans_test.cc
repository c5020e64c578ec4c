// Queries over all files: shared while they wait, answered in pieces, refused above a limit.
#include "manager/service/file_scans.h"

#include <gtest/gtest.h>

namespace mosa::manager {
namespace {

class FileScansTest : public ::testing::Test {
 protected:
  FileScansTest() {
    SessionStart start;
    start.client = ClientId{1};
    start.node_name = "n";
    core_.Step(StartSession{start}, now_);
  }
  // One directory entry per file, so that a scan takes several pieces.
  void MakeFiles(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      MakeRequest make;
      make.parent = kRootFile;
      make.name = std::to_string(i);
      make.file = FileId{1000 + i};
      make.permissions = 0644;
      core_.Step(SessionRequest{ClientId{1}, {RequestId{i + 1}, RequestId{i}, {make}}}, now_);
    }
  }
  void Ask(size_t files_max, const std::string& caller) {
    scans_.Ask(
        {.kind = FileScanQuestion::Kind::kLost, .files_max = files_max}, caller,
        [this](const Status& status, const FileScan&) { answers_.push_back(status.code()); });
  }

  const Time now_{Seconds(1'700'000'000).ns};
  ManagerCore core_{ManagerOptions{}};
  FileScans scans_;
  std::vector<StatusCode> answers_;
};

TEST_F(FileScansTest, WhoAsksTheSameIsAnsweredByOneLook) {
  for (int i = 0; i < 10; ++i) Ask(5, "anna");
  Ask(5, "ben");
  scans_.Continue(core_);
  EXPECT_EQ(answers_.size(), 11U);
  EXPECT_FALSE(scans_.is_busy());
}

TEST_F(FileScansTest, ALongLookIsDoneInPiecesAndALaterQuestionHasALookOfItsOwn) {
  MakeFiles(2 * FileScans::kStepsAtOnce);
  Ask(5, "anna");
  scans_.Continue(core_);
  EXPECT_TRUE(answers_.empty());
  Ask(5, "ben");  // A new caller is not told how it was before.
  for (int i = 0; i < 2; ++i) scans_.Continue(core_);
  EXPECT_EQ(answers_.size(), 1U);
  for (int i = 0; i < 3; ++i) scans_.Continue(core_);
  EXPECT_EQ(answers_.size(), 2U);
}

TEST_F(FileScansTest, OneCallerWhoAsksTooMuchIsRefusedAndOthersAreNot) {
  for (size_t i = 0; i < 100; ++i) Ask(i + 1, "anna");
  EXPECT_EQ(answers_, std::vector<StatusCode>(100 - FileScans::kCallsPerCallerMax,
                                              StatusCode::kResourceExhausted));
  answers_.clear();
  Ask(1, "ben");
  while (scans_.is_busy()) scans_.Continue(core_);
  EXPECT_EQ(answers_, std::vector<StatusCode>(FileScans::kCallsPerCallerMax + 1, StatusCode::kOk));
}

TEST_F(FileScansTest, WhoWaitsWhenTheManagerStopsIsToldSo) {
  Ask(1, "anna");
  scans_.EndAll();
  EXPECT_EQ(answers_, std::vector<StatusCode>{StatusCode::kUnavailable});
  EXPECT_EQ(scans_.calls(), 0U);
}

}  // namespace
}  // namespace mosa::manager
