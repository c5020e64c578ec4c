#include "predictor/identify/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mosa::predict {
namespace {

constexpr uint64_t kKibibyte = 1 << 10;
constexpr uint64_t kMebibyte = 1 << 20;
// Limits per sample: more zero-byte operations tell no more, and files must be removed again.
constexpr uint32_t kRepeatsMax = 64;
constexpr uint64_t kSampleBytesMax = 2 << 20;

constexpr struct {
  ProbeKind kind;
  std::string_view name;
} kKinds[] = {{ProbeKind::kStat, "stat"},
              {ProbeKind::kStatAgain, "stat again"},
              {ProbeKind::kOpen, "open and close"},
              {ProbeKind::kOpenAgain, "open and close again"},
              {ProbeKind::kMakeDirectory, "make a directory"},
              {ProbeKind::kSetAttribute, "set an attribute"},
              {ProbeKind::kGetAttribute, "get an attribute"},
              {ProbeKind::kRemove, "remove"},
              {ProbeKind::kWrite, "write"},
              {ProbeKind::kRead, "read"},
              {ProbeKind::kReadAgain, "read again"}};

constexpr struct {
  Where where;
  std::string_view name;
  const char* text;
} kPlaces[] = {{Where::kDefault, "default", ""},
               {Where::kOwn, "own", " on the own host"},
               {Where::kOwnThroughMount, "own-through-mount", " on the own host through the mount"},
               {Where::kOther, "other", " on another host"}};

std::string HumanSize(uint64_t bytes) {
  if (bytes >= kMebibyte && bytes % kMebibyte == 0) return fmt::format("{} MiB", bytes / kMebibyte);
  if (bytes >= kKibibyte && bytes % kKibibyte == 0) return fmt::format("{} KiB", bytes / kKibibyte);
  return fmt::format("{} B", bytes);
}

bool MovesBytes(ProbeKind kind) { return kind >= ProbeKind::kWrite; }

}  // namespace

std::string_view NameOf(ProbeKind kind) {
  for (const auto& row : kKinds)
    if (row.kind == kind) return row.name;
  return "";
}

std::string_view NameOf(Where where) {
  for (const auto& row : kPlaces)
    if (row.where == where) return row.name;
  return "";
}

std::optional<ProbeKind> ProbeKindOf(std::string_view name) {
  for (const auto& row : kKinds)
    if (row.name == name) return row.kind;
  return std::nullopt;
}

std::optional<Where> WhereOf(std::string_view name) {
  for (const auto& row : kPlaces)
    if (row.name == name) return row.where;
  return std::nullopt;
}

std::string ToText(const Probe& probe) {
  std::string text(NameOf(probe.kind));
  if (MovesBytes(probe.kind))
    for (const auto& row : kPlaces)
      if (row.where == probe.where)
        text +=
            fmt::format(" {}{}", probe.bytes > 0 ? HumanSize(probe.bytes) : "nothing", row.text);
  if (probe.at_once > 1) text += fmt::format(", {} at once", probe.at_once);
  return text;
}

std::vector<Probe> PlanProbes(const ProbeScope& scope) {
  std::vector<Probe> probes;
  const bool others = scope.hosts > 1;
  const auto add = [&](ProbeKind kind, Where where, std::vector<uint64_t> sizes,
                       std::vector<uint32_t> loads = {1}) {
    for (const uint64_t bytes : sizes)
      for (const uint32_t at_once : loads)
        if (bytes * at_once <= scope.room_bytes) probes.push_back({kind, where, bytes, at_once});
  };
  add(ProbeKind::kOpenAgain, Where::kDefault, {1});
  add(ProbeKind::kWrite, Where::kDefault, {0, kKibibyte}, {1, 4});
  if (others) add(ProbeKind::kStat, Where::kDefault, {0});
  if (others) add(ProbeKind::kOpen, Where::kDefault, {0});
  add(ProbeKind::kMakeDirectory, Where::kDefault, {0});
  if (scope.hints) add(ProbeKind::kSetAttribute, Where::kDefault, {0});
  if (scope.hints) add(ProbeKind::kGetAttribute, Where::kDefault, {1});
  add(ProbeKind::kRemove, Where::kDefault, {1});
  add(ProbeKind::kStatAgain, Where::kDefault, {0});
  const std::vector<uint64_t> small = {64 * kKibibyte, 256 * kKibibyte};
  // The last is larger than caches and windows.
  const std::vector<uint64_t> large = {kMebibyte, 4 * kMebibyte, 16 * kMebibyte, kStreamBytes};
  for (const ProbeKind kind : {ProbeKind::kWrite, ProbeKind::kRead}) {
    for (const Where where : {Where::kOther, Where::kOwn, Where::kOwnThroughMount}) {
      if (where == Where::kOther && !others) continue;
      // On a store without hints, a file lies only where it was written.
      if (where == Where::kOther && !scope.hints && kind == ProbeKind::kWrite) continue;
      if (where == Where::kOwnThroughMount && !(scope.hints && scope.passthrough)) continue;
      // Small before large: small ones predict the time of large ones.
      add(kind, where, small);
      add(kind, where, large);
      add(kind, where, {where == Where::kOther ? kMebibyte : 4 * kMebibyte}, {2, 4});
    }
  }
  if (others)
    add(ProbeKind::kReadAgain, Where::kOther, {64 * kKibibyte, kMebibyte, 16 * kMebibyte});
  if (others && scope.hints) add(ProbeKind::kRead, Where::kDefault, {kKibibyte, 16 * kMebibyte});
  if (scope.hints) add(ProbeKind::kWrite, Where::kDefault, {16 * kMebibyte});
  return probes;
}

uint32_t RepeatsOf(const Probe& probe, double seconds, double sample_seconds, uint64_t room_bytes) {
  const double wanted = seconds > 0 ? std::floor(sample_seconds / seconds) : kRepeatsMax;
  uint64_t most = kRepeatsMax;
  // Preparing a sample takes longer than the sample if its bytes must cross a link.
  if (probe.bytes > 0) most = std::min(kSampleBytesMax, room_bytes) / (probe.bytes * probe.at_once);
  return static_cast<uint32_t>(
      std::clamp(wanted, 1.0, static_cast<double>(std::clamp<uint64_t>(most, 1, kRepeatsMax))));
}

}  // namespace mosa::predict
