// Where copies lie, and which node fetches them from which.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "manager/core/core_copies_fixture.h"

namespace mosa::manager {
namespace {

TEST_F(CoreCopies, EachFetchesFromTheOneBefore) {
  const FileId f = MakeCommitted("f", "4");
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 3U);
  NodeId before = nodes_[0];
  std::vector<CopyRelay> relays;
  for (const auto& [node, order] : orders) {
    EXPECT_EQ(order.sources.segments[0].nodes, std::vector<NodeId>{before});
    EXPECT_EQ(order.relays, relays);
    before = node;
    relays = {{node, order.order}};
  }
  // A node in the middle is gone: the node that fetched from it gets another source.
  Step(NodeStreamLost{orders[1].first});
  const Orders again = TakeOrders();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].first, orders[2].first);
  EXPECT_EQ(again[0].second.sources.segments[0].nodes, std::vector{orders[0].first});
  Step(NodeCopyReport{orders[2].first, ReportOf(orders[2].second)});
  EXPECT_EQ(ValidCopies(f), 1U);
}

// No node sends as much as the file twice, least of all the writer's node, which has already sent
// the others their parts.
TEST_F(CoreCopies, EachPartOfAStripeIsPassedOnFromNodeToNode) {
  for (const std::string replicas : {"3", "4"}) {
    const FileId f = MakeOpen("f" + replicas, replicas, "eager", "stripe");
    const std::vector<NodeId> first =
        core_->GetFileStatus("/f" + replicas)->layout.segments[0].nodes;
    const Orders follow = TakeOrders();
    Commit(f, 16 * kMiB);
    const Orders last = TakeOrders();
    for (const Orders& orders : {follow, last}) {
      ASSERT_EQ(orders.size(), 4U);
      std::map<NodeId, uint64_t> numbers;
      for (const auto& [node, order] : orders) numbers[node] = order.order;
      std::map<NodeId, size_t> sent;  // Parts.
      for (size_t position = 0; position < first.size(); ++position) {
        std::map<NodeId, NodeId> sources;  // By target.
        for (const auto& [node, order] : orders) {
          const NodeId source = order.sources.segments[0].nodes[position];
          if (source == kNoNode) continue;
          sources[node] = source;
          ++sent[source];
          if (source == first[position]) continue;
          EXPECT_EQ(std::count(order.relays.begin(), order.relays.end(),
                               CopyRelay{source, numbers[source]}),
                    1);
        }
        EXPECT_EQ(sources.size() + 1, std::stoul(replicas));
        std::set<NodeId> senders;
        for (const auto& [node, source] : sources) senders.insert(source);
        EXPECT_EQ(senders.size(), sources.size()) << "nobody sends it twice";
        for (auto [node, source] : sources) {
          size_t hops = 0;
          while (source != first[position] && ++hops < first.size()) source = sources.at(source);
          EXPECT_LT(hops, first.size()) << "they wait in a circle";
        }
      }
      EXPECT_EQ(sent[nodes_[0]], 1U);
      for (const auto& [node, parts] : sent) EXPECT_LE(parts, first.size());
    }
    for (size_t i = 0; i < follow.size(); ++i)
      EXPECT_EQ(follow[i].second.sources, last[i].second.sources) << "what is under way goes on";
    for (const auto& [node, order] : last) Done(node, order);
    EXPECT_EQ(ValidCopies(f), std::stoul(replicas));
  }
}

TEST_F(CoreCopies, WhatGoesOutToEveryNodeBeginsOnItsWritersNode) {
  struct Row {
    std::string_view what;
    std::vector<HintValue> hints;
    uint32_t width;
  };
  const std::vector<Row> rows = {
      {"every node has it at the close", {{"pattern", "broadcast:4"}}, 1},
      {"more copies than nodes", {{"pattern", "broadcast:9"}}, 1},
      {"no copy may be missing", {{"pattern", "broadcast:4"}, {"strict", "1"}}, 1},
      {"a node has none", {{"pattern", "broadcast:3"}}, 4},
      {"after the close", {{"replicas", "4"}, {"ack", "pessimistic"}}, 4},
      {"the close waits for nobody", {{"replicas", "4"}, {"replicate", "eager"}}, 4},
      {"placed by a hint", {{"pattern", "broadcast:4"}, {"placement", "stripe"}}, 4},
      {"as wide as a hint says", {{"pattern", "broadcast:4"}, {"stripe_width", "2"}}, 2},
  };
  int files = 0;
  for (const Row& row : rows) {
    const std::string name = fmt::format("f{}", ++files);
    const FileId f = Make(kAnna, kRootFile, name, FileType::kRegular, true);
    for (const HintValue& hint : row.hints) SetXattr(f, hint.name, hint.value);
    Ok<BindReply>(kAnna, BindRequest{f, kMiB});
    const Layout layout = core_->GetFileStatus("/" + name)->layout;
    EXPECT_EQ(layout.segments[0].width, row.width) << row.what;
    if (row.width > 1) continue;
    EXPECT_EQ(layout.segments[0].nodes[0], nodes_[0]) << row.what;
  }
}

