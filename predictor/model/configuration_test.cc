#include "predictor/model/configuration.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace mosa::predict {
namespace {

TEST(Configuration, SaysItAllInOneLineThatReadsBack) {
  const auto parsed = ParseConfiguration(
      "hosts=14,storage=5,manager=apart,slots=3,system=dss,chunk=256K,stripe=4,replicas=2,"
      "placement=local,store=2G,seed=7");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->hosts, 14U);
  EXPECT_EQ(parsed->storage_hosts, 5U);
  EXPECT_EQ(parsed->chunk_bytes, 256U << 10);
  EXPECT_EQ(parsed->system, System::kDss);
  const auto again = ParseConfiguration(ToText(*parsed));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *parsed);
  EXPECT_EQ(*ParseConfiguration(ToText(Configuration())), Configuration());
  EXPECT_EQ(*ParseConfiguration(""), Configuration());
}

TEST(Configuration, SaysOfOneHostOrOfSeveralWhatOthersAreNot) {
  const auto parsed = ParseConfiguration(
      "hosts=4,storage=2,manager=apart,h2.speed=0.25,h3-4.cores=2,h3.link=12M,h4.in=10000,"
      "h5.store=1G,h5-6.cache=0,h7.out=20000,memory=8G,h2.slots=3,h4.memory=1536M");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(SlotsOf(Platform(), *parsed, 1), 3U);
  EXPECT_EQ(MemoryOf(*parsed, 0), uint64_t{8} << 30);
  EXPECT_EQ(MemoryOf(*parsed, 3), uint64_t{1536} << 20);
  ASSERT_EQ(parsed->unequal_hosts.size(), 6U);
  Platform platform;
  platform.host.speed = 2;
  const HostPlatform slow = HostOf(platform, *parsed, 1);
  EXPECT_EQ(slow.speed, 0.5);
  EXPECT_EQ(slow.cores, platform.host.cores);
  const HostPlatform linked = HostOf(platform, *parsed, 2);
  EXPECT_EQ(linked.in_bytes_per_second, 12U << 20);
  EXPECT_EQ(linked.out_bytes_per_second, 12U << 20);
  EXPECT_EQ(linked.cores, 2U);
  EXPECT_EQ(HostOf(platform, *parsed, 3).in_bytes_per_second, 10000U);
  EXPECT_EQ(HostOf(platform, *parsed, 3).out_bytes_per_second, platform.host.out_bytes_per_second);
  EXPECT_EQ(HostOf(platform, *parsed, 4).store_bytes, 1U << 30);
  EXPECT_EQ(HostOf(platform, *parsed, 5).page_cache_bytes, 0U);
  EXPECT_EQ(HostOf(platform, *parsed, 0), platform.host);
  EXPECT_EQ(SlotsOf(platform, *parsed, 0), platform.host.cores);
  EXPECT_EQ(SlotsOf(platform, *parsed, 3), 2U);
  const auto again = ParseConfiguration(ToText(*parsed));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *parsed);
  EXPECT_NE(*parsed, *ParseConfiguration("hosts=4,storage=2,manager=apart"));
  // A limit for all stores does not override a host's own.
  const auto limited = ParseConfiguration("store=1M,h2.store=2M");
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_EQ(HostOf(platform, *limited, 0).store_bytes, 1U << 20);
  EXPECT_EQ(HostOf(platform, *limited, 1).store_bytes, 2U << 20);
  // For one host 0 means no store; for all hosts it means the platform's limit.
  const auto none = ParseConfiguration("store=0,h2.store=0");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(HostOf(platform, *none, 0).store_bytes, platform.host.store_bytes);
  EXPECT_EQ(HostOf(platform, *none, 1).store_bytes, 0U);
}

TEST(Configuration, SaysOfClassesOfFilesWhereTheyLie) {
  const auto parsed = ParseConfiguration(
      "placement:mid/**/*.fits=local,placement@project=default,placement:sum=node:h2,"
      "placement:parts/[a-c]?=collocate:parts,placement=local");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->placement, "local");
  EXPECT_EQ(parsed->class_placements,
            (std::map<std::string, std::string>{{":mid/**/*.fits", "local"},
                                                {":parts/[a-c]?", "collocate:parts"},
                                                {":sum", "node:h2"},
                                                {"@project", "default"}}));
  const auto again = ParseConfiguration(ToText(*parsed));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *parsed);
  const auto changed = ParseConfiguration("placement:sum=local", *parsed);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->class_placements.at(":sum"), "local");
}

