#include "client-sai/sai/copy_waits.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace mosa::sai {
namespace {

// Answers when the test says so: what counts here is the time between two answers.
class HeldManager final : public ManagerApi {
 public:
  Status Start(SessionListener&) override { return OkStatus(); }
  std::vector<Reply> Call(std::vector<Request>, Duration) override { return {}; }
  RequestId Send(std::vector<Request>, Callback done) override {
    question_ = std::move(done);
    return RequestId{++asked_};
  }
  void Stop() override {}

  void Answer(Reply reply) { std::exchange(question_, nullptr)({std::move(reply)}); }
  uint64_t asked() const { return asked_; }

 private:
  Callback question_;
  uint64_t asked_ = 0;
};

class CopyWaitsTest : public ::testing::Test {
 protected:
  CopyWaitsTest() {
    waits_.Wait({.file = FileId{1}, .data_version = 1, .copies = 2}, Seconds(12),
                [this](const AwaitCopiesReply& last) { last_ = last; });
  }
  void Copied(uint64_t bytes) {
    AwaitCopiesReply reply;
    reply.copies_valid = 1;
    reply.copies_wanted = 2;
    reply.copied_bytes = bytes;
    reply.more = true;
    manager_.Answer(reply);
  }
  // True if the wait has ended.
  bool EndsWithin(Duration time) {
    clock_.Advance(time);
    waits_.EndOverdue();
    return last_.has_value();
  }

  HeldManager manager_;
  ManualClock clock_{Time{0}};
  CopyWaits waits_{manager_, clock_};
  std::optional<AwaitCopiesReply> last_;
};

TEST_F(CopyWaitsTest, EndsWhenItsPatienceIsSpentIfNothingMoves) {
  Copied(0);
  EXPECT_FALSE(EndsWithin(Milliseconds(11'900)));
  Copied(0);
  EXPECT_TRUE(EndsWithin(Milliseconds(200)));
  EXPECT_EQ(last_->copies_valid, 1U);
}

TEST_F(CopyWaitsTest, CopyingThatMovesExtendsIt) {
  for (uint64_t i = 1; i <= 10; ++i) {
    Copied(i);
    EXPECT_FALSE(EndsWithin(Seconds(2)));
  }
  EXPECT_TRUE(EndsWithin(Seconds(8)));
}

TEST_F(CopyWaitsTest, AQuestionThatFailsIsRepeated) {
  manager_.Answer(Failure{.reason = ErrorReason::kTimedOut, .message = {}});
  EXPECT_EQ(manager_.asked(), 1U);
  EXPECT_FALSE(EndsWithin(Milliseconds(300)));
  EXPECT_EQ(manager_.asked(), 2U);
  AwaitCopiesReply reply;
  reply.copies_valid = reply.copies_wanted = 2;
  manager_.Answer(reply);
  EXPECT_EQ(last_->copies_valid, 2U);
}

TEST_F(CopyWaitsTest, AFileThatIsGoneHasAllItsCopies) {
  manager_.Answer(Failure{.reason = ErrorReason::kStale, .message = {}});
  ASSERT_TRUE(last_.has_value());
  EXPECT_GE(last_->copies_valid, last_->copies_wanted);
}

}  // namespace
}  // namespace mosa::sai
