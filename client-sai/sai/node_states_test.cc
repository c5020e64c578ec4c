#include "client-sai/sai/node_states.h"

#include <gtest/gtest.h>

namespace mosa::sai {
namespace {

constexpr NodeId kNode{1};

NodeAddress Node(NodeState state, uint64_t incarnation) {
  NodeAddress node;
  node.node = kNode;
  node.state = state;
  node.incarnation = incarnation;
  return node;
}

TEST(NodeStatesTest, ANodeThatIsNotListedIsNotAlive) {
  NodeStates states;
  EXPECT_FALSE(states.IsAlive(kNode));
  states.Set({Node(NodeState::kDraining, 1)});
  EXPECT_TRUE(states.IsAlive(kNode));
  states.Set({});
  EXPECT_FALSE(states.IsAlive(kNode));
}

TEST(NodeStatesTest, ANodeAnswersUntilACallWasNotAnswered) {
  NodeStates states;
  states.Set({Node(NodeState::kLive, 1)});
  EXPECT_TRUE(states.Answers(kNode));
  states.NoteCall(kNode, false);
  EXPECT_FALSE(states.Answers(kNode));
  EXPECT_TRUE(states.IsAlive(kNode));
  states.NoteCall(kNode, true);
  EXPECT_TRUE(states.Answers(kNode));
}

TEST(NodeStatesTest, AnotherIncarnationCountsAlsoAfterAnAbsence) {
  NodeStates states;
  states.Set({Node(NodeState::kLive, 1)});
  states.Set({Node(NodeState::kLive, 1)});
  EXPECT_EQ(states.returned_empty(), 0U);
  states.Set({});
  states.Set({Node(NodeState::kLive, 2)});
  EXPECT_EQ(states.returned_empty(), 1U);
}

}  // namespace
}  // namespace mosa::sai