TEST(Configuration, KnowsThatSharedCoresAreNobodysOwn) {
  Platform platform;
  const auto parsed = ParseConfiguration("h2.cores=3");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(CheckOn(platform, *parsed).ok());
  platform.shared_cores = 8;
  EXPECT_EQ(MessageOf(CheckOn(platform, *parsed)),
            "configuration: h2.cores=3: all hosts of this platform share 8 cores, and none has its "
            "own");
}

TEST(Configuration, KnowsThatSpeedsMultiply) {
  Platform platform;
  platform.host.speed = 0.01;
  EXPECT_TRUE(CheckOn(platform, *ParseConfiguration("h2.speed=0.5")).ok());
  EXPECT_EQ(
      MessageOf(CheckOn(platform, *ParseConfiguration("h2.speed=0.001"))),
      "configuration: h2.speed=0.001: with the platform's 0.01 it is 1e-05, and may be 0.001 to "
      "1000");
}

TEST(Configuration, SaysWhatIsWrongAndWhatMayBeSaid) {
  const struct {
    const char* text;
    const char* expected;
  } rows[] = {
      {"hosts", "'hosts' is not name=value"},
      {"host=3", "'host' is not a name; names are hosts, storage"},
      {"hosts=", "hosts=: it must be a whole number"},
      {"hosts=-1", "hosts=-1: it must be a whole number"},
      {"hosts=3x", "hosts=3x: it must be a whole number"},
      {"hosts=99999999999", "a whole number"},
      {"hosts=0", "there would be no host to run tasks"},
      {"hosts=9000,storage=2000", "at most 10000"},
      {"slots=5000", "at most 4096"},
      {"chunk=1000", "a multiple of 4096"},
      {"chunk=many", "it must be a size"},
      {"hosts=3,stripe=4", "there are only 3 storage nodes"},
      {"hosts=9,storage=2,replicas=3", "there are only 2 storage nodes"},
      {"replicas=0", "1 to 64"},
      {"placement=far", "it must be near, stripe or local"},
      {"placement:a=far",
       "placement:a=far: it must be default, near, stripe, local, collocate:GROUP"},
      {"placement:a=", "placement:a=: it must be default"},
      {"placement:=local", "placement:=local: a class must be a glob or a stage without"},
      {"placement@=local", "placement@=local: a class must be a glob or a stage without"},
      {"placements:a=local", "'placements:a' is not a name"},
      {"system=fast", "it must be dss or wass"},
      {"manager=somewhere", "it must be shared or apart"},
      {"hosts=2,,seed=1", "'' is not name=value"},
      {"h2.colour=red", "'h2.colour': a host has cores, slots, memory, speed"},
      {"h2=1", "'h2' is not a name"},
      {"h.speed=1", "'h.speed' is not a name"},
      {"h0.speed=1", "hosts are numbered from h1"},
      {"h5-3.speed=1", "hosts are numbered from h1, and a range must begin with its lower host"},
      {"h1-4000000000.speed=1", "hosts are numbered from h1"},
      {"h5.speed=2", "there is no host h5, only h1 to h4"},
      {"h2.speed=fast", "h2.speed=fast: it must be a number"},
      {"h2.speed=0", "h2.speed=0: 0.001 to 1000"},
      {"h2.speed=nan", "h2.speed=nan: 0.001 to 1000"},
      {"h2.cores=0", "h2.cores=0: 1 to 4096"},
      {"h2.link=0", "h2.out=0: it must be 10000 to "},
      {"h2.link=12", "h2.out=12: it must be 10000 to "},
      {"h2.link=slow", "it must be a size"},
      {"storage=1,h1.store=1G", "h1.store=1073741824: this host has no storage node"},
  };
  for (const auto& row : rows) {
    const auto parsed = ParseConfiguration(row.text);
    ASSERT_FALSE(parsed.ok()) << row.text;
    EXPECT_NE(MessageOf(parsed.status()).find(row.expected), std::string::npos)
        << row.text << ": " << parsed.status();
  }
}

}  // namespace
}  // namespace mosa::predict
