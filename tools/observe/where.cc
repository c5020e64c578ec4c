#include "tools/observe/where.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>

#include "tools/console/output.h"
#include "tools/console/xattr.h"

namespace mosa::cli {
namespace {

// The location of one file, or why it is unknown.
struct Answer {
  Status status;
  std::string location;
};

std::string Join(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

// Asks one manager about many files by their paths in the store. Files that it does not know stay
// without an answer unless `is_last_word`: a mount may know them.
Status AskManager(sai::AdminClient& manager, const LocationsRequest& options,
                  const std::vector<std::pair<size_t, std::string>>& wanted, bool is_last_word,
                  std::vector<std::optional<Answer>>& answers) {
  std::vector<std::string> paths;
  paths.reserve(wanted.size());
  for (const auto& [index, path] : wanted) paths.push_back(path);
  MOSA_ASSIGN_OR_RETURN(const std::vector<FileLocation> files,
                        manager.ListLocations(paths, options.chunks));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const FileLocation& file = files[i];
    if (!file.failure) {
      answers[wanted[i].first] =
          Answer{OkStatus(), options.chunks ? file.chunks : Join(file.nodes)};
    } else if (is_last_word) {
      answers[wanted[i].first] = Answer{Status(file.failure->code, file.failure->message), ""};
    }
  }
  return OkStatus();
}

Result<std::vector<std::optional<Answer>>> Ask(const LocationsRequest& options,
                                               const std::vector<std::string>& paths) {
  std::vector<std::optional<Answer>> answers(paths.size());
  if (options.in_store) {
    MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
    std::vector<std::pair<size_t, std::string>> wanted;
    for (size_t i = 0; i < paths.size(); ++i) wanted.emplace_back(i, paths[i]);
    MOSA_RETURN_IF_ERROR(AskManager(*manager, options, wanted, true, answers));
    return answers;
  }
  for (const auto& [mount_point, wanted] : ByMount(paths)) {
    // If the manager cannot be reached, the mounts are asked about each file below.
    const auto manager = ConnectManagerOf(options.manager, mount_point);
    if (manager.ok()) MOSA_RETURN_IF_ERROR(AskManager(**manager, options, wanted, false, answers));
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    if (answers[i]) continue;
    auto location = MosaAttribute(paths[i], options.chunks ? "location.chunks" : "location");
    answers[i] =
        location.ok() ? Answer{OkStatus(), *std::move(location)} : Answer{location.status(), ""};
  }
  return answers;
}

}  // namespace

Status ReadLines(const std::string& from, size_t lines_max, std::vector<std::string>& lines) {
  std::ifstream file;
  if (from != "-") {
    file.open(from);
    if (!file) return NotFoundError(fmt::format("cannot read {}", from));
  }
  std::istream& in = from == "-" ? std::cin : file;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    if (lines.size() >= lines_max)
      return InvalidArgumentError(
          fmt::format("{} has more than {} lines: split it into several files", from, lines_max));
    lines.push_back(line);
  }
  return OkStatus();
}

std::map<std::string, std::vector<std::pair<size_t, std::string>>> ByMount(
    const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::map<std::string, std::optional<MountedPath>> directories;
  std::map<std::string, std::vector<std::pair<size_t, std::string>>> by_mount;
  for (size_t i = 0; i < paths.size(); ++i) {
    std::error_code error;
    const fs::path path = fs::absolute(paths[i], error).lexically_normal();
    if (error || !path.has_filename()) continue;
    const auto [known, is_new] = directories.try_emplace(path.parent_path());
    if (is_new) {
      // Resolves symbolic links, as the kernel does.
      const fs::path real = fs::canonical(path.parent_path(), error);
      auto place = error ? Result<MountedPath>(NotFoundError("")) : FindMount(real);
      if (place.ok()) known->second = *std::move(place);
    }
    if (!known->second) continue;
    by_mount[known->second->mount_point].emplace_back(
        i, (fs::path(known->second->path) / path.filename()).string());
  }
  return by_mount;
}

Status ShowLocations(const LocationsRequest& options, bool as_json) {
  std::vector<std::string> paths = options.paths;
  if (!options.from.empty()) MOSA_RETURN_IF_ERROR(ReadLines(options.from, SIZE_MAX, paths));
  MOSA_ASSIGN_OR_RETURN(const auto answers, Ask(options, paths));
  nlohmann::json json = nlohmann::json::array();
  Table table({"NODES", "PATH"});
  Status result;
  for (size_t i = 0; i < paths.size(); ++i) {
    const Answer& answer = *answers[i];
    nlohmann::json item;
    PutBytes(item, "path", paths[i]);
    if (!answer.status.ok()) {
      item["error"] = MessageOf(answer.status);
      if (result.ok()) result = answer.status;
    } else {
      table.Add({answer.location.empty() ? "-" : answer.location, paths[i]});
      if (options.chunks) {
        item["chunks"] = answer.location;
      } else {
        item["nodes"] = SplitNames(answer.location);
      }
    }
    json.push_back(std::move(item));
  }
  if (as_json) {
    PrintJson(json);
  } else {
    table.Print();
  }
  return result;
}

}  // namespace mosa::cli
