#include "predictor/model/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "common/base/units.h"
#include "common/model/hint_values.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kChunkMax = uint64_t{1} << 30;
constexpr uint32_t kSlotsMax = 4096;
constexpr uint64_t kBytesMax = uint64_t{1} << 60;

Status Wrong(std::string_view name, std::string_view value, std::string_view what) {
  return InvalidArgumentError(fmt::format("configuration: {}={}: {}", name, value, what));
}

template <typename Whole>
Status Number(std::string_view name, std::string_view value, Whole& into) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
  if (error == std::errc() && end == value.data() + value.size()) return OkStatus();
  return Wrong(name, value, "it must be a whole number of 0 or more");
}
Status Bytes(std::string_view name, std::string_view value, uint64_t& into) {
  const auto bytes = ParseBytes(value);
  if (!bytes.ok()) return Wrong(name, value, "it must be a size, such as 256K or 1M");
  into = static_cast<uint64_t>(*bytes);
  return OkStatus();
}
// Sets `is_second` if `value` is the second word; fails if it is neither.
Status Word(std::string_view name, std::string_view value, const char* first, const char* second,
            bool& is_second) {
  is_second = value == second;
  if (is_second || value == first) return OkStatus();
  return Wrong(name, value, fmt::format("it must be {} or {}", first, second));
}

Status Number(std::string_view name, std::string_view value, double& into) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
  if (error == std::errc() && end == value.data() + value.size()) return OkStatus();
  return Wrong(name, value, "it must be a number, such as 0.5");
}

// "h3.speed" or "h5-8.speed": hosts count from 1, as in `mosa cluster up`.
struct HostField {
  uint32_t first = 0;
  uint32_t last = 0;
  std::string_view field;
};
std::optional<HostField> HostFieldOf(std::string_view name) {
  HostField parsed;
  const char* const end = name.data() + name.size();
  if (!name.starts_with('h')) return std::nullopt;
  std::from_chars_result read = std::from_chars(name.data() + 1, end, parsed.first);
  if (read.ec != std::errc()) return std::nullopt;
  parsed.last = parsed.first;
  if (read.ptr != end && *read.ptr == '-') {
    read = std::from_chars(read.ptr + 1, end, parsed.last);
    if (read.ec != std::errc()) return std::nullopt;
  }
  if (read.ptr == end || *read.ptr != '.') return std::nullopt;
  parsed.field = name.substr(static_cast<size_t>(read.ptr + 1 - name.data()));
  return parsed;
}

constexpr std::string_view kPlacement = "placement";

// Returns the part after the word in "placement:GLOB" or "placement@STAGE", else nothing.
std::string_view ClassOf(std::string_view name) {
  if (!name.starts_with(kPlacement)) return {};
  name.remove_prefix(kPlacement.size());
  return name.starts_with(':') || name.starts_with('@') ? name : std::string_view();
}

Status SetClassPlacement(std::string_view name, std::string_view value, Configuration& into) {
  const std::string_view of_class = ClassOf(name);
  if (of_class.size() == 1 || of_class.find_first_of(",=") != std::string_view::npos)
    return Wrong(name, value,
                 "a class must be a glob or a stage without ',' and '=', such as "
                 "placement:projected/*.fits=local or placement@project=local; '?' in a glob "
                 "stands for any byte");
  // ToText() separates fields by ','.
  if (value.find(',') != std::string_view::npos)
    return Wrong(
        name, value,
        "a placement must not contain ','; give several values of a dimension as items of a list");
  if (value != kPlacementByDefault && !ParseHint(kPlacement, false, value).ok())
    return Wrong(
        name, value,
        "it must be default, near, stripe, local, collocate:GROUP, scatter:CHUNKS or node:NAME");
  into.class_placements.insert_or_assign(std::string(of_class), value);
  return OkStatus();
}

template <typename Value>
Status Into(std::optional<Value>& field, Status (*read)(std::string_view, std::string_view, Value&),
            std::string_view name, std::string_view value) {
  return read(name, value, field.emplace());
}

