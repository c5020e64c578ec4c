#include "predictor/explore/space.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace mosa::predict {
namespace {

std::vector<Dimension> Dimensions(const std::vector<std::string>& texts) {
  std::vector<Dimension> dimensions;
  for (const std::string& text : texts) {
    const auto dimension = ParseDimension(text);
    EXPECT_TRUE(dimension.ok()) << dimension.status();
    dimensions.push_back(*dimension);
  }
  return dimensions;
}

TEST(Dimension, SpellsRangesOut) {
  const struct {
    const char* text;
    std::vector<std::string> values;
  } rows[] = {
      {"hosts=4", {"4"}},
      {"hosts=1..4,8", {"1", "2", "3", "4", "8"}},
      {"storage=0..10/5", {"0", "5", "10"}},
      {"storage=0..9/5", {"0", "5"}},
      {"seed=18446744073709551614..18446744073709551615",
       {"18446744073709551614", "18446744073709551615"}},
      {"chunk=64K..512K", {"64K", "128K", "256K", "512K"}},
      {"chunk=3M,64K..100K", {"3M", "64K"}},
      {"system=dss,wass", {"dss", "wass"}},
      {"placement:a..b/*=local,node:h1", {"local", "node:h1"}},
  };
  for (const auto& row : rows) {
    const auto dimension = ParseDimension(row.text);
    ASSERT_TRUE(dimension.ok()) << dimension.status();
    EXPECT_EQ(dimension->values, row.values) << row.text;
  }
}

TEST(Space, HasEveryCombinationThatCanBe) {
  const auto space =
      Enumerate(Dimensions({"hosts=2,3", "replicas=1,3", "chunk=1M,2M"}), Configuration());
  ASSERT_TRUE(space.ok()) << space.status();
  std::vector<std::string> texts;
  for (const Point& point : space->points) {
    const Configuration& c = point.configuration;
    texts.push_back(std::to_string(c.hosts) + " " + std::to_string(c.replicas) + " " +
                    std::to_string(c.chunk_bytes >> 20));
  }
  EXPECT_EQ(texts,
            (std::vector<std::string>{"2 1 1", "2 1 2", "3 1 1", "3 1 2", "3 3 1", "3 3 2"}));
  EXPECT_EQ(space->impossible, 2U);
  EXPECT_NE(space->why.find("replicas=3: there are only 2 storage nodes"), std::string::npos)
      << space->why;
}

// Provisioning, section 3.2: 20 nodes, one of them the manager's.
TEST(Space, PartitionsNodes) {
  const auto space =
      Enumerate(Dimensions({"manager=apart", "nodes=20", "storage=0,5,18"}), Configuration());
  ASSERT_TRUE(space.ok()) << space.status();
  ASSERT_EQ(space->points.size(), 3U);
  EXPECT_EQ(space->points[0].configuration.hosts, 19U);
  EXPECT_EQ(space->points[1].configuration.hosts, 14U);
  EXPECT_EQ(space->points[1].configuration.storage_hosts, 5U);
  EXPECT_EQ(space->points[2].configuration.hosts, 1U);
  EXPECT_EQ(space->impossible, 0U);
}

TEST(Space, PlacesClassesOfFiles) {
  const auto dimensions =
      ReadSpace("placement:mid/*.fits: [default, local]\nplacement@join: stripe\n");
  ASSERT_TRUE(dimensions.ok()) << dimensions.status();
  const auto space = Enumerate(*dimensions, *ParseConfiguration("placement:sum=local"));
  ASSERT_TRUE(space.ok()) << space.status();
  ASSERT_EQ(space->points.size(), 2U);
  using Placements = std::map<std::string, std::string>;
  EXPECT_EQ(space->points[0].configuration.class_placements,
            (Placements{{":mid/*.fits", "default"}, {":sum", "local"}, {"@join", "stripe"}}));
  EXPECT_EQ(space->points[1].configuration.class_placements,
            (Placements{{":mid/*.fits", "local"}, {":sum", "local"}, {"@join", "stripe"}}));
}

TEST(Space, IsReadFromAFile) {
  const auto yaml = ReadSpace("nodes: [11, 20]\nstorage: 0..2\nchunk: [64K..256K, 1M]\n");
  ASSERT_TRUE(yaml.ok()) << yaml.status();
  ASSERT_EQ(yaml->size(), 3U);
  EXPECT_EQ((*yaml)[0].values, (std::vector<std::string>{"11", "20"}));
  EXPECT_EQ((*yaml)[1].values, (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ((*yaml)[2].values, (std::vector<std::string>{"64K", "128K", "256K", "1M"}));
  const auto json =
      ReadSpace("{\"nodes\": [11, 20], \"storage\": \"0..2\", \"chunk\": [\"64K..256K\", \"1M\"]}");
  ASSERT_TRUE(json.ok()) << json.status();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ((*json)[i].values, (*yaml)[i].values);
}

TEST(Space, SaysWhatIsWrongInOneSentence) {
  const struct {
    const char* text;
    const char* expected;
  } rows[] = {
      {"", "the text is empty"},
      {"[1]", "a space must be a map from names to values"},
      {"hosts: {a: 1}", "line 1: 'hosts' needs a value or a list"},
      {"hosts: [[1]]", "line 1: a value of 'hosts' must be one word"},
      {"hosts: []", "'hosts' has no value"},
      {"storage: []", "'storage' has no value"},
      {"hosts: 1..1000\nseed: 1..1000\nstripe: [1, 2]\n",
       "the space has 2000000 points, but at most 100000"},
      {"hosts: 1..1000\nseed: 1..100000\n", "the space has 100000000 points, but at most 100000"},
      {"seed: 1..1000000000", "more than 100000 values"},
      {"seed: 0..18446744073709551615", "more than 100000 values"},
      {"hosts: 5..1", "it must be a range of whole numbers"},
      {"hosts: 1..5/0", "it must be a range of whole numbers"},
      {"chunk: 4M..1M", "it must be a range of sizes"},
      {"chunk: 0..1M", "it must be a range of sizes"},
      {"chunk: 1M..4M/2", "it must be a range of sizes"},
      {"chunk: lots", "chunk=lots: it must be a size"},
      {"hosts: many", "hosts=many: it must be a whole number"},
      {"colour: [red]",
       "'colour' is not a name; names are hosts, storage, manager, slots, memory, system, chunk, "
       "stripe, replicas, placement, store, seed; for a class of files placement:GLOB, "
       "placement@STAGE; for one host, such as h3, h3.speed and others; and for explorations"},
      {"placement:a/*: [local, wild]", "placement:a/*=wild: it must be default, near, stripe, "},
      {"placement:a.1: ['collocate:q,placement:a.2=stripe']",
       "=stripe: a placement must not contain ','"},
      {"placement:a: [local, 'collocate:a,b']",
       "placement:a=collocate:a,b: a placement must not contain ','"},
      {"placement@: local", "placement@=local: a class must be a glob or a stage"},
      {"placement:a=b/*: local",
       "placement:a=b/*=local: a class must be a glob or a stage without"},
      {"h2.speed: [0.5, 1]", "h2 differs from the other hosts: only 'mosa predict'"},
      {"placement: [wild]",
       "none of its configurations is possible: configuration: placement=wild"},
      {"nodes: 4\nhosts: 2\n", "give either 'nodes', which counts all hosts, or 'hosts'"},
      {"nodes: 0", "nodes=0: it must be a whole number of 1 or more"},
      {"nodes: 4\nstorage: [1, 4]\n",
       "no configuration with storage=4 is possible: nodes=4: 4 for storage"},
      {"nodes: 1\nmanager: apart\n", "and one for the manager leave no host for tasks"},
      {"hosts: 0", "there would be no host to run tasks"},
      {"hosts: [2, 3]\nreplicas: [1, 4]\n",
       "no configuration with replicas=4 is possible: configuration: replicas=4: there are only 2 "
       "storage nodes"},
      {"hosts: [2, 3]\nreplicas: 0\n",
       "none of its configurations is possible: configuration: replicas=0: 1 to 64"},
      {"hosts: 3\nstripe: [0, 9]\n", "stripe=9: there are only 3 storage nodes"},
      {"hosts: 20000", "at most 10000 are allowed, together with those for storage"},
  };
  for (const auto& row : rows) {
    const auto dimensions = ReadSpace(row.text);
    const Status status =
        dimensions.ok() ? Enumerate(*dimensions, Configuration()).status() : dimensions.status();
    ASSERT_FALSE(status.ok()) << row.text;
    EXPECT_NE(MessageOf(status).find(row.expected), std::string::npos)
        << row.text << ": " << status;
  }
  EXPECT_NE(MessageOf(ParseDimension("hosts").status()).find("is not name=values"),
            std::string::npos);
  EXPECT_NE(MessageOf(Enumerate(Dimensions({"hosts=1", "hosts=2"}), Configuration()).status())
                .find("'hosts' occurs twice"),
            std::string::npos);
  const auto unequal = ParseConfiguration("h2.speed=0.5");
  ASSERT_TRUE(unequal.ok()) << unequal.status();
  const Status refused = Enumerate(Dimensions({"chunk=1M"}), *unequal).status();
  EXPECT_NE(MessageOf(refused).find("differs from the other hosts"), std::string::npos) << refused;
}

}  // namespace
}  // namespace mosa::predict
