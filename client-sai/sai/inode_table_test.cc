#include "client-sai/sai/inode_table.h"

#include <gtest/gtest.h>

#include <functional>
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
      inode->kernel.lookups = 1;
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
  for (const uint64_t id : {1U, 2U, 3U, 4U}) Pass(FileId{id});
  const std::vector<FileId> dropped = table_.DropIdle();
  EXPECT_EQ(dropped, std::vector{FileId{1}});
  EXPECT_EQ(dropped_, dropped);
  EXPECT_EQ(table_.Find(FileId{1}), nullptr);
  EXPECT_NE(table_.Find(FileId{2}), nullptr);
}

TEST_F(InodeTableTest, WhatIsUsedStays) {
  const InodePtr referenced = table_.Get(FileId{1});
  const auto mark = [&](uint64_t id, const std::function<void(Inode&)>& use) {
    const InodePtr inode = table_.Get(FileId{id});
    const MutexLock lock(inode->mutex);
    use(*inode);
  };
  mark(2, [](Inode& inode) { inode.mutex.AssertHeld(), inode.uses.handles = 1; });
  mark(3, [](Inode& inode) { inode.mutex.AssertHeld(), inode.kernel.lookups = 1; });
  mark(4, [](Inode& inode) { inode.mutex.AssertHeld(), inode.unsaved.needs_commit = true; });
  mark(5, [](Inode& inode) { inode.mutex.AssertHeld(), inode.locking.held[1].emplace_back(); });
  mark(6, [](Inode& inode) { inode.mutex.AssertHeld(), inode.making.state = MakeState::kUnsent; });
  mark(7, [](Inode& inode) { inode.mutex.AssertHeld(), inode.names.unsent["new"] = FileId{9}; });
  mark(8, [](Inode&) {});
  std::vector<FileId> dropped;
  for (int i = 0; i < 10; ++i)
    for (const FileId file : table_.DropIdle()) dropped.push_back(file);
  EXPECT_EQ(dropped, std::vector{FileId{8}});
}

TEST_F(InodeTableTest, ARemovedFileIsDroppedOnceNobodyUsesIt) {
  {
    const InodePtr inode = table_.Get(FileId{1});
    {
      const MutexLock lock(inode->mutex);
      inode->kernel.lookups = 1;
      inode->known.received = true;
      inode->known.attributes.type = FileType::kRegular;
      inode->known.attributes.link_count = 0;
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
