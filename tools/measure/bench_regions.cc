#include "tools/measure/bench_regions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/base/unique_fd.h"
#include "tools/console/xattr.h"
#include "tools/hosts/files.h"

namespace mosa::cli {

std::string NodeAt(const nlohmann::json& layout, uint64_t offset) {
  const uint64_t unit =
      layout.value("chunk_size", uint64_t{0}) * layout.value("run_chunks", uint64_t{1});
  std::string name;
  if (unit == 0) return name;
  for (const auto& segment : layout.value("segments", nlohmann::json::array())) {
    const uint64_t begin = segment.value("begin", uint64_t{0});
    const auto width = segment.value("width", uint64_t{0});
    const auto nodes = segment.value("nodes", std::vector<std::string>());
    if (begin > offset) break;
    if (width == 0 || nodes.size() < width) continue;
    name = nodes[(offset / unit - begin / unit) % width];
  }
  return name;
}

Status RegionFile::Prepare(const predict::Workflow& workflow) {
  static const predict::HintMap kNone;
  const std::string& directory = hosts_.front().directory;
  for (const predict::WorkflowFile& file : workflow.files) {
    MOSA_RETURN_IF_ERROR(PrepareOutput(directory, file.path, hinted_ ? file.hints : kNone));
    if (file.producer) continue;
    // The first written byte fixes the places of all regions.
    const std::string path = std::filesystem::path(directory) / file.path;
    UniqueFd made(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    const bool written = made && (!hinted_ || pwrite(made.get(), "", 1, 0) == 1);
    if (!written || close(made.release()) != 0)
      return FailedPreconditionError(fmt::format("cannot write {}: {}", path, strerror(errno)));
  }
  return OkStatus();
}

Result<predict::HostIndex> RegionFile::HostOf(const predict::Transfer& region,
                                              predict::HostIndex otherwise) {
  const std::string path = std::filesystem::path(hosts_.front().directory) / region.path;
  MOSA_ASSIGN_OR_RETURN(const auto layout, MosaJsonAttribute(path, "layout"));
  const std::string node = NodeAt(layout, region.begin);
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].name == node) return predict::HostIndex{i};
  }
  return otherwise;
}

}  // namespace mosa::cli
