#include "predictor/capacity/load.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "common/base/units.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kSizeMax = uint64_t{1} << 40;
constexpr size_t kPartsMax = 16;
constexpr std::string_view kOfOperations = "operations=";
constexpr std::string_view kOfClients = "clients=";

// Removes and returns the text before the separator; removes the separator, too.
std::string_view NextField(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view field = rest.substr(0, at);
  rest = at == rest.npos ? std::string_view() : rest.substr(at + 1);
  return field;
}

template <typename Number>
std::optional<Number> WholeFieldOf(std::string_view field) {
  Number number{};
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return number;
}

Result<CapacityPart> PartOf(std::string_view text) {
  const auto refused = [text] {
    return InvalidArgumentError(
        fmt::format("'{}': write SIZE:READ%r:SHARE, such as 4K:70%r:0.5, with a whole percentage "
                    "of reads and a share of 0.01 to 1 in hundredths",
                    text));
  };
  std::string_view rest = text;
  CapacityPart part;
  const Result<int64_t> size = ParseBytes(NextField(rest, ':'));
  std::string_view reads = NextField(rest, ':');
  if (!size.ok() || *size <= 0 || !reads.ends_with("%r")) return refused();
  reads.remove_suffix(2);
  const auto read_percent = WholeFieldOf<uint32_t>(reads);
  const auto share = rest.empty() ? std::optional(1.0) : WholeFieldOf<double>(rest);
  if (!read_percent || !share || !(*share >= 0.01 && *share <= 1)) return refused();
  const double percent = std::round(*share * 100);
  if (std::abs(percent - *share * 100) > 1e-6) return refused();
  part.size_bytes = static_cast<uint64_t>(*size);
  part.read_percent = *read_percent;
  part.share_percent = static_cast<uint32_t>(percent);
  return part;
}

}  // namespace

std::string_view NameOf(ShareOf share_of) {
  return share_of == ShareOf::kClients ? "clients" : "operations";
}

bool CapacityLoad::is_seed() const {
  return parts.size() == 1 &&
         (parts.front().read_percent == 0 || parts.front().read_percent == 100);
}

CapacityLoad OneSize(uint64_t size_bytes, uint32_t read_percent) {
  return {ShareOf::kClients, {{size_bytes, read_percent, 100}}};
}

Result<CapacityLoad> ParseLoad(std::string_view text) {
  CapacityLoad load;
  if (text.starts_with(kOfOperations)) {
    load.share_of = ShareOf::kOperations;
    text.remove_prefix(kOfOperations.size());
  } else if (text.starts_with(kOfClients)) {
    text.remove_prefix(kOfClients.size());
  }
  do {
    MOSA_ASSIGN_OR_RETURN(const CapacityPart part, PartOf(NextField(text, ',')));
    load.parts.push_back(part);
  } while (!text.empty());
  return MakeLoad(load.share_of, std::move(load.parts));
}

std::string TextOf(const CapacityLoad& load) {
  std::string text;
  for (const CapacityPart& part : load.parts) {
    text += fmt::format("{}{}:{}%r", text.empty() ? "" : ",",
                        FormatBytes(static_cast<int64_t>(part.size_bytes)), part.read_percent);
    if (load.is_mix()) text += fmt::format(":{}", part.share_percent / 100.0);
  }
  return load.share_of == ShareOf::kOperations ? std::string(kOfOperations) + text : text;
}

Result<CapacityLoad> MakeLoad(ShareOf share_of, std::vector<CapacityPart> parts) {
  CapacityLoad load{share_of, std::move(parts)};
  if (!load.is_mix()) load.share_of = ShareOf::kClients;
  uint64_t shares = 0;
  for (const CapacityPart& part : load.parts) {
    if (part.size_bytes == 0 || part.size_bytes > kSizeMax || part.read_percent > 100)
      return InvalidArgumentError(fmt::format("I/O of {} bytes and {} % reads is not possible",
                                              part.size_bytes, part.read_percent));
    shares += part.share_percent;
  }
  if (shares != 100 || load.parts.size() > kPartsMax)
    return InvalidArgumentError(
        fmt::format("{} parts have a sum of {} %: give 1 to {} parts with a sum of 100 %",
                    load.parts.size(), shares, kPartsMax));
  return load;
}

}  // namespace mosa::predict
