#include "predictor/compare/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "common/base/units.h"

namespace mosa::predict {
namespace {

constexpr double kBytesOffShare = 0.1;
constexpr double kBytesOffMin = 1 << 20;

// Bytes that tasks find or put on nodes other than their host's, and the total that this is a share
// of: by stage, all bytes of its tasks; by host, all bytes of the run, of which some cross its
// link.
struct MovedBytes {
  double elsewhere = 0, all = 0;
};
using Moved = std::map<std::string, MovedBytes>;

// By stage, by link and, for what tasks wrote, by the node that holds it. Every host has a link and
// a node, even without bytes.
std::array<Moved, 3> MovedIn(const Workflow& workflow, const SeenRun& run) {
  Moved by_stage, by_link, by_node;
  double all = 0, written = 0;
  for (const std::string& host : run.hosts) {
    by_link[host];
    by_node[host];
  }
  for (size_t i = 0; i < run.tasks.size(); ++i) {
    const SeenTask& task = run.tasks[i];
    MovedBytes& of_stage = by_stage[workflow.tasks[i].stage];
    if (!task.ran) continue;
    const std::string& host = run.hosts[task.host.value];
    for (const BytesByNodeName* found : {&task.read, &task.written}) {
      for (const auto& [node, count] : *found) {
        const auto bytes = static_cast<double>(count);
        of_stage.all += bytes;
        all += bytes;
        if (found == &task.written) {
          by_node[node].elsewhere += bytes;
          written += bytes;
        }
        if (node == host) continue;
        of_stage.elsewhere += bytes;
        by_link[host].elsewhere += bytes;
        by_link[node].elsewhere += bytes;
      }
    }
  }
  for (auto& [name, bytes] : by_link) bytes.all = all;
  for (auto& [name, bytes] : by_node) bytes.all = written;
  return {std::move(by_stage), std::move(by_link), std::move(by_node)};
}

// Compares shares: files that are larger than in the workload are not thereby placed differently.
ComparedBytes BytesOf(const std::string& name, const std::vector<MovedBytes>& drawn,
                      const std::vector<MovedBytes>& measured) {
  std::vector<double> elsewhere, all, measured_elsewhere, scaled;
  for (const MovedBytes& bytes : drawn) {
    elsewhere.push_back(bytes.elsewhere);
    all.push_back(bytes.all);
  }
  const double all_predicted = Median(std::move(all));
  for (const MovedBytes& bytes : measured) {
    measured_elsewhere.push_back(bytes.elsewhere);
    scaled.push_back(bytes.all > 0 ? bytes.elsewhere / bytes.all * all_predicted : 0);
  }
  const auto [least, most] = std::minmax_element(elsewhere.begin(), elsewhere.end());
  ComparedBytes bytes{name, Median(elsewhere), {*least, *most}, Median(measured_elsewhere)};
  const double held = Median(scaled);
  const auto beyond = [](double less, double more) {
    return more - less > std::max(kBytesOffMin, kBytesOffShare * more);
  };
  bytes.off = beyond(held, *least) || beyond(*most, held);
  return bytes;
}

// The sides of each kind. A run without one of these names has no bytes there, but the same total.
std::array<std::vector<Moved>, 3> SidesOf(const Workflow& workflow,
                                          const std::vector<const SeenRun*>& runs) {
  std::array<std::vector<Moved>, 3> sides;
  for (const SeenRun* run : runs) {
    auto moved = MovedIn(workflow, *run);
    for (size_t kind = 0; kind < sides.size(); ++kind)
      sides[kind].push_back(std::move(moved[kind]));
  }
  return sides;
}
std::vector<MovedBytes> BytesBy(const std::string& name, const std::vector<Moved>& side) {
  std::vector<MovedBytes> bytes;
  for (const Moved& moved : side) {
    const auto found = moved.find(name);
    bytes.push_back(found != moved.end() ? found->second
                    : moved.empty()      ? MovedBytes()
                                         : MovedBytes{0, moved.begin()->second.all});
  }
  return bytes;
}

std::map<uint64_t, double> ChunkSharesOf(const SeenRun& run) {
  double all = 0;
  for (const auto& [chunk_bytes, bytes] : run.bytes_by_chunk) all += static_cast<double>(bytes);
  std::map<uint64_t, double> shares;
  for (const auto& [chunk_bytes, bytes] : run.bytes_by_chunk)
    if (all > 0) shares[chunk_bytes] = static_cast<double>(bytes) / all;
  return shares;
}

}  // namespace

ComparedPlaces CompareBytes(const Workflow& workflow, const std::vector<SeenRun>& draws,
                            const std::vector<const SeenRun*>& runs) {
  ComparedPlaces compared;
  std::vector<const SeenRun*> drawn_runs;
  for (const SeenRun& draw : draws) drawn_runs.push_back(&draw);
  if (runs.empty()) return compared;
  const auto drawn = SidesOf(workflow, drawn_runs);
  const auto measured = SidesOf(workflow, runs);
  std::vector<ComparedBytes>* const kinds[] = {&compared.stages, &compared.links, &compared.nodes};
  for (size_t kind = 0; kind < drawn.size(); ++kind) {
    std::set<std::string> names;
    for (const auto* side : {&drawn[kind], &measured[kind]})
      for (const Moved& moved : *side)
        for (const auto& [name, bytes] : moved) names.insert(name);
    for (const std::string& name : names)
      kinds[kind]->push_back(
          BytesOf(name, BytesBy(name, drawn[kind]), BytesBy(name, measured[kind])));
  }
  return compared;
}

std::vector<ChunkShare> CompareChunks(const SeenRun& draw,
                                      const std::vector<const SeenRun*>& runs) {
  const auto predicted = ChunkSharesOf(draw);
  std::map<uint64_t, double> measured;
  for (const SeenRun* run : runs)
    if (!run->bytes_by_chunk.empty()) measured = ChunkSharesOf(*run);
  if (predicted.empty() || measured.empty()) return {};
  std::map<uint64_t, ChunkShare> chunks;
  for (const auto& [chunk_bytes, share] : predicted) chunks[chunk_bytes].predicted = share;
  for (const auto& [chunk_bytes, share] : measured) chunks[chunk_bytes].measured = share;
  std::vector<ChunkShare> compared;
  for (auto& [chunk_bytes, share] : chunks) {
    share.chunk_bytes = chunk_bytes;
    compared.push_back(share);
  }
  return compared;
}

bool AreInOtherChunks(const std::vector<ChunkShare>& chunks) {
  double more = 0;
  for (const ChunkShare& share : chunks) more += std::max(0.0, share.measured - share.predicted);
  return more > kBytesOffShare;
}

std::string SayOtherChunks(const std::vector<ChunkShare>& chunks) {
  const ChunkShare& most =
      *std::max_element(chunks.begin(), chunks.end(), [](const ChunkShare& a, const ChunkShare& b) {
        return a.measured - a.predicted < b.measured - b.predicted;
      });
  return fmt::format(
      "{:.0f} % of all bytes are in chunks of {}, predicted {:.0f} %: this is not the predicted "
      "deployment; 'mosa hint explain' of a file shows what set its chunk size; if that is "
      "intended, predict with --config chunk={} or with the --rules of the run",
      most.measured * 100, HumanBytes(static_cast<int64_t>(most.chunk_bytes)), most.predicted * 100,
      most.chunk_bytes);
}

}  // namespace mosa::predict
