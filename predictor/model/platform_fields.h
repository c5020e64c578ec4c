// Every figure of a platform with its name in the file. The reader, the writer, the checks and the
// draws all use this one list.
#ifndef MOSA_PREDICTOR_MODEL_PLATFORM_FIELDS_H_
#define MOSA_PREDICTOR_MODEL_PLATFORM_FIELDS_H_

#include "predictor/model/platform.h"

namespace mosa::predict {

// Each function calls visit(section, field, value&) for every field, in the order of the file. `P`
// is Platform or const Platform. Values are std::string, bool, uint32_t, uint64_t, double or Cost.
// Section "" is the file's top level.
template <typename P, typename Visit>
void VisitHost(P& host, const char* section, Visit&& visit) {
  visit(section, "cores", host.cores);
  visit(section, "speed", host.speed);
  visit(section, "out_bytes_per_second", host.out_bytes_per_second);
  visit(section, "in_bytes_per_second", host.in_bytes_per_second);
  visit(section, "page_cache_bytes", host.page_cache_bytes);
  visit(section, "store_bytes", host.store_bytes);
}

template <typename P, typename Visit>
void VisitClient(P& client, Visit&& visit) {
  constexpr const char* kSection = "client";
  visit(kSection, "call", client.call);
  visit(kSection, "fuse_read", client.fuse_read);
  visit(kSection, "fuse_write", client.fuse_write);
  visit(kSection, "send", client.send);
  visit(kSection, "receive", client.receive);
  visit(kSection, "passthrough_read", client.passthrough_read);
  visit(kSection, "passthrough_write", client.passthrough_write);
  visit(kSection, "local_read", client.local_read);
  visit(kSection, "local_write", client.local_write);
  visit(kSection, "page_cache_read", client.page_cache_read);
  visit(kSection, "passthrough", client.passthrough);
  visit(kSection, "fuse_read_bytes", client.fuse_read_bytes);
  visit(kSection, "fuse_write_bytes", client.fuse_write_bytes);
  visit(kSection, "write_behind_bytes_max", client.write_behind_bytes_max);
  visit(kSection, "write_behind_file_bytes_max", client.write_behind_file_bytes_max);
  visit(kSection, "read_ahead_bytes_max", client.read_ahead_bytes_max);
  visit(kSection, "io_threads", client.io_threads);
  visit(kSection, "fetch_threads", client.fetch_threads);
}

template <typename P, typename Visit>
void VisitFields(P& platform, Visit&& visit) {
  visit("", "machine", platform.machine);
  visit("", "measured", platform.measured);
  visit("", "by", platform.by);
  visit("", "shared_cores", platform.shared_cores);
  VisitHost(platform.host, "host", visit);
  visit("network", "latency_ns", platform.network.latency_ns);
  visit("network", "loopback_latency_ns", platform.network.loopback_latency_ns);
  visit("network", "loopback", platform.network.loopback);
  visit("network", "out_queue_ns_max", platform.network.out_queue_ns_max);
  visit("network", "in_queue_ns_max", platform.network.in_queue_ns_max);
  visit("network", "burst_bytes", platform.network.burst_bytes);
  visit("network", "out_unevenness", platform.network.out_unevenness);
  visit("network", "in_unevenness", platform.network.in_unevenness);
  visit("network", "spread", platform.network.spread);
  visit("manager", "lookup", platform.manager.lookup);
  visit("manager", "make", platform.manager.make);
  visit("manager", "open", platform.manager.open);
  visit("manager", "bind", platform.manager.bind);
  visit("manager", "commit", platform.manager.commit);
  visit("manager", "grant", platform.manager.grant);
  visit("manager", "attribute", platform.manager.attribute);
  visit("manager", "other", platform.manager.other);
  visit("manager", "persist", platform.manager.persist);
  VisitClient(platform.client, visit);
  visit("node", "make", platform.node.make);
  visit("node", "read", platform.node.read);
  visit("node", "write", platform.node.write);
  visit("runner", "dispatch", platform.runner.dispatch);
  visit("runner", "launch", platform.runner.launch);
  visit("runner", "look", platform.runner.look);
  visit("runner", "notice_ns", platform.runner.notice_ns);
  visit("model", "spread", platform.model.spread);
}

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_PLATFORM_FIELDS_H_
