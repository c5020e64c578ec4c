#include "tools/cluster/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/cluster/network.h"

namespace mosa::cluster {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

UpRequest GoodRequest() {
  UpRequest request;
  request.hosts = 4;
  request.name = "default";
  request.ram = "1G";
  request.default_placement = "stripe";
  request.directory = "/run/mosa";
  return request;
}

Machine BigMachine() {
  Machine machine;
  machine.root = true;
  machine.memory_bytes = int64_t{256} << 30;
  return machine;
}

struct Refusal {
  const char* what;
  void (*change)(UpRequest&, Machine&);
  StatusCode code;
  const char* says;
};

TEST(PlanCluster, RefusesEachImpossibleRequestWithItsReason) {
  const auto invalid = StatusCode::kInvalidArgument;
  const Refusal rows[] = {
      {"no hosts", [](UpRequest& r, Machine&) { r.hosts = 0; }, invalid, "--hosts 0"},
      {"too many", [](UpRequest& r, Machine&) { r.hosts = 201; }, invalid, "--hosts 201"},
      {"no name", [](UpRequest& r, Machine&) { r.name = ""; }, invalid, "--name ''"},
      {"path as name", [](UpRequest& r, Machine&) { r.name = "../x"; }, invalid, "--name '../x'"},
      {"long name", [](UpRequest& r, Machine&) { r.name.assign(33, 'a'); }, invalid, "--name"},
      {"rate of words", [](UpRequest& r, Machine&) { r.rate = "fast"; }, invalid, "'fast'"},
      {"rate without unit", [](UpRequest& r, Machine&) { r.rate = "200"; }, invalid, "'200'"},
      {"rate of zero", [](UpRequest& r, Machine&) { r.rate = "0mbit"; }, invalid, "'0mbit'"},
      {"rate with more", [](UpRequest& r, Machine&) { r.rate = "1mbit x"; }, invalid, "'1mbit x'"},
      {"rate too high", [](UpRequest& r, Machine&) { r.rate = "101gbit"; }, invalid, "101gbit"},
      {"rate without root",
       [](UpRequest& r, Machine& m) {
         r.rate = "200mbit";
         m.root = false;
       },
       invalid, "need root"},
      {"rate with --plain",
       [](UpRequest& r, Machine&) {
         r.rate = "200mbit";
         r.plain = true;
       },
       invalid, "need root"},
      {"others without root",
       [](UpRequest& r, Machine& m) {
         r.allow_other = true;
         m.root = false;
       },
       invalid, "--allow-other"},
      {"RAM of words", [](UpRequest& r, Machine&) { r.ram = "lots"; }, invalid, "'lots'"},
      {"too little RAM", [](UpRequest& r, Machine&) { r.ram = "1M"; }, invalid, "16M"},
      {"too much RAM", [](UpRequest& r, Machine&) { r.ram = "65G"; },
       StatusCode::kResourceExhausted, "256.0 GiB"},
      {"odd chunk", [](UpRequest& r, Machine&) { r.chunk_size = "65537"; }, invalid, "65537"},
      {"small chunk", [](UpRequest& r, Machine&) { r.chunk_size = "2K"; }, invalid, "2K"},
      {"stripe width", [](UpRequest& r, Machine&) { r.stripe_width = -1; }, invalid, "-1"},
      {"placement", [](UpRequest& r, Machine&) { r.default_placement = "far"; }, invalid, "far"},
      {"long directory", [](UpRequest& r, Machine&) { r.directory.assign(100, 'd'); }, invalid,
       "too long"},
  };
  for (const Refusal& row : rows) {
    UpRequest request = GoodRequest();
    Machine machine = BigMachine();
    row.change(request, machine);
    const auto plan = PlanCluster(request, machine);
    ASSERT_FALSE(plan.ok()) << row.what;
    EXPECT_EQ(plan.status().code(), row.code) << row.what;
    EXPECT_THAT(MessageOf(plan.status()), HasSubstr(row.says)) << row.what;
  }
}

// The same rule as for the hint on a file.
TEST(PlanCluster, TakesEveryChunkSizeThatAHintMayHave) {
  for (const char* size : {"4K", "12K", "3M", "1G"}) {
    UpRequest request = GoodRequest();
    request.chunk_size = size;
    EXPECT_TRUE(PlanCluster(request, BigMachine()).ok()) << size;
  }
}

TEST(PlanCluster, GivesEveryHostAnAddressOnASubnetNobodyUses) {
  Machine machine = BigMachine();
  machine.subnets_taken = {{0, 0}, {0x0ad50000, 0xffffff00}};  // default, 10.213.0.0/24
  machine.links_taken = {"lo", "mosa1"};
  const auto plan = PlanCluster(GoodRequest(), machine);
  ASSERT_TRUE(plan.ok()) << MessageOf(plan.status());
  EXPECT_EQ(plan->bridge, "mosa2");
  EXPECT_EQ(plan->gateway, "10.213.2.254");
  EXPECT_EQ(plan->ManagerListen(), "10.213.2.201:7400");
  ASSERT_THAT(plan->hosts, SizeIs(4));
  EXPECT_EQ(plan->hosts[3].address, "10.213.2.4");
  EXPECT_EQ(plan->hosts[3].net_namespace, "mosa-default-h4");
  EXPECT_EQ(plan->hosts[3].mount_point, "/run/mosa/default/h4/mount");
  EXPECT_GT(plan->tmpfs_bytes, plan->ram_bytes);
  EXPECT_EQ(plan->Find("h4"), &plan->hosts[3]);
  EXPECT_EQ(plan->Find("h5"), nullptr);
}

TEST(PlanCluster, SaysSoWhenNoSubnetIsLeft) {
  Machine machine = BigMachine();
  machine.subnets_taken = {{0x0a000000, 0xff000000}};  // 10.0.0.0/8
  const auto plan = PlanCluster(GoodRequest(), machine);
  EXPECT_EQ(plan.status().code(), StatusCode::kResourceExhausted);
}

TEST(PlanCluster, NeedsNoNetworkWithoutRoot) {
  Machine machine = BigMachine();
  machine.root = false;
  const auto plan = PlanCluster(GoodRequest(), machine);
  ASSERT_TRUE(plan.ok()) << MessageOf(plan.status());
  EXPECT_FALSE(plan->namespaces);
  EXPECT_EQ(plan->NodeListen(plan->hosts[0]), "127.0.0.1:0");
  EXPECT_THAT(PlanNetwork(*plan), SizeIs(0));
}

TEST(PlanNetwork, ShapesBothEndsOfEveryLink) {
  UpRequest request = GoodRequest();
  request.rate = "200mbit";
  const auto plan = PlanCluster(request, BigMachine());
  ASSERT_TRUE(plan.ok()) << MessageOf(plan.status());
  std::vector<std::string> lines;
  for (const NetworkStep& step : PlanNetwork(*plan)) lines.push_back(ToText(step));
  const std::string bucket = "root tbf rate 200mbit burst 256kb latency 50ms";
  for (const char* host : {"h0", "h1", "h4"}) {
    EXPECT_THAT(lines, Contains(std::string("tc qdisc add dev mosa0") + host + " " + bucket));
    EXPECT_THAT(lines, Contains(std::string("tc -n mosa-default-") + host + " qdisc add dev eth0 " +
                                bucket));
  }
}

TEST(PlanNetwork, LinkNamesFitTheKernelsFifteenBytes) {
  UpRequest request = GoodRequest();
  request.hosts = 200;
  Machine machine = BigMachine();
  for (int i = 0; i < 255; ++i) machine.links_taken.push_back("mosa" + std::to_string(i));
  const auto plan = PlanCluster(request, machine);
  ASSERT_TRUE(plan.ok()) << MessageOf(plan.status());
  EXPECT_EQ(plan->hosts[199].link, "mosa255h200");
  EXPECT_LE(plan->hosts[199].link.size(), 15U);
}

}  // namespace
}  // namespace mosa::cluster