Status SetHostField(std::string_view name, std::string_view field, std::string_view value,
                    HostChange& into) {
  if (field == "cores") return Into<uint32_t>(into.cores, Number, name, value);
  if (field == "slots") return Into<uint32_t>(into.slots, Number, name, value);
  if (field == "memory") return Into<uint64_t>(into.memory_bytes, Bytes, name, value);
  if (field == "speed") return Into<double>(into.speed, Number, name, value);
  if (field == "cache") return Into<uint64_t>(into.page_cache_bytes, Bytes, name, value);
  if (field == "store") return Into<uint64_t>(into.store_bytes, Bytes, name, value);
  if (field == "out") return Into<uint64_t>(into.out_bytes_per_second, Bytes, name, value);
  if (field == "in") return Into<uint64_t>(into.in_bytes_per_second, Bytes, name, value);
  if (field == "link") {
    MOSA_RETURN_IF_ERROR(Into<uint64_t>(into.in_bytes_per_second, Bytes, name, value));
    into.out_bytes_per_second = into.in_bytes_per_second;
    return OkStatus();
  }
  return InvalidArgumentError(
      fmt::format("configuration: '{}': a host has cores, slots, memory, speed, link, out, in, "
                  "cache and store, such as h3.speed=0.5",
                  name));
}

Status CheckHost(const Configuration& c, uint32_t index, const HostChange& change) {
  const auto wrong = [index](std::string_view field, auto value, std::string_view what) {
    return Wrong(fmt::format("h{}.{}", index + 1, field), fmt::format("{}", value), what);
  };
  const uint64_t hosts = uint64_t{c.hosts} + c.storage_hosts + (c.manager_apart ? 1 : 0);
  if (index >= hosts)
    return InvalidArgumentError(
        fmt::format("configuration: there is no host h{}, only h1 to h{}", index + 1, hosts));
  if (change.cores && (*change.cores == 0 || *change.cores > kCoresMax))
    return wrong("cores", *change.cores, fmt::format("1 to {}", kCoresMax));
  if (change.slots && (*change.slots == 0 || *change.slots > kSlotsMax))
    return wrong("slots", *change.slots, fmt::format("1 to {}", kSlotsMax));
  if (change.speed && !(*change.speed >= kSpeedMin && *change.speed <= kSpeedMax))
    return wrong("speed", *change.speed, fmt::format("{} to {}", kSpeedMin, kSpeedMax));
  const std::pair<const char*, std::optional<uint64_t>> rates[] = {
      {"out", change.out_bytes_per_second}, {"in", change.in_bytes_per_second}};
  for (const auto& [field, rate] : rates)
    if (rate && (*rate < kLinkBytesPerSecondMin || *rate > kBytesMax))
      return wrong(field, *rate,
                   fmt::format("it must be {} to {} bytes per second, such as 12M",
                               kLinkBytesPerSecondMin, kBytesMax));
  const std::pair<const char*, std::optional<uint64_t>> sizes[] = {
      {"memory", change.memory_bytes},
      {"cache", change.page_cache_bytes},
      {"store", change.store_bytes}};
  for (const auto& [field, bytes] : sizes)
    if (bytes && *bytes > kBytesMax)
      return wrong(field, *bytes, fmt::format("at most {}", kBytesMax));
  const bool stores = c.storage_hosts == 0 ? index < c.hosts
                                           : index >= c.hosts && index < c.hosts + c.storage_hosts;
  if ((change.slots || change.memory_bytes) && index >= c.hosts)
    return wrong(change.slots ? "slots" : "memory", change.slots.value_or(0),
                 "this host runs no tasks");
  if (change.store_bytes && !stores)
    return wrong("store", *change.store_bytes, "this host has no storage node");
  return OkStatus();
}

std::string ToText(uint32_t index, const HostChange& change) {
  std::string text;
  const auto add = [&](const char* field, const auto& value) {
    if (value) text += fmt::format(",h{}.{}={}", index + 1, field, *value);
  };
  add("cores", change.cores);
  add("slots", change.slots);
  add("memory", change.memory_bytes);
  add("speed", change.speed);
  add("out", change.out_bytes_per_second);
  add("in", change.in_bytes_per_second);
  add("cache", change.page_cache_bytes);
  add("store", change.store_bytes);
  return text;
}

}  // namespace

Configuration OfDraw(Configuration configuration, uint32_t draw) {
  if (draw > 0) configuration.seed += draw - 1;
  return configuration;
}

