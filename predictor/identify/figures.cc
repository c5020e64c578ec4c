#include "predictor/identify/figures.h"

#include <fmt/format.h>

#include <type_traits>

#include "common/base/check.h"
#include "predictor/model/platform_fields.h"

namespace mosa::predict {
namespace {

using Slots = std::vector<double*>;

}  // namespace

Platform ReferencePlatform() {
  Platform platform;
  platform.manager.lookup = platform.manager.grant = {20'000};
  platform.manager.attribute = platform.manager.other = {20'000};
  platform.manager.make = platform.manager.open = platform.manager.bind = {25'000};
  platform.manager.commit = {25'000, 1};
  platform.manager.persist = {15'000, 1};
  platform.client.call = {30'000};
  platform.client.fuse_read = {30'000, 0.45};
  platform.client.fuse_write = {30'000, 0.8};
  platform.client.send = platform.client.receive = {15'000, 0.25};
  platform.client.passthrough_read = {5'000, 0.18};
  platform.client.passthrough_write = {5'000, 0.55};
  platform.client.local_read = {10'000, 0.25};
  platform.client.local_write = {10'000, 0.6};
  platform.client.page_cache_read = {3'000, 0.17};
  platform.node.make = {100'000};
  platform.node.read = {20'000, 0.25};
  platform.node.write = {20'000, 0.6};
  platform.network.loopback = {15'000, 0.3};
  platform.runner.dispatch = {700'000};
  platform.runner.launch = {3'000'000};
  platform.runner.look = {500'000};
  platform.runner.notice_ns = 100'000;
  return platform;
}

const std::vector<FigureGroup>& StoreFigures() {
  static const std::vector<FigureGroup> kGroups = {
      {"client.call.ns_per_call", [](Platform& p) { return Slots{&p.client.call.ns_per_call}; }},
      {"manager.lookup.ns_per_call",
       [](Platform& p) { return Slots{&p.manager.lookup.ns_per_call}; }},
      {"manager.make.ns_per_call", [](Platform& p) { return Slots{&p.manager.make.ns_per_call}; }},
      {"manager.open.ns_per_call", [](Platform& p) { return Slots{&p.manager.open.ns_per_call}; }},
      {"manager.bind.ns_per_call", [](Platform& p) { return Slots{&p.manager.bind.ns_per_call}; }},
      {"manager.commit.ns_per_call",
       [](Platform& p) { return Slots{&p.manager.commit.ns_per_call}; }},
      {"manager.attribute.ns_per_call",
       [](Platform& p) {
         return Slots{&p.manager.attribute.ns_per_call, &p.manager.grant.ns_per_call};
       }},
      {"manager.other.ns_per_call",
       [](Platform& p) { return Slots{&p.manager.other.ns_per_call}; }},
      {"manager.persist.ns_per_call",
       [](Platform& p) {
         return Slots{&p.manager.persist.ns_per_call, &p.manager.persist.ns_per_byte};
       }},
      {"client.fuse_read.ns_per_call",
       [](Platform& p) { return Slots{&p.client.fuse_read.ns_per_call}; }},
      {"client.fuse_read.ns_per_byte",
       [](Platform& p) { return Slots{&p.client.fuse_read.ns_per_byte}; }},
      {"client.fuse_write.ns_per_call",
       [](Platform& p) { return Slots{&p.client.fuse_write.ns_per_call}; }},
      {"client.fuse_write.ns_per_byte",
       [](Platform& p) { return Slots{&p.client.fuse_write.ns_per_byte}; }},
      {"client.send.ns_per_call",
       [](Platform& p) {
         return Slots{&p.client.send.ns_per_call, &p.node.write.ns_per_call};
       }},
      {"client.send.ns_per_byte",
       [](Platform& p) {
         return Slots{&p.client.send.ns_per_byte, &p.node.write.ns_per_byte};
       }},
      {"client.receive.ns_per_call",
       [](Platform& p) {
         return Slots{&p.client.receive.ns_per_call, &p.node.read.ns_per_call};
       }},
      {"client.receive.ns_per_byte",
       [](Platform& p) {
         return Slots{&p.client.receive.ns_per_byte, &p.node.read.ns_per_byte};
       }},
      {"node.make.ns_per_call", [](Platform& p) { return Slots{&p.node.make.ns_per_call}; }},
      {"client.passthrough_read.ns_per_call",
       [](Platform& p) { return Slots{&p.client.passthrough_read.ns_per_call}; }},
      {"client.passthrough_read.ns_per_byte",
       [](Platform& p) { return Slots{&p.client.passthrough_read.ns_per_byte}; }},
      {"client.passthrough_write.ns_per_call",
       [](Platform& p) { return Slots{&p.client.passthrough_write.ns_per_call}; }},
      {"client.passthrough_write.ns_per_byte",
       [](Platform& p) { return Slots{&p.client.passthrough_write.ns_per_byte}; }},
      {"client.local_read.ns_per_call",
       [](Platform& p) { return Slots{&p.client.local_read.ns_per_call}; }},
      {"client.local_read.ns_per_byte",
       [](Platform& p) { return Slots{&p.client.local_read.ns_per_byte}; }},
      {"client.local_write.ns_per_call",
       [](Platform& p) { return Slots{&p.client.local_write.ns_per_call}; }},
      {"client.local_write.ns_per_byte",
       [](Platform& p) { return Slots{&p.client.local_write.ns_per_byte}; }},
      {"client.page_cache_read.ns_per_call",
       [](Platform& p) { return Slots{&p.client.page_cache_read.ns_per_call}; }},
      {"client.page_cache_read.ns_per_byte",
       [](Platform& p) { return Slots{&p.client.page_cache_read.ns_per_byte}; }},
  };
  return kGroups;
}

const std::vector<FigureGroup>& RunnerFigures() {
  static const std::vector<FigureGroup> kGroups = {
      {"runner.dispatch.ns_per_call",
       [](Platform& p) { return Slots{&p.runner.dispatch.ns_per_call}; }},
      {"runner.launch.ns_per_call",
       [](Platform& p) { return Slots{&p.runner.launch.ns_per_call}; }},
      {"runner.look.ns_per_call", [](Platform& p) { return Slots{&p.runner.look.ns_per_call}; }},
  };
  return kGroups;
}

Platform Scaled(const Platform& platform, const std::vector<FigureGroup>& groups,
                const std::vector<double>& factors) {
  MOSA_CHECK(groups.size() == factors.size());
  Platform scaled = platform;
  for (size_t i = 0; i < groups.size(); ++i)
    for (double* const slot : groups[i].slots(scaled)) *slot *= factors[i];
  return scaled;
}

std::vector<std::pair<std::string, Cost*>> CostsOf(Platform& platform) {
  std::vector<std::pair<std::string, Cost*>> costs;
  VisitFields(platform, [&costs](const char* section, const char* field, auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, Cost>)
      costs.emplace_back(fmt::format("{}.{}", section, field), &value);
  });
  return costs;
}

}  // namespace mosa::predict
