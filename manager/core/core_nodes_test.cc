// Storage nodes that come and go, and what is told of where bytes are.
#include <gtest/gtest.h>

#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

class CoreNodes : public CoreFixture {
 protected:
  CoreNodes() { Start(kAnna); }
};

TEST_F(CoreNodes, WhatWasCommittedWhileANodeListedItsObjectsIsNotLost) {
  const NodeId n1 = AddNode("n1");
  const FileId gone = MakeBound(kAnna, kRootFile, "gone", 8192);
  const FileId before = MakeBound(kAnna, kRootFile, "before", 8192);
  for (int i = 0; i < 40; ++i) {
    now_ = now_ + kHeartbeatEvery;
    Step(NodeReport{n1, {.used_bytes = 16384, .limit_bytes = 1 << 30}});
    Step(SessionRequest{kAnna, {}});
  }
  Step(NodeStreamLost{n1});
  // The node lists what it has, and goes on serving its clients until the list has arrived.
  const FileId after = MakeBound(kAnna, kRootFile, "after", 8192);
  AddNode("n1", 1 << 30, 7, {before});
  EXPECT_EQ(Refused(kAnna, OpenRequest{gone, false, ""}), ErrorReason::kNodeLost);
  Ok<OpenReply>(kAnna, OpenRequest{before, false, ""});
  Ok<OpenReply>(kAnna, OpenRequest{after, false, ""});
}

TEST_F(CoreNodes, WhatWasCommittedAfterARestartIsNotLostByANodeThatComesBackLater) {
  AddNode("n1");
  const FileId before = MakeBound(kAnna, kRootFile, "before", 8192);
  now_ = now_ + Seconds(2);
  Restart();
  Start(kAnna);
  const FileId after = MakeBound(kAnna, kRootFile, "after", 8192);
  AddNode("n1", 1 << 30, 7, {before});
  Ok<OpenReply>(kAnna, OpenRequest{before, false, ""});
  Ok<OpenReply>(kAnna, OpenRequest{after, false, ""});
}

}  // namespace
}  // namespace mosa::manager
