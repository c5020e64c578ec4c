#include "predictor/run/simulated_copies.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "predictor/run/prediction_fixture.h"
#include "predictor/run/simulated_manager.h"

namespace mosa::predict {
namespace {

constexpr FileId kFile{100};
constexpr NodeId kA{1}, kB{2}, kC{3};
constexpr uint64_t kPiece = 128 << 10;

constexpr Time Ms(int64_t ms) { return Time{ms * 1'000'000}; }

// Links of 10 MB/s; nothing else costs. The test gives orders in the manager's place.
Platform Links() {
  Platform platform = PlainPlatform();
  platform.host.out_bytes_per_second = platform.host.in_bytes_per_second = 10'000'000;
  return platform;
}

Configuration Hosts(uint32_t hosts) {
  Configuration configuration;
  configuration.hosts = hosts;
  configuration.manager_apart = true;
  return configuration;
}

struct Nodes {
  explicit Nodes(uint32_t count, uint64_t limit_bytes = uint64_t{1} << 30)
      : machines(loop, platform, Hosts(count)),
        manager(loop, platform, machines, ManagerOptionsOf(Hosts(count))),
        copies(loop, platform, machines, manager) {
    for (uint32_t i = 0; i < count; ++i) manager.AddNode(MachineIndex{i}, limit_bytes);
  }
  CopyOrder OrderOf(uint64_t number, uint64_t bytes, std::vector<NodeId> sources,
                    std::vector<CopyRelay> relays = {}) const {
    CopyOrder order;
    order.file = kFile;
    order.order = number;
    order.data_version = 7;
    order.size_bytes = bytes;
    order.sources.chunk_bytes = kMiB;
    order.sources.segments = {{0, static_cast<uint32_t>(sources.size()), sources}};
    order.relays = relays;
    return order;
  }
  // Node 1 has the file; each further node copies from the previous one.
  void OrderChain(uint32_t count, uint64_t bytes) {
    for (uint32_t i = 2; i <= count; ++i) {
      std::vector<CopyRelay> relays;
      if (i > 2) relays.push_back({NodeId{i - 1}, i - 1});
      copies.Order(NodeId{i}, OrderOf(i, bytes, {NodeId{i - 1}}, relays));
    }
  }
  // Runs until nothing more arrives.
  void Run() {
    loop.At(Ms(100'000), [this] { loop.Stop(); });
    loop.Run();
  }
  // Runs until `node` has so many bytes.
  Time RunUntil(NodeId node, uint64_t bytes) {
    LookWhether(node, bytes);
    Run();
    return had;
  }
  uint64_t Stored(NodeId node) const { return manager.StoredOn(node, kFile); }
  uint64_t Sent(NodeId node) const { return machines.link(manager.MachineOf(node)).sent; }

  void LookWhether(NodeId node, uint64_t bytes) {
    if (Stored(node) >= bytes) {
      had = loop.now();
      return loop.Stop();
    }
    loop.At(loop.now() + Milliseconds(1), [this, node, bytes] { LookWhether(node, bytes); });
  }

  des::EventLoop loop;
  const Platform platform = Links();
  Machines machines;
  SimulatedManager manager;
  SimulatedCopies copies;
  Time had;
};

TEST(SimulatedCopies, OfAChainTakeOneCopysTimeAndAHopForEachFurtherOne) {
  const auto milliseconds = [](uint32_t nodes) {
    Nodes all(nodes);
    all.OrderChain(nodes, 2 * kMiB);
    return static_cast<double>(all.RunUntil(NodeId{nodes}, 2 * kMiB).ns) / 1e6;
  };
  // Four pieces are in flight at once and arrive together: that is one hop.
  constexpr double kHop = 4.0 * kPiece / 10'000;
  EXPECT_NEAR(milliseconds(2), 4 * kHop, 3);
  EXPECT_NEAR(milliseconds(3), 5 * kHop, 5);
  EXPECT_NEAR(milliseconds(5), 7 * kHop, 10);
}

// A and B hold a chunk each and fetch the other's; C fetches each from the node that just got it.
TEST(SimulatedCopies, OfRotatedStripesWaitForNobodyForEver) {
  Nodes nodes(3);
  nodes.copies.Order(kC, nodes.OrderOf(3, 2 * kMiB, {kB, kA}, {{kA, 1}, {kB, 2}}));
  nodes.copies.Order(kA, nodes.OrderOf(1, 2 * kMiB, {kNoNode, kB}, {{kB, 2}}));
  nodes.copies.Order(kB, nodes.OrderOf(2, 2 * kMiB, {kA, kNoNode}, {{kA, 1}}));
  nodes.Run();
  EXPECT_EQ(nodes.Stored(kA), kMiB);
  EXPECT_EQ(nodes.Stored(kB), kMiB);
  EXPECT_EQ(nodes.Stored(kC), 2 * kMiB);
  EXPECT_EQ(nodes.Sent(kA), 2 * kMiB);
  EXPECT_EQ(nodes.Sent(kB), 2 * kMiB);
}

TEST(SimulatedCopies, GoOnWithWhatIsUnderWayWhenAnOrderIsReplaced) {
  for (const int64_t when_ms : {2, 90}) {  // Before anything has arrived, and after.
    Nodes nodes(2);
    ASSERT_TRUE(nodes.manager.Store(kA, kFile, 2 * kMiB));
    CopyOrder order = nodes.OrderOf(1, kMiB, {kA});
    order.follow = true;
    nodes.copies.Order(kB, order);
    nodes.loop.At(Ms(when_ms), [&nodes] {
      CopyOrder final = nodes.OrderOf(2, 2 * kMiB, {kA});
      final.data_version = 8;
      nodes.copies.Order(kB, final);
    });
    nodes.Run();
    EXPECT_EQ(nodes.Stored(kB), 2 * kMiB) << when_ms;
    EXPECT_EQ(nodes.Sent(kA), 2 * kMiB) << when_ms;
  }
}

TEST(SimulatedCopies, OfAnotherVersionBeginAnew) {
  Nodes nodes(2);
  nodes.copies.Order(kB, nodes.OrderOf(1, kMiB, {kA}));
  nodes.loop.At(Ms(20), [&nodes] {
    CopyOrder other = nodes.OrderOf(2, kMiB, {kA});
    other.data_version = 8;
    nodes.copies.Order(kB, other);
  });
  nodes.Run();
  EXPECT_EQ(nodes.Stored(kB), kMiB) << "nothing of the one before had come";
  EXPECT_EQ(nodes.Sent(kA), kMiB + 4 * kPiece);
}

TEST(SimulatedCopies, ThatAreCancelledStoreNothingMore) {
  Nodes nodes(2);
  nodes.copies.Order(kB, nodes.OrderOf(1, kMiB, {kA}));
  nodes.loop.At(Ms(20), [&nodes] { nodes.copies.Cancel(kB, kFile); });
  nodes.loop.At(Ms(500), [&nodes] {
    EXPECT_EQ(nodes.Stored(kB), 0U);
    nodes.copies.Order(kB, nodes.OrderOf(2, kMiB, {kA}));
  });
  nodes.Run();
  EXPECT_EQ(nodes.Stored(kB), kMiB);
}

TEST(SimulatedCopies, ThatAreCancelledKeepWhatHasCome) {
  Nodes nodes(2);
  nodes.copies.Order(kB, nodes.OrderOf(1, kMiB, {kA}));
  nodes.loop.At(Ms(70), [&nodes] {  // Half has arrived.
    nodes.copies.Cancel(kB, kFile);
    nodes.copies.Order(kB, nodes.OrderOf(2, kMiB, {kA}));
  });
  nodes.Run();
  EXPECT_EQ(nodes.Stored(kB), kMiB);
  EXPECT_EQ(nodes.Sent(kA), kMiB + 4 * kPiece) << "what was under way came for nobody";
}

// As the manager does: when a relay's order ends, the node that fetches from it gets a new order.
TEST(SimulatedCopies, WhoWaitsForARelayThatIsCancelledGoesOnWithItsNextOrder) {
  Nodes nodes(3);
  nodes.OrderChain(3, 2 * kMiB);
  nodes.loop.At(Ms(70), [&nodes] {
    nodes.copies.Cancel(kB, kFile);
    nodes.copies.Order(kC, nodes.OrderOf(4, 2 * kMiB, {kA}));
  });
  nodes.Run();
  EXPECT_LT(nodes.Stored(kB), 2 * kMiB);
  EXPECT_EQ(nodes.Stored(kC), 2 * kMiB);
}

// A node is a relay only for one order: bytes from an earlier one may be of another part.
TEST(SimulatedCopies, WaitForTheOrderByWhichARelayIsOne) {
  Nodes nodes(3);
  nodes.copies.Order(kB, nodes.OrderOf(1, kMiB, {kA}));
  nodes.loop.At(Ms(1'000), [&nodes] {
    nodes.copies.Order(kC, nodes.OrderOf(6, 2 * kMiB, {kB}, {{kB, 5}}));
  });
  nodes.loop.At(Ms(2'000), [&nodes] {
    EXPECT_EQ(nodes.Stored(kC), 0U);
    nodes.copies.Order(kB, nodes.OrderOf(5, 2 * kMiB, {kA}));
  });
  nodes.Run();
  EXPECT_EQ(nodes.Stored(kC), 2 * kMiB);
}

// A node that once had a copy, and is now written to, is no relay.
TEST(SimulatedCopies, WaitForNobodyWhoIsNoRelay) {
  Nodes nodes(3);
  nodes.copies.Order(kB, nodes.OrderOf(1, kMiB, {kA}));
  nodes.loop.At(Ms(1'000), [&nodes] {
    CopyOrder order = nodes.OrderOf(2, 2 * kMiB, {kB});
    order.data_version = 8;
    nodes.copies.Order(kC, order);
  });
  nodes.Run();
  EXPECT_EQ(nodes.Stored(kC), 2 * kMiB);
}

// The third of four pieces finds no room; the last, a short one, does.
TEST(SimulatedCopies, ThatFoundNoRoomFetchWhatIsMissingAlone) {
  constexpr uint64_t kBytes = 400'000, kTail = kBytes - 3 * kPiece;
  Nodes nodes(2, 380'000);
  nodes.copies.Order(kB, nodes.OrderOf(1, kBytes, {kA}));
  nodes.loop.At(Ms(1'000), [&nodes] {
    EXPECT_EQ(nodes.Stored(kB), 2 * kPiece + kTail);
    nodes.copies.Order(kB, nodes.OrderOf(2, kBytes, {kA}));
  });
  nodes.Run();
  EXPECT_EQ(nodes.Stored(kB), 2 * kPiece + kTail);
  EXPECT_EQ(nodes.Sent(kA), kBytes + kPiece);
}

TEST(SimulatedCopies, WhoWaitsForAFullRelayGoesOnWithItsNextOrder) {
  Nodes nodes(3, 4 * kMiB);
  ASSERT_TRUE(nodes.manager.Store(kB, FileId{101}, 3 * kMiB));
  nodes.OrderChain(3, 2 * kMiB);
  nodes.loop.At(Ms(1'000), [&nodes] {
    EXPECT_EQ(nodes.Stored(kB), kMiB);
    EXPECT_EQ(nodes.Stored(kC), kMiB) << "what the relay has";
    nodes.copies.Order(kC, nodes.OrderOf(4, 2 * kMiB, {kA}));
  });
  nodes.Run();
  EXPECT_EQ(nodes.Stored(kC), 2 * kMiB);
}

}  // namespace
}  // namespace mosa::predict
