#include "client-sai/sai/kernel_names.h"

#include <gtest/gtest.h>

namespace mosa::sai {
namespace {

class CountingKernel final : public KernelNotifier {
 public:
  Capabilities capabilities() const override { return {.epoch = has_epoch}; }
  void InvalidateEntries() override { ++told; }
  bool InvalidateFile(FileId) override { return true; }
  void InvalidateAttributes(FileId) override {}

  bool has_epoch = true;
  int told = 0;
};

class KernelNamesTest : public ::testing::Test {
 protected:
  CountingKernel kernel_;
  ManualClock clock_{Time{} + Seconds(1000)};
  KernelNames names_{kernel_, clock_};
  Inode directory_{FileId{1}};
  Inode other_{FileId{2}};
};

TEST_F(KernelNamesTest, TheKernelIsToldOnlyIfItKeepsNamesOfTheDirectory) {
  EXPECT_TRUE(names_.MayKeep(directory_));
  names_.Forget(other_);
  EXPECT_EQ(kernel_.told, 0);
  names_.Forget(directory_);
  EXPECT_EQ(kernel_.told, 1);
  names_.Forget(directory_);
  EXPECT_EQ(kernel_.told, 1) << "it has forgotten them already";
}

TEST_F(KernelNamesTest, WhileOthersChangeDirectoriesNoNamesAreKept) {
  EXPECT_TRUE(names_.MayKeep(directory_));
  names_.Forget(directory_);
  EXPECT_FALSE(names_.MayKeep(directory_));
  EXPECT_FALSE(names_.MayKeep(other_)) << "the next change would cost the pages of all files";
  clock_.Advance(NameEpoch::kQuietMin - Seconds(1));
  names_.Forget(other_);
  EXPECT_EQ(kernel_.told, 1) << "it keeps none";
  EXPECT_FALSE(names_.MayKeep(other_));
  clock_.Advance(NameEpoch::kQuietMin * 2 - Seconds(1));
  EXPECT_FALSE(names_.MayKeep(other_)) << "the time has doubled, because names were kept";
  clock_.Advance(Seconds(1));
  EXPECT_TRUE(names_.MayKeep(other_));
}

TEST_F(KernelNamesTest, WhoeverFindsFreshChangesOfOthersKeepsNoNames) {
  names_.NoteForeignChange(NameEpoch::kQuietMin - Seconds(1));
  EXPECT_FALSE(names_.MayKeep(directory_));
  clock_.Advance(Seconds(1));
  EXPECT_TRUE(names_.MayKeep(directory_));
  names_.NoteForeignChange(NameEpoch::kQuietMin);
  EXPECT_TRUE(names_.MayKeep(directory_)) << "that is long ago";
}

TEST_F(KernelNamesTest, AKeptNameThatMovedIsForgottenInItsNewDirectory) {
  names_.NoteMove(directory_, other_);
  names_.Forget(other_);
  EXPECT_EQ(kernel_.told, 0) << "it keeps none of the old one";
  clock_.Advance(NameEpoch::kQuietMin);
  EXPECT_TRUE(names_.MayKeep(directory_));
  names_.NoteMove(directory_, other_);
  names_.Forget(other_);
  EXPECT_EQ(kernel_.told, 1);
}

TEST_F(KernelNamesTest, WithoutTheCapabilityNothingIsKept) {
  kernel_.has_epoch = false;
  EXPECT_FALSE(names_.MayKeep(directory_));
  names_.ForgetAll();
  EXPECT_EQ(kernel_.told, 0);
}

}  // namespace
}  // namespace mosa::sai
