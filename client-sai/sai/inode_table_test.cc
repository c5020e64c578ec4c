#include "client-sai/sai/inode_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace mosa::sai {
namespace {

class InodeTableTest : public ::testing::Test {
 protected:
  // The kernel knows it and forgets it.
  void Pass(FileId file) {
    {
      const InodePtr inode = table_.Get(file);
      const MutexLock lock(inode->mutex);
      inode->kernel_lookups = 1;
    }
    table_.Forget(file, 1);
  }

  std::vector<FileId> dropped_;
  InodeTable table_{2, [this](Inode& inode) { dropped_.push_back(inode.file); }};
};

TEST_F(InodeTableTest, GetAddsAFileOnce) {
  EXPECT_EQ(table_.Find(FileId{1}), nullptr);
  const InodePtr inode = table_.Get(FileId{1});
  EXPECT_EQ(table_.Get(FileId{1}), inode);
  EXPECT_EQ(table_.Find(FileId{1}), inode);
  EXPECT_EQ(table_.All().size(), 1U);
}

TEST_F(InodeTableTest, TheOldestIdleInodeIsDroppedFirst) {
  for (const uint64_t id : {1, 2, 3, 4}) Pass(FileId{id});
  const std::vector<FileId> dropped = table_.DropIdle();
  EXPECT_EQ(dropped, std::vector{FileId{1}});
  EXPECT_EQ(dropped_, dropped);
  EXPECT_EQ(table_.Find(FileId{1}), nullptr);
  EXPECT_NE(table_.Find(FileId{2}), nullptr);
}

TEST_F(InodeTableTest, WhatIsUsedStays) {
  const InodePtr used = table_.Get(FileId{1});
  {
    const InodePtr open = table_.Get(FileId{2});
    const MutexLock lock(open->mutex);
    open->handles = 1;
  }
  {
    const InodePtr known = table_.Get(FileId{3});
    const MutexLock lock(known->mutex);
    known->kernel_lookups = 1;
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(table_.DropIdle().empty());
  EXPECT_EQ(table_.All().size(), 3U);
}

TEST_F(InodeTableTest, ARemovedFileIsDroppedOnceNobodyUsesIt) {
  {
    const InodePtr inode = table_.Get(FileId{1});
    {
      const MutexLock lock(inode->mutex);
      inode->kernel_lookups = 1;
      inode->attributes_known = true;
      inode->attributes.type = FileType::kRegular;
      inode->attributes.link_count = 0;
    }
    table_.DropIfRemoved(inode);
    EXPECT_NE(table_.Find(FileId{1}), nullptr) << "the kernel still knows it";
  }
  table_.Forget(FileId{1}, 1);
  EXPECT_EQ(table_.Find(FileId{1}), nullptr);
  EXPECT_EQ(dropped_, std::vector{FileId{1}});
}

}  // namespace
}  // namespace mosa::sai
