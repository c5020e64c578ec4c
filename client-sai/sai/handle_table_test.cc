#include "client-sai/sai/handle_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client-sai/sai/lock_waits.h"

namespace mosa::sai {
namespace {

class HandleTableTest : public ::testing::Test {
 protected:
  OpenFilePtr Open(const InodePtr& inode, bool write = false) {
    auto file = std::make_shared<OpenFile>();
    file->id = table_.NewId();
    file->inode = inode;
    file->write = write;
    table_.AddFile(file);
    return file;
  }

  HandleTable table_;
  InodePtr inode_ = std::make_shared<Inode>(FileId{1});
  InodePtr other_ = std::make_shared<Inode>(FileId{2});
};

TEST_F(HandleTableTest, AHandleIsTakenOnce) {
  const HandleId id = Open(inode_)->id;
  EXPECT_NE(table_.FindFile(id), nullptr);
  EXPECT_NE(table_.TakeFile(id), nullptr);
  EXPECT_EQ(table_.TakeFile(id), nullptr);
  EXPECT_EQ(table_.FindFile(id), nullptr);
}

TEST_F(HandleTableTest, AFileThatIsWrittenTwiceIsListedOnce) {
  Open(inode_, true);
  Open(inode_, true);
  Open(other_);
  EXPECT_EQ(table_.Written(), std::vector{inode_});
}

TEST_F(HandleTableTest, ATaskReadsOnWhileItHasAnotherHandleOfTheFile) {
  const OpenFilePtr first = Open(inode_);
  const OpenFilePtr second = Open(inode_);
  const OpenFilePtr elsewhere = Open(other_);
  for (const OpenFilePtr& file : {first, second, elsewhere}) table_.SetReader(file->id, "task");
  table_.TakeFile(first->id);
  EXPECT_TRUE(table_.HasOtherReader(*first));
  table_.SetReader(second->id, "another");
  EXPECT_FALSE(table_.HasOtherReader(*first));
}

TEST(LockWaitsTest, AnAnswerMayArriveBeforeTheIdOfItsRequestIsKnown) {
  LockWaits waits;
  const LockWaitId early = waits.Begin();
  waits.End(early);
  waits.NoteSent(early, RequestId{7});
  EXPECT_EQ(waits.RequestOf(early), std::nullopt);
  const LockWaitId late = waits.Begin();
  waits.NoteSent(late, RequestId{8});
  EXPECT_EQ(waits.RequestOf(late), RequestId{8});
  waits.End(late);
  EXPECT_EQ(waits.RequestOf(late), std::nullopt);
}

}  // namespace
}  // namespace mosa::sai
