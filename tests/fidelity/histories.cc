#include "tests/fidelity/histories.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>
#include <variant>

#include "common/base/rng.h"
#include "common/base/units.h"
#include "common/model/request_kinds.h"

namespace mosa::fidelity {
namespace {

using Kind = Operation::Kind;

constexpr uint64_t kKiB = 1024;

template <typename T>
const T& AnyOf(Rng& rng, const std::vector<T>& of) {
  return of[rng.Below(of.size())];
}

HintMap RandomHints(Rng& rng, uint32_t hosts, bool copies) {
  HintMap hints;
  // Not collocate and reduce: the free room that heartbeats tell decides about the first file.
  // One for each node: else the free room decides, too.
  if (copies && rng.Chance(400)) hints["replicas"] = std::to_string(hosts);
  switch (rng.Below(7)) {
    case 0:
      hints["placement"] = "local";
      break;
    case 1:
      hints["placement"] = fmt::format("node:h{}", 1 + rng.Below(hosts));
      break;
    case 2:
      hints["chunk_size"] = AnyOf<std::string>(rng, {"64K", "256K", "512K"});
      if (rng.Chance(500)) hints["stripe_width"] = "1";
      break;
    case 3:
      hints["pattern"] = AnyOf<std::string>(rng, {"pipeline", "scatter:128K", "gather"});
      break;
    default:
      break;
  }
  return hints;
}

uint64_t RandomSize(Rng& rng) {
  switch (rng.Below(8)) {
    case 0:
      return 0;
    case 1:
      return 1 + rng.Below(4096);
    case 2:
    case 3:
      return 1 + rng.Below(100 * kKiB);
    case 4:
      return (1 + rng.Below(16)) * 256 * kKiB;
    case 5:
      return 1 + rng.Below(20 * kMiB);
    default:
      return 1 + rng.Below(3 * kMiB);
  }
}

std::vector<ByteRange> RandomParts(Rng& rng, uint64_t size_bytes) {
  std::vector<ByteRange> parts;
  if (size_bytes == 0 || rng.Chance(500)) return {{0, size_bytes}};
  uint64_t at = rng.Chance(500) ? 0 : rng.Below(size_bytes);
  for (uint64_t i = 1 + rng.Below(5); i > 0; --i) {
    const uint64_t bytes = 1 + rng.Below(rng.Chance(500) ? 64 * kKiB : kMiB);
    parts.push_back({at, std::min(at + bytes, size_bytes)});
    at = rng.Chance(600) ? parts.back().end : rng.Below(size_bytes);
    if (at == size_bytes) at = 0;
  }
  return parts;
}

struct Fields {
  const bool has_copies;
  std::string operator()(const LookupRequest& r) const {
    return fmt::format("{} {}", r.parent.value, r.name);
  }
  std::string operator()(const MakeRequest& r) const {
    return fmt::format("{} in {} named {}{}{}", r.file.value, r.parent.value, r.name,
                       r.open ? " open" : "", r.bind ? " bind" : "");
  }
  std::string operator()(const RemoveRequest& r) const {
    return fmt::format("{} {}{}", r.parent.value, r.name, r.holds_open ? " held" : "");
  }
  std::string operator()(const SetAttributesRequest& r) const {
    return fmt::format(
        "{}{}", r.file.value,
        r.size_bytes ? fmt::format(" size {} of generation {}", *r.size_bytes, r.generation) : "");
  }
  std::string operator()(const OpenRequest& r) const {
    return fmt::format("{}{}", r.file.value, r.write ? " write" : "");
  }
  std::string operator()(const BindRequest& r) const {
    return fmt::format("{} first {}", r.file.value, r.first_bytes);
  }
  std::string operator()(const CommitRequest& r) const {
    std::string text = fmt::format("{} size {}{} of generation {}", r.file.value,
                                   r.size_is_exact ? "" : "at least ", r.size_bytes, r.generation);
    if (r.based_on_version) text += fmt::format(" based on {}", *r.based_on_version);
    if (r.inline_data) text += fmt::format(" inline {}", r.inline_data->size());
    if (r.inline_moved) text += " moved";
    if (r.last_close) text += " last";
    if (!r.data_changed) text += " unchanged";
    for (const CommitRequest::NodeBytes& node : r.nodes)
      text += has_copies ? fmt::format(" {}:{}", node.node.value, node.consumed_bytes)
                         : fmt::format(" {}:{}/{}", node.node.value, node.allocated_bytes,
                                       node.consumed_bytes);
    return text;
  }
  std::string operator()(const GrantRequest& r) const {
    return fmt::format("{} wanted {} consumed {} returned {}", r.node.value, r.wanted_bytes,
                       r.consumed_bytes, r.returned_bytes);
  }
  std::string operator()(const SetXattrRequest& r) const {
    return fmt::format("{} {}={}", r.file.value, r.name, r.value);
  }
  template <typename T>
  std::string operator()(const T& r) const {
    if constexpr (std::is_same_v<T, RecallDoneRequest>)
      return "";  // Whether the close before it is over by then is a matter of time.
    else if constexpr (requires { r.file.value; })
      return fmt::format("{}", r.file.value);
    else
      return "";
  }
};

}  // namespace

std::string ToText(const Operation& operation) {
  static constexpr const char* kNames[] = {"mkdir", "prepare", "write", "update", "read", "remove"};
  std::string text = fmt::format("mount {}: {} {} [{}, {})", operation.mount + 1,
                                 kNames[static_cast<size_t>(operation.kind)], operation.path,
                                 operation.range.begin, operation.range.end);
  for (const ByteRange& part : operation.parts)
    text += fmt::format(" [{}, {})", part.begin, part.end);
  for (const auto& [name, value] : operation.hints) text += fmt::format(" {}={}", name, value);
  return text;
}

void Sort(Actions& actions) {
  // A call begins with its mount. Answers to recalls come beside all else.
  std::ranges::stable_sort(actions.calls, {}, [](const std::string& call) {
    return std::pair(call.substr(0, call.find('>')), call.ends_with("> recall_done ;"));
  });
  // How often a request is repeated while nodes drop older objects is a matter of time.
  const auto repeats = [](const std::string& one, const std::string& next) {
    return one == next && one.find("> bind ") != std::string::npos;
  };
  actions.calls.erase(std::unique(actions.calls.begin(), actions.calls.end(), repeats),
                      actions.calls.end());
  std::ranges::sort(actions.nodes);
}

std::string ToText(const Actions& actions) {
  return fmt::format("{}{}\n{}\n", actions.failed ? "failed\n" : "", fmt::join(actions.calls, "\n"),
                     fmt::join(actions.nodes, "\n"));
}

void NoteCall(Actions& actions, bool has_copies, ClientId mount,
              const std::vector<Request>& requests) {
  if (std::holds_alternative<ReleaseRequest>(requests.front())) {
    ++actions.releases;
    return;
  }
  std::string text = fmt::format("mount {} ->", mount.value);
  for (const Request& request : requests)
    text += fmt::format(" {} {};", kRequestNames[request.index()],
                        std::visit(Fields{has_copies}, request));
  actions.calls.push_back(std::move(text));
}

std::string NodeText(ClientId mount, predict::Access access, NodeId node, FileId file,
                     ByteRange range) {
  static constexpr const char* kVerbs[] = {"reads", "writes", "cuts", "asks"};
  return fmt::format("mount {} {} node {} file {} [{}, {})", mount.value,
                     kVerbs[static_cast<size_t>(access)], node.value, file.value, range.begin,
                     range.end);
}

History RandomHistory(uint64_t seed, bool has_copies) {
  Rng rng(seed);
  History history{.has_copies = has_copies};
  predict::Configuration& configuration = history.configuration;
  configuration.hosts = static_cast<uint32_t>(1 + rng.Below(4));
  if (has_copies)
    configuration.hosts = static_cast<uint32_t>(2 + rng.Below(2));
  else if (rng.Chance(300))
    configuration.storage_hosts = static_cast<uint32_t>(1 + rng.Below(3));
  configuration.manager_apart = true;
  configuration.chunk_bytes = AnyOf<uint64_t>(rng, {64 * kKiB, 256 * kKiB, kMiB});
  if (rng.Chance(500)) configuration.stripe_width = static_cast<uint32_t>(1 + rng.Below(3));
  if (rng.Chance(200)) configuration.placement = "local";
  configuration.seed = rng.Next();
  const uint32_t nodes = predict::NodesOf(configuration);
  configuration.stripe_width = std::min(configuration.stripe_width, nodes);

  std::map<std::string, uint64_t> sizes;
  for (const char* directory : {"d", "e"}) {
    Operation make{.kind = Kind::kMakeDirectory, .path = directory};
    make.mount = static_cast<uint32_t>(rng.Below(configuration.hosts));
    if (configuration.storage_hosts == 0 && rng.Chance(300))
      make.hints = RandomHints(rng, configuration.hosts, has_copies);
    history.operations.push_back(make);
  }
  for (uint64_t i = 10 + rng.Below(30); i > 0; --i) {
    Operation operation;
    operation.mount = static_cast<uint32_t>(rng.Below(configuration.hosts));
    operation.path = fmt::format("{}/{}", rng.Chance(500) ? "d" : "e", rng.Below(4));
    const auto known = sizes.find(operation.path);
    const uint64_t which = rng.Below(10);
    if (known == sizes.end() && which < 3) {
      operation.kind = Kind::kPrepare;
      if (configuration.storage_hosts == 0)
        operation.hints = RandomHints(rng, configuration.hosts, has_copies);
      if (!operation.hints.empty()) sizes[operation.path] = 0;
    } else if (known == sizes.end() || which < 3) {
      operation.range = {0, RandomSize(rng)};
      sizes[operation.path] = operation.range.end;
    } else if (which < 4 && known->second > 0) {
      operation.kind = Kind::kUpdate;
      const uint64_t begin = rng.Below(known->second);
      operation.range = {begin, std::min(known->second, begin + 1 + rng.Below(kMiB))};
    } else if (which < 5) {
      operation.kind = Kind::kRemove;
      sizes.erase(known);
    } else {
      operation.kind = Kind::kRead;
      operation.parts = RandomParts(rng, known->second);
    }
    history.operations.push_back(operation);
  }
  return history;
}

std::map<std::string, std::vector<Operation>> Patterns(uint32_t hosts, uint64_t size_bytes) {
  std::map<std::string, std::vector<Operation>> patterns;
  const ByteRange whole{0, size_bytes};
  const auto part_of = [&](uint32_t host) {
    return ByteRange{size_bytes * host / hosts, size_bytes * (host + 1) / hosts};
  };
  const auto make = [&](std::vector<Operation>& operations, uint32_t host, const std::string& path,
                        const HintMap& hints) {
    operations.push_back({.kind = Kind::kPrepare, .mount = host, .path = path, .hints = hints});
    operations.push_back({.kind = Kind::kWrite, .mount = host, .path = path, .range = whole});
  };
  const auto read = [](std::vector<Operation>& operations, uint32_t host, const std::string& path,
                       ByteRange part) {
    operations.push_back({.kind = Kind::kRead, .mount = host, .path = path, .parts = {part}});
  };
  for (const char* name : {"pipeline", "reduce", "broadcast", "scatter", "gather", "reuse"})
    patterns[name] = {{.kind = Kind::kMakeDirectory, .path = "d"}};
  for (uint32_t host = 0; host < hosts; ++host) {
    std::vector<Operation>& pipeline = patterns["pipeline"];
    for (int stage = 0; stage < 3; ++stage) {
      const std::string path = fmt::format("d/{}.{}", host, stage);
      make(pipeline, host, path, {{"pattern", "pipeline"}});
      read(pipeline, host, path, whole);
    }
    make(patterns["reduce"], host, fmt::format("d/{}", host), {{"placement", "collocate:g"}});
  }
  make(patterns["broadcast"], 0, "d/f", {{"replicas", "3"}});
  make(patterns["scatter"], 0, "d/f", {{"pattern", "scatter:64K"}});
  make(patterns["gather"], 0, "d/f", {{"pattern", "gather"}});
  make(patterns["reuse"], 1, "d/f", {});
  for (uint32_t host = 0; host < hosts; ++host) {
    read(patterns["reduce"], 1, fmt::format("d/{}", host), whole);
    read(patterns["broadcast"], host, "d/f", whole);
    read(patterns["scatter"], host, "d/f", part_of(host));
    patterns["gather"].push_back(
        {.kind = Kind::kUpdate, .mount = host, .path = "d/f", .range = part_of(host)});
    read(patterns["reuse"], host, "d/f", whole);
    read(patterns["reuse"], host, "d/f", whole);
  }
  read(patterns["gather"], 2, "d/f", whole);
  return patterns;
}

}  // namespace mosa::fidelity