uint32_t NodesOf(const Configuration& configuration) {
  return configuration.storage_hosts > 0 ? configuration.storage_hosts : configuration.hosts;
}

uint32_t SlotsOf(const Platform& platform, const Configuration& configuration) {
  if (configuration.slots > 0) return configuration.slots;
  const uint32_t cores =
      platform.shared_cores > 0 ? platform.shared_cores / configuration.hosts : platform.host.cores;
  return std::max<uint32_t>(1, cores);
}

HostPlatform HostOf(const Platform& platform, const Configuration& configuration, uint32_t index) {
  HostPlatform host = platform.host;
  if (configuration.store_bytes > 0) host.store_bytes = configuration.store_bytes;
  const auto found = configuration.unequal_hosts.find(index);
  if (found == configuration.unequal_hosts.end()) return host;
  const HostChange& change = found->second;
  host.cores = change.cores.value_or(host.cores);
  host.speed *= change.speed.value_or(1);
  host.out_bytes_per_second = change.out_bytes_per_second.value_or(host.out_bytes_per_second);
  host.in_bytes_per_second = change.in_bytes_per_second.value_or(host.in_bytes_per_second);
  host.page_cache_bytes = change.page_cache_bytes.value_or(host.page_cache_bytes);
  host.store_bytes = change.store_bytes.value_or(host.store_bytes);
  return host;
}

uint32_t SlotsOf(const Platform& platform, const Configuration& configuration, uint32_t index) {
  const auto found = configuration.unequal_hosts.find(index);
  if (found != configuration.unequal_hosts.end() && found->second.slots)
    return *found->second.slots;
  if (configuration.slots > 0 || platform.shared_cores > 0) return SlotsOf(platform, configuration);
  return HostOf(platform, configuration, index).cores;
}

uint64_t MemoryOf(const Configuration& configuration, uint32_t index) {
  const auto found = configuration.unequal_hosts.find(index);
  if (found == configuration.unequal_hosts.end()) return configuration.memory_bytes;
  return found->second.memory_bytes.value_or(configuration.memory_bytes);
}

Status SetField(std::string_view name, std::string_view value, Configuration& into) {
  if (const auto host = HostFieldOf(name)) {
    if (host->first == 0 || host->last < host->first || host->last > kSimulatedHostsMax + 1)
      return Wrong(name, value,
                   "hosts are numbered from h1, and a range must begin with its lower host");
    for (uint32_t i = host->first; i <= host->last; ++i)
      MOSA_RETURN_IF_ERROR(SetHostField(name, host->field, value, into.unequal_hosts[i - 1]));
    return OkStatus();
  }
  if (name == "hosts") return Number(name, value, into.hosts);
  if (name == "storage") return Number(name, value, into.storage_hosts);
  if (name == "manager") return Word(name, value, "shared", "apart", into.manager_apart);
  if (name == "slots") return Number(name, value, into.slots);
  if (name == "memory") return Bytes(name, value, into.memory_bytes);
  if (name == "chunk") return Bytes(name, value, into.chunk_bytes);
  if (name == "stripe") return Number(name, value, into.stripe_width);
  if (name == "replicas") return Number(name, value, into.replicas);
  if (name == "store") return Bytes(name, value, into.store_bytes);
  if (name == "seed") return Number(name, value, into.seed);
  if (name == kPlacement) {
    into.placement = value;
    return OkStatus();
  }
  if (!ClassOf(name).empty()) return SetClassPlacement(name, value, into);
  if (name == "system") {
    bool wass = false;
    MOSA_RETURN_IF_ERROR(Word(name, value, "dss", "wass", wass));
    into.system = wass ? System::kWass : System::kDss;
    return OkStatus();
  }
  return InvalidArgumentError(fmt::format(
      "configuration: '{}' is not a name; names are hosts, storage, manager, slots, "
      "memory, system, chunk, stripe, replicas, placement, store, seed; for a class of files "
      "placement:GLOB, placement@STAGE; for one host, such as h3, h3.speed and others; "
      "and for explorations nodes, frequency",
      name));
}

