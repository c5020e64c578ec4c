#include "manager/placement/copies.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "manager/placement/placement_fixture.h"

namespace mosa::manager {
namespace {

std::vector<NodeId> Ids(const std::vector<uint32_t>& numbers) {
  std::vector<NodeId> ids;
  for (const uint32_t number : numbers) ids.emplace_back(number);
  return ids;
}

struct CopiesRow {
  const char* what;
  std::vector<int64_t> free_bytes;
  uint32_t width;
  std::vector<uint32_t> holders;
  uint32_t copies;
  std::vector<uint32_t> planned;
  uint32_t reached;
  const char* reason = "";
  std::vector<uint32_t> leaving = {};
  std::vector<uint32_t> excluded = {};
  std::vector<uint32_t> writers = {};
};

void CheckCopies(const CopiesRow& row) {
  SCOPED_TRACE(row.what);
  CopiesRequest request{.seed = 5, .holders = {0, row.width, Ids(row.holders)}};
  request.copies = row.copies;
  request.leaving = Ids(row.leaving);
  request.excluded = Ids(row.excluded);
  request.writers = Ids(row.writers);
  request.needed_bytes = 4096;
  const CopiesPlan plan = PlanCopies(View(row.free_bytes), request);
  std::vector<uint32_t> planned;
  for (const NodeId node : plan.holders.nodes) planned.push_back(node.value);
  EXPECT_EQ(planned, row.planned);
  EXPECT_EQ(plan.holders.width, row.width);
  EXPECT_EQ(plan.copies, row.reached);
  EXPECT_EQ(plan.reason, row.reason);
}

TEST(Copies, GoWhereTheFileHasNoPartAndThereIsMostRoom) {
  const CopiesRow rows[] = {
      {"one is enough", {1 << 20, 1 << 20}, 1, {1}, 1, {1}, 1},
      {"most room wins", {1 << 20, 1 << 20, 1 << 22}, 1, {1}, 2, {1, 3}, 2},
      {"a broadcast takes all", {1 << 20, 1 << 21, 1 << 22}, 1, {1}, 3, {1, 3, 2}, 3},
      {"what is there stays", {1 << 20, 1 << 20, 1 << 22}, 1, {1, 2}, 2, {1, 2}, 2},
      {"a hole is filled", {1 << 20, 1 << 20, 1 << 20}, 1, {1, 0, 2}, 3, {1, 3, 2}, 3},
      {"too few nodes",
       {1 << 20, 1 << 20},
       1,
       {1},
       3,
       {1, 2},
       2,
       "2 of 3 copies: there are 2 nodes"},
      {"a full and a draining node",
       {1 << 20, 0, -1},
       1,
       {1},
       2,
       {1},
       1,
       "1 of 2 copies: b has 0 B free of 4.0 KiB needed, c takes nothing new"},
      {"found full", {1 << 20, 1 << 22, 1 << 20}, 1, {1}, 2, {1, 3}, 2, "", {}, {2}},
      {"who leaves does not count", {-1, 1 << 20, 1 << 20}, 1, {1, 2}, 2, {1, 2, 3}, 2, "", {1}},
  };
  for (const CopiesRow& row : rows) CheckCopies(row);
}

TEST(Copies, OfAStripeStayWithinItWhereTheyCan) {
  const CopiesRow rows[] = {
      {"the next node's",
       {1 << 20, 1 << 20, 1 << 20, 1 << 30},
       3,
       {1, 2, 3},
       2,
       {1, 2, 3, 2, 3, 1},
       2},
      {"a full one is passed over",
       {1 << 20, 0, 1 << 20, 1 << 20},
       3,
       {1, 2, 3},
       2,
       {1, 2, 3, 3, 3, 1},
       2},
      {"as many copies as nodes: outside first, then within",
       {1 << 20, 1 << 20, 1 << 20},
       2,
       {1, 2},
       2,
       {1, 2, 3, 1},
       2},
      {"complete copies on all", {1 << 20, 1 << 20}, 2, {1, 2}, 2, {1, 2, 2, 1}, 2},
      {"complete copies on all, each from the node before",
       {1 << 20, 1 << 20, 1 << 20},
       3,
       {1, 2, 3},
       3,
       {1, 2, 3, 2, 3, 1, 3, 1, 2},
       3},
      {"nobody fetches from a writer's node what it does not have first",
       {1 << 20, 1 << 20, 1 << 20},
       3,
       {1, 2, 3},
       3,
       {1, 2, 3, 3, 3, 1, 2, 1, 2},
       3,
       "",
       {},
       {},
       {2}},
  };
  for (const CopiesRow& row : rows) CheckCopies(row);
}

TEST(Copies, AutoWithoutAForecastIsTheRootOfTheNodesAndAtLeastTwo) {
  const struct {
    size_t nodes;
    uint32_t copies;
  } rows[] = {{0, 2}, {4, 2}, {5, 3}, {9, 3}, {20, 5}};
  for (const auto& row : rows) {
    const CopiesChoice choice = ChooseCopies({}, row.nodes, 1 << 20);
    EXPECT_EQ(choice.copies, row.copies);
    EXPECT_EQ(MostCopies({}, row.nodes), row.copies);
    EXPECT_EQ(ToText(choice),
              std::to_string(row.copies) +
                  " copies: the square root of the nodes, since nothing is forecast");
  }
}

TEST(Copies, AutoIsWhatIsForecastForTheNearestSizeAndNumberOfNodes) {
  const CopiesForecast forecast = {{3, {{64 << 10, 1}, {1 << 20, 2}, {16 << 20, 3}}},
                                   {8, {{64 << 10, 1}, {1 << 20, 4}, {16 << 20, 8}}}};
  const struct {
    size_t nodes;
    std::optional<uint64_t> bytes;
    uint32_t copies;
    std::string text;
  } rows[] = {
      {8, 0, 1, "1 copy, predicted best for 64.0 KiB on 8 nodes"},
      {8, 1, 1, "1 copy, predicted best for 64.0 KiB on 8 nodes"},
      {8, 256 << 10, 1, "1 copy, predicted best for 64.0 KiB on 8 nodes"},
      {8, (256 << 10) + 1, 4, "4 copies, predicted best for 1.0 MiB on 8 nodes"},
      {8, 4 << 20, 4, "4 copies, predicted best for 1.0 MiB on 8 nodes"},
      {8, uint64_t{1} << 40, 8, "8 copies, predicted best for 16.0 MiB on 8 nodes"},
      {8, std::nullopt, 8,
       "8 copies, predicted best for a long file (its size is not known yet) on 8 nodes"},
      {1000, 1 << 20, 4, "4 copies, predicted best for 1.0 MiB on 8 nodes"},
      {7, 1 << 20, 4, "4 copies, predicted best for 1.0 MiB on 8 nodes"},
      {7, 16 << 20, 7, "7 copies, predicted best for 16.0 MiB on 8 nodes"},
      {3, 1 << 20, 2, "2 copies, predicted best for 1.0 MiB on 3 nodes"},
      {2, 16 << 20, 2, "2 copies, predicted best for 16.0 MiB on 3 nodes"},
      {0, 16 << 20, 1, "1 copy, predicted best for 16.0 MiB on 3 nodes"},
  };
  for (const auto& row : rows) {
    const CopiesChoice choice = ChooseCopies(forecast, row.nodes, row.bytes);
    EXPECT_EQ(choice.copies, row.copies)
        << row.nodes << " nodes, " << row.bytes.value_or(0) << " B";
    EXPECT_EQ(ToText(choice), row.text);
    EXPECT_GE(MostCopies(forecast, row.nodes), choice.copies);
  }
  // Any of the sizes may have the maximum.
  EXPECT_EQ(MostCopies({{8, {{64 << 10, 1}, {1 << 20, 6}, {16 << 20, 2}}}}, 8), 6U);
  EXPECT_EQ(MostCopies({{8, {{64 << 10, 1}, {1 << 20, 6}, {16 << 20, 2}}}}, 5), 5U);
}

}  // namespace
}  // namespace mosa::manager
