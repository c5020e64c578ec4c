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
  names_.Forget(other_);
  EXPECT_EQ(kernel_.told, 0);
  EXPECT_TRUE(names_.MayKeep(directory_));
  names_.Forget(directory_);
  EXPECT_EQ(kernel_.told, 1);
  names_.Forget(directory_);
  EXPECT_EQ(kernel_.told, 1) << "it has forgotten them already";
}

TEST_F(KernelNamesTest, NamesOfADirectoryThatOthersChangeAreNotKeptForAWhile) {
  EXPECT_TRUE(names_.MayKeep(directory_));
  names_.Forget(directory_);
  EXPECT_FALSE(names_.MayKeep(directory_));
  EXPECT_TRUE(names_.MayKeep(other_));
  clock_.Advance(Seconds(30));
  EXPECT_TRUE(names_.MayKeep(directory_));
  names_.Forget(directory_);
  clock_.Advance(Seconds(59));
  EXPECT_FALSE(names_.MayKeep(directory_)) << "the time doubles";
  clock_.Advance(Seconds(1));
  EXPECT_TRUE(names_.MayKeep(directory_));
}

TEST_F(KernelNamesTest, AKeptNameThatMovedIsForgottenInItsNewDirectory) {
  names_.NoteKept(other_);
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
