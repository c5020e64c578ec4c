#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "common/model/adoption.h"
#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

struct AdoptOptions {
  ManagerChoice manager;
  std::vector<uint64_t> ids;
  bool all = false;
  bool discard = false;
};

Result<std::vector<AsideFile>> ListAll(sai::AdminClient& manager) {
  std::vector<AsideFile> all;
  while (true) {
    MOSA_ASSIGN_OR_RETURN(
        const std::vector<AsideFile> page,
        manager.ListAside(kAdoptedFilesMax, all.empty() ? FileId() : all.back().file));
    if (page.empty()) return all;
    all.insert(all.end(), page.begin(), page.end());
  }
}

std::string TextOf(Time time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(time.ns / 1'000'000'000));
}

void PrintAdoption(const std::vector<AsideFile>& files, const CommandLine& line) {
  nlohmann::json json = nlohmann::json::array();
  Table table({"FILE", "NODE", "SIZE", "ALLOCATED", "CHANGED (UTC)"});
  for (const AsideFile& file : files) {
    nlohmann::json parts = nlohmann::json::array();
    for (const AsidePart& part : file.parts) {
      parts.push_back({{"node", part.node_name},
                       {"size_bytes", part.size_bytes},
                       {"allocated_bytes", part.allocated_bytes},
                       {"modified_ns", part.modified.ns}});
      table.Add({fmt::format("{}", file.file.value), part.node_name,
                 fmt::format("{}", part.size_bytes), fmt::format("{}", part.allocated_bytes),
                 TextOf(part.modified)});
    }
    json.push_back({{"file", file.file.value}, {"parts", parts}});
  }
  if (line.json) {
    PrintJson(json);
  } else {
    table.Print();
  }
}

// Adopts or discards the files, a few thousand per call, and prints the outcome of each.
Status Change(sai::AdminClient& manager, const std::vector<FileId>& files, bool discard,
              CommandLine& line) {
  nlohmann::json json = nlohmann::json::array();
  size_t refused = 0;
  for (std::span<const FileId> rest = files; !rest.empty();) {
    const auto batch = rest.first(std::min(rest.size(), kAdoptedFilesMax));
    rest = rest.subspan(batch.size());
    MOSA_ASSIGN_OR_RETURN(
        const std::vector<AdoptOutcome> outcomes,
        manager.AdoptFiles(std::vector<FileId>(batch.begin(), batch.end()), discard));
    for (size_t i = 0; i < outcomes.size(); ++i) {
      const AdoptOutcome& outcome = outcomes[i];
      refused += outcome.refusal.empty() ? 0 : 1;
      json.push_back(
          {{"file", batch[i].value}, {"path", outcome.path}, {"refusal", outcome.refusal}});
      if (!outcome.refusal.empty()) {
        fmt::print(stderr, "{}\n", outcome.refusal);
      } else if (!line.json) {
        fmt::print("{} {}\n", batch[i].value, discard ? "discarded" : outcome.path);
      }
    }
  }
  if (line.json) PrintJson(json);
  if (refused == 0) return OkStatus();
  return FailedPreconditionError(
      fmt::format("{} of {} files were left unchanged", refused, files.size()));
}

Status Adopt(const AdoptOptions& options, CommandLine& line) {
  if (options.all && !options.ids.empty())
    return InvalidArgumentError("give file ids or --all, not both");
  if (options.discard && !options.all && options.ids.empty())
    return InvalidArgumentError("--discard needs the ids of files, or --all");
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  std::vector<FileId> files;
  for (const uint64_t id : options.ids) files.push_back(FileId{id});
  if (files.empty()) {
    MOSA_ASSIGN_OR_RETURN(const std::vector<AsideFile> aside, ListAll(*manager));
    if (!options.all) {
      PrintAdoption(aside, line);
      return OkStatus();
    }
    for (const AsideFile& file : aside) files.push_back(file.file);
  }
  return Change(*manager, files, options.discard, line);
}

}  // namespace

void AddAdopt(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<AdoptOptions>();
  CLI::App* command = app.add_subcommand(
      "adopt",
      "List, adopt or discard the objects that nodes have put aside\n\n"
      "Nodes put aside objects whose files the manager may have forgotten. Without arguments,\n"
      "this command lists them. Adopted files belong to root and usually appear as\n"
      "/lost+found/#ID.\n\n"
      "  mosa adopt\n"
      "  mosa adopt 1764161234567890\n"
      "  mosa adopt --all\n"
      "  mosa adopt --discard --all");
  command->add_option("file", options->ids, "Ids of the files to adopt or discard, as listed");
  command->add_flag("--all", options->all, "Adopt or discard everything that is put aside");
  command->add_flag("--discard", options->discard,
                    "Remove the objects permanently instead of adopting them");
  AddManagerChoice(*command, options->manager);
  command->callback(
      [options, &line] { line.action = [options, &line] { return Adopt(*options, line); }; });
}

}  // namespace mosa::cli