Status Check(const Configuration& c) {
  const uint64_t all = uint64_t{c.hosts} + c.storage_hosts;
  if (c.hosts == 0) return Wrong("hosts", "0", "there would be no host to run tasks");
  if (all > kSimulatedHostsMax)
    return Wrong(
        "hosts", fmt::format("{}", all),
        fmt::format("at most {} are allowed, together with those for storage", kSimulatedHostsMax));
  if (c.slots > kSlotsMax)
    return Wrong("slots", fmt::format("{}", c.slots), fmt::format("at most {}", kSlotsMax));
  if (c.memory_bytes > kBytesMax)
    return Wrong("memory", fmt::format("{}", c.memory_bytes), fmt::format("at most {}", kBytesMax));
  if (c.chunk_bytes < kChunkBytesMin || c.chunk_bytes > kChunkMax ||
      c.chunk_bytes % kChunkBytesMin != 0)
    return Wrong("chunk", fmt::format("{}", c.chunk_bytes),
                 fmt::format("a multiple of {} up to {}", kChunkBytesMin, kChunkMax));
  const uint32_t nodes = NodesOf(c);
  if (c.stripe_width > nodes)
    return Wrong("stripe", fmt::format("{}", c.stripe_width),
                 fmt::format("there are only {} storage nodes", nodes));
  if (c.replicas == 0 || c.replicas > kReplicasMax)
    return Wrong("replicas", fmt::format("{}", c.replicas), fmt::format("1 to {}", kReplicasMax));
  if (c.replicas > nodes)
    return Wrong("replicas", fmt::format("{}", c.replicas),
                 fmt::format("there are only {} storage nodes", nodes));
  if (c.placement != "stripe" && c.placement != "local" && c.placement != "near")
    return Wrong("placement", c.placement, "it must be near, stripe or local");
  for (const auto& [index, change] : c.unequal_hosts)
    MOSA_RETURN_IF_ERROR(CheckHost(c, index, change));
  return OkStatus();
}

Status CheckOn(const Platform& platform, const Configuration& configuration) {
  MOSA_RETURN_IF_ERROR(Check(configuration));
  for (const auto& [index, change] : configuration.unequal_hosts) {
    const double speed = HostOf(platform, configuration, index).speed;
    if (!(speed >= kSpeedMin && speed <= kSpeedMax))
      return Wrong(fmt::format("h{}.speed", index + 1), fmt::format("{}", change.speed.value_or(1)),
                   fmt::format("with the platform's {} it is {}, and may be {} to {}",
                               platform.host.speed, speed, kSpeedMin, kSpeedMax));
    if (change.cores && platform.shared_cores > 0)
      return Wrong(fmt::format("h{}.cores", index + 1), fmt::format("{}", *change.cores),
                   fmt::format("all hosts of this platform share {} cores, and none has its own",
                               platform.shared_cores));
  }
  return OkStatus();
}

Status SetFields(std::string_view text, Configuration& into) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return InvalidArgumentError(
          fmt::format("configuration: '{}' is not name=value, such as hosts=19,chunk=1M", item));
    MOSA_RETURN_IF_ERROR(SetField(item.substr(0, equals), item.substr(equals + 1), into));
  }
  return OkStatus();
}

Result<Configuration> ParseConfiguration(std::string_view text, const Configuration& base) {
  Configuration configuration = base;
  MOSA_RETURN_IF_ERROR(SetFields(text, configuration));
  MOSA_RETURN_IF_ERROR(Check(configuration));
  return configuration;
}

std::string ToText(const Configuration& c) {
  std::string text = fmt::format(
      "hosts={},storage={},manager={},slots={},system={},chunk={},stripe={},replicas={},"
      "placement={},store={},seed={}",
      c.hosts, c.storage_hosts, c.manager_apart ? "apart" : "shared", c.slots,
      c.system == System::kWass ? "wass" : "dss", FormatBytes(static_cast<int64_t>(c.chunk_bytes)),
      c.stripe_width, c.replicas, c.placement, FormatBytes(static_cast<int64_t>(c.store_bytes)),
      c.seed);
  if (c.memory_bytes > 0)
    text += fmt::format(",memory={}", FormatBytes(static_cast<int64_t>(c.memory_bytes)));
  for (const auto& [name, placement] : c.class_placements)
    text += fmt::format(",{}{}={}", kPlacement, name, placement);
  for (const auto& [index, change] : c.unequal_hosts) text += ToText(index, change);
  return text;
}

}  // namespace mosa::predict