TEST_F(CoreCopies, WhatGoesOutToEveryNodeIsStripedIfItsWriterHasNone) {
  constexpr ClientId kCarol{77};
  Start(kCarol, {.node_name = "no-node"});
  const FileId f = Make(kCarol, kRootFile, "f", FileType::kRegular, true);
  Ok<EmptyReply>(kCarol, SetXattrRequest{f, "user.mosa.pattern", "broadcast:4", false, false});
  Ok<EmptyReply>(kCarol, SetXattrRequest{f, "user.mosa.strict", "1", false, false});
  Ok<BindReply>(kCarol, BindRequest{f, kMiB});
  EXPECT_EQ(core_->GetFileStatus("/f")->layout.segments[0].width, 4U);
}

TEST_F(CoreCopies, CopiesOfAPositionAreAChainInWhichNobodySendsItTwice) {
  for (int i = 5; i <= 12; ++i) nodes_.push_back(AddNode("n" + std::to_string(i)));
  const FileId f = MakeOpen("f", "12", "lazy", "stripe");
  const std::vector<NodeId> first = core_->GetFileStatus("/f")->layout.segments[0].nodes;
  ASSERT_EQ(first.size(), 12U);
  Commit(f, 48 * kMiB);
  std::vector<std::map<NodeId, NodeId>> sources(first.size());
  std::map<NodeId, size_t> sent;
  for (const auto& [node, order] : TakeOrders()) {
    for (size_t position = 0; position < first.size(); ++position) {
      const NodeId source = order.sources.segments[0].nodes[position];
      if (source == kNoNode) continue;
      sources[position][node] = source;
      ++sent[source];
    }
  }
  for (size_t position = 0; position < first.size(); ++position) {
    EXPECT_EQ(sources[position].size(), 11U);
    std::set<NodeId> senders;
    for (const auto& [node, source] : sources[position])
      EXPECT_TRUE(senders.insert(source).second) << "node " << source.value;
    EXPECT_TRUE(senders.contains(first[position]));
  }
  for (const NodeId node : first) EXPECT_LE(sent[node], 12U) << "no more than the file";
}

TEST_F(CoreCopies, OfMoreCopiesThanPositionsNobodySendsMoreThanTheFile) {
  for (int i = 5; i <= 12; ++i) nodes_.push_back(AddNode("n" + std::to_string(i)));
  const FileId f = Make(kAnna, kRootFile, "f", FileType::kRegular, true);
  SetXattr(f, "stripe_width", "4");
  SetXattr(f, "replicas", "12");
  Ok<BindReply>(kAnna, BindRequest{f, kMiB});
  Commit(f, 48 * kMiB);
  std::map<NodeId, size_t> sent;
  for (const auto& [node, order] : TakeOrders())
    for (const NodeId source : order.sources.segments[0].nodes) ++sent[source];
  for (const auto& [node, parts] : sent) EXPECT_LE(parts, 4U) << node.value;
  EXPECT_GE(sent.size(), 12U) << "44 parts are sent, and 4 nodes have one already";
}

TEST_F(CoreCopies, LittleIsSentToEverybodyByTheOneWhoHasIt) {
  const FileId f = MakeOpen("f", "4");
  Commit(f, kMiB / 8);
  const Orders orders = TakeOrders();
  ASSERT_EQ(orders.size(), 3U);
  for (const auto& [node, order] : orders) {
    EXPECT_EQ(order.sources.Nodes(), std::vector<NodeId>{nodes_[0]});
    EXPECT_TRUE(order.relays.empty());
  }
}

}  // namespace
}  // namespace mosa::manager
