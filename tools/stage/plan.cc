#include "tools/stage/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/base/units.h"

namespace mosa::cli {
namespace {

// What a file costs beside its bytes, so that small ones are shared out too.
constexpr uint64_t kFileCostBytes = 64 * 1024;

}  // namespace

std::vector<size_t> ShareOut(const std::vector<StageShare>& files, size_t hosts) {
  std::vector<size_t> order(files.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return files[a].bytes > files[b].bytes; });
  std::vector<size_t> all(hosts);
  std::iota(all.begin(), all.end(), size_t{0});
  std::vector<uint64_t> load(hosts, 0);
  std::vector<size_t> chosen(files.size(), 0);
  for (const size_t file : order) {
    const std::vector<size_t>& able = files[file].holders.empty() ? all : files[file].holders;
    const size_t host = *std::min_element(able.begin(), able.end(),
                                          [&](size_t a, size_t b) { return load[a] < load[b]; });
    load[host] += files[file].bytes + kFileCostBytes;
    chosen[file] = host;
  }
  return chosen;
}

std::string WarningFor(const UnstagedFiles& unstaged) {
  if (unstaged.kept_files >= unstaged.all_files) return "";
  if (unstaged.kept_files > 0) {
    const uint64_t others = unstaged.all_files - unstaged.kept_files;
    return fmt::format("{} of {} files {} not marked to be kept, and end{} with the store", others,
                       unstaged.all_files, others == 1 ? "is" : "are", others == 1 ? "s" : "");
  }
  return fmt::format(
      "No file was marked to be kept: {} file{}, {}, end{} with the store; copy results out, or "
      "mark them with lifetime=keep before they are written",
      unstaged.all_files, unstaged.all_files == 1 ? "" : "s",
      HumanBytes(static_cast<int64_t>(unstaged.all_bytes)), unstaged.all_files == 1 ? "s" : "");
}

std::string RefusalFor(const UnstagedFiles& unstaged, const std::string& what,
                       const std::string& stage_out, const std::string& override) {
  std::string names;
  for (const UnstagedFile& file : unstaged.first) names += (names.empty() ? "" : ", ") + file.path;
  if (unstaged.files > unstaged.first.size()) names += ", ...";
  const bool one = unstaged.files == 1;
  const std::string give_up =
      override.empty() ? "" : fmt::format(", or give {} up with {}", one ? "it" : "them", override);
  return fmt::format(
      "{} holds {} of lifetime=keep, {}, that {} nowhere else ({}): copy {} out with '{}'{}", what,
      one ? "a file" : fmt::format("{} files", unstaged.files),
      HumanBytes(static_cast<int64_t>(unstaged.bytes)), one ? "is" : "are", names,
      one ? "it" : "them", stage_out, give_up);
}

}  // namespace mosa::cli
