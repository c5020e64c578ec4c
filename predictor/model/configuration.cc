#include "predictor/model/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "common/base/units.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kChunkMax = uint64_t{1} << 30;
constexpr uint32_t kReplicasMax = 64;
constexpr uint32_t kSlotsMax = 4096;

Status Wrong(std::string_view name, std::string_view value, std::string_view what) {
  return InvalidArgumentError(fmt::format("configuration: {}={}: {}", name, value, what));
}

template <typename Whole>
Status Number(std::string_view name, std::string_view value, Whole& into) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
  if (error == std::errc() && end == value.data() + value.size()) return OkStatus();
  return Wrong(name, value, "a whole number is needed, 0 or more");
}
Status Bytes(std::string_view name, std::string_view value, uint64_t& into) {
  const auto bytes = ParseBytes(value);
  if (!bytes.ok()) return Wrong(name, value, "a size is needed, as 256K or 1M");
  into = static_cast<uint64_t>(*bytes);
  return OkStatus();
}
// The index of `value` among the two words.
Status Word(std::string_view name, std::string_view value, const char* first, const char* second,
            bool& is_second) {
  is_second = value == second;
  if (is_second || value == first) return OkStatus();
  return Wrong(name, value, fmt::format("it is {} or {}", first, second));
}

}  // namespace

uint32_t NodesOf(const Configuration& configuration) {
  return configuration.storage_hosts > 0 ? configuration.storage_hosts : configuration.hosts;
}

uint32_t SlotsOf(const Platform& platform, const Configuration& configuration) {
  if (configuration.slots > 0) return configuration.slots;
  const uint32_t cores =
      platform.shared_cores > 0 ? platform.shared_cores / configuration.hosts : platform.host.cores;
  return std::max<uint32_t>(1, cores);
}

Status SetField(std::string_view name, std::string_view value, Configuration& into) {
  if (name == "hosts") return Number(name, value, into.hosts);
  if (name == "storage") return Number(name, value, into.storage_hosts);
  if (name == "manager") return Word(name, value, "shared", "apart", into.manager_apart);
  if (name == "slots") return Number(name, value, into.slots);
  if (name == "chunk") return Bytes(name, value, into.chunk_bytes);
  if (name == "stripe") return Number(name, value, into.stripe_width);
  if (name == "replicas") return Number(name, value, into.replicas);
  if (name == "store") return Bytes(name, value, into.store_bytes);
  if (name == "seed") return Number(name, value, into.seed);
  if (name == "placement") {
    into.placement = value;
    return OkStatus();
  }
  if (name == "system") {
    bool wass = false;
    MOSA_RETURN_IF_ERROR(Word(name, value, "dss", "wass", wass));
    into.system = wass ? System::kWass : System::kDss;
    return OkStatus();
  }
  return InvalidArgumentError(
      fmt::format("configuration: '{}' is no name; there are hosts, storage, manager, slots, "
                  "system, chunk, stripe, replicas, placement, store, seed; and for explorations "
                  "nodes, frequency",
                  name));
}

Status Check(const Configuration& c) {
  const uint64_t all = uint64_t{c.hosts} + c.storage_hosts;
  if (c.hosts == 0) return Wrong("hosts", "0", "no host would run tasks");
  if (all > kSimulatedHostsMax)
    return Wrong("hosts", fmt::format("{}", all),
                 fmt::format("with those for storage at most {}", kSimulatedHostsMax));
  if (c.slots > kSlotsMax)
    return Wrong("slots", fmt::format("{}", c.slots), fmt::format("at most {}", kSlotsMax));
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
  if (c.placement != "stripe" && c.placement != "local")
    return Wrong("placement", c.placement, "it is stripe or local");
  return OkStatus();
}

Status SetFields(std::string_view text, Configuration& into) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return InvalidArgumentError(
          fmt::format("configuration: '{}' is not name=value, as in hosts=19,chunk=1M", item));
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
  return fmt::format(
      "hosts={},storage={},manager={},slots={},system={},chunk={},stripe={},replicas={},"
      "placement={},store={},seed={}",
      c.hosts, c.storage_hosts, c.manager_apart ? "apart" : "shared", c.slots,
      c.system == System::kWass ? "wass" : "dss", FormatBytes(static_cast<int64_t>(c.chunk_bytes)),
      c.stripe_width, c.replicas, c.placement, FormatBytes(static_cast<int64_t>(c.store_bytes)),
      c.seed);
}

}  // namespace mosa::predict
