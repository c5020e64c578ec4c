#include "tools/measure/capacity_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/base/units.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::CapacityLoad;
using predict::CapacityPart;
using predict::OperationRates;

constexpr int kFioMajorMin = 3;  // The first with the JSON names that are read here.
constexpr int64_t kRampMs = 300;
constexpr double kRoundingMax = 0.1;  // Rounding a share to a whole per cent.
constexpr Duration kSpareTime = Seconds(30);
constexpr uint64_t kBytesPerSecondMin = 1'000'000;  // For the slowest store, when files are laid.

// "fio-3.33": 3; 0 if it says something else.
int MajorOf(const std::string& version) {
  constexpr std::string_view kPrefix = "fio-";
  int major = 0;
  if (version.starts_with(kPrefix))
    std::from_chars(version.data() + kPrefix.size(), version.data() + version.size(), major);
  return major;
}

std::string Human(uint64_t bytes) { return HumanBytes(static_cast<int64_t>(bytes)); }

// In per cent, in the form that fio takes.
struct FioShare {
  double asked = 0;
  int64_t told = 0;
};

double ReadPercentOf(const CapacityLoad& load) {
  double read_percent = 0;
  for (const CapacityPart& part : load.parts)
    read_percent += part.read_percent * part.share_percent / 100.0;
  return read_percent;
}

// Each part's share of the reads, or of the writes, in whole per cents that add up to 100.
std::vector<FioShare> SharesOf(const CapacityLoad& load, bool reads) {
  double all = 0;
  const auto weight = [reads](const CapacityPart& part) {
    return part.share_percent * (reads ? part.read_percent : 100.0 - part.read_percent);
  };
  for (const CapacityPart& part : load.parts) all += weight(part);
  std::vector<FioShare> shares;
  double before = 0;
  for (const CapacityPart& part : load.parts) {
    const double own = 100 * (all == 0 ? part.share_percent / 100.0 : weight(part) / all);
    shares.push_back({own, std::lround(before + own) - std::lround(before)});
    before += own;
  }
  return shares;
}

// "4096/50:1048576/50".
std::string SplitOf(const CapacityLoad& load, bool reads) {
  const std::vector<FioShare> shares = SharesOf(load, reads);
  std::string split;
  for (size_t i = 0; i < shares.size(); ++i)
    split += fmt::format("{}{}/{}", i == 0 ? "" : ":", load.parts[i].size_bytes, shares[i].told);
  return split;
}

// Rounding would become an error of the estimate.
Status CheckShares(const CapacityLoad& load) {
  const double reads = ReadPercentOf(load);
  const double rounded = std::round(reads);
  std::vector<FioShare> shares = {{reads, std::lround(rounded)},
                                  {100 - reads, std::lround(100 - rounded)}};
  for (const bool of_reads : {true, false}) {
    const std::vector<FioShare> own = SharesOf(load, of_reads);
    shares.insert(shares.end(), own.begin(), own.end());
  }
  for (const FioShare& share : shares) {
    if (std::abs(static_cast<double>(share.told) - share.asked) <=
        kRoundingMax * share.asked + 1e-9)
      continue;
    return InvalidArgumentError(
        fmt::format("{}: fio takes whole per cents only, so {:.2f} % (of reads, of writes, or of "
                    "one size among these) would become {} %: give shares and percentages of reads "
                    "that are closer to whole ones",
                    predict::TextOf(load), share.asked, share.told));
  }
  return OkStatus();
}

}  // namespace

Result<std::vector<CapacityLoad>> ClientLoads(const CapacityLoad& load, uint32_t clients,
                                              uint64_t file_bytes) {
  for (const CapacityPart& part : load.parts) {
    if (part.size_bytes > file_bytes)
      return InvalidArgumentError(
          fmt::format("I/O size {} exceeds the file size {}: give a larger --file-size",
                      Human(part.size_bytes), Human(file_bytes)));
  }
  if (load.share_of == predict::ShareOf::kOperations) {
    MOSA_RETURN_IF_ERROR(CheckShares(load));
    return std::vector<CapacityLoad>(clients, load);
  }
  std::vector<CapacityLoad> all;
  for (const CapacityPart& part : load.parts) {
    const uint32_t hundredfold = part.share_percent * clients;
    if (hundredfold % 100 != 0)
      return InvalidArgumentError(
          fmt::format("{}: {} % of {} clients is not a whole number of clients: give other shares, "
                      "another --jobs, or shares of operations",
                      predict::TextOf(load), part.share_percent, clients));
    all.insert(all.end(), hundredfold / 100, predict::OneSize(part.size_bytes, part.read_percent));
  }
  return all;
}

std::vector<std::string> FioJob(const CapacityLoad& load, uint64_t seed) {
  const double read_percent = ReadPercentOf(load);
  uint64_t largest = 0;
  for (const CapacityPart& part : load.parts) largest = std::max(largest, part.size_bytes);
  std::vector<std::string> words = {fmt::format("--randseed={}", seed)};
  if (read_percent == 100) {
    words.push_back("--rw=randread");
  } else if (read_percent == 0) {
    words.push_back("--rw=randwrite");
  } else {
    words.push_back("--rw=randrw");
    words.push_back(fmt::format("--rwmixread={}", std::lround(read_percent)));
  }
  if (!load.is_mix()) {
    words.push_back(fmt::format("--bs={}", largest));
    return words;
  }
  words.push_back(fmt::format("--bssplit={},{}", SplitOf(load, true), SplitOf(load, false)));
  words.push_back(fmt::format("--blockalign={}", largest));
  return words;
}

std::string CapacityMeasure::PathOf(size_t client, size_t host) const {
  return fmt::format("{}/{}", workers_.DirectoryOf(0, host), client);
}

Result<std::string> CapacityMeasure::FioVersion() {
  std::string first;
  for (size_t host = 0; host < workers_.hosts().size(); ++host) {
    const std::string& name = workers_.hosts()[host].name;
    const auto answer =
        workers_->Ask(host, {{"do", "fio"}, {"step", "version"}}, StoreWorkers::kAnswerMax);
    if (answer.status().code() == StatusCode::kNotFound)
      return FailedPreconditionError(MessageOf(answer.status()));
    if (!answer.ok()) return answer.status();
    const std::string version = answer->at("version");
    if (MajorOf(version) < kFioMajorMin)
      return FailedPreconditionError(fmt::format(
          "host {} has fio version '{}': install fio {} or later", name, version, kFioMajorMin));
    if (host == 0) first = version;
    if (version != first)
      return FailedPreconditionError(
          fmt::format("host {} has {} and host {} has {}: install the same version on all hosts",
                      workers_.hosts().front().name, first, name, version));
  }
  return first;
}

Status CapacityMeasure::CheckRoom() {
  MOSA_ASSIGN_OR_RETURN(const std::vector<json> facts, Facts());
  const uint64_t bytes = clients_.file_bytes * clients();
  for (size_t i = 0; i < facts.size(); ++i) {
    const auto free = facts[i].at("store_free_bytes").get<uint64_t>();
    if (free >= bytes) continue;
    const RunHost& host = workers_.hosts()[i];
    return ResourceExhaustedError(
        fmt::format("{} (host {}) has {} free, but the files of {} clients take {}: lower "
                    "--file-size or --jobs",
                    host.mount_point, host.name, Human(free), clients(), Human(bytes)));
  }
  return OkStatus();
}

Status CapacityMeasure::LayFiles() {
  // What a killed measurement left here takes room.
  MOSA_RETURN_IF_ERROR(workers_.Settle(0));
  MOSA_RETURN_IF_ERROR(CheckRoom());
  const size_t hosts = workers_.hosts().size();
  std::vector<IdentifyWorkers::Question> questions;
  for (size_t host = 0; host < hosts; ++host) {
    json words = {{"do", "fio"}, {"step", "run"}, {"arguments", json::array()}};
    json& arguments = words["arguments"];
    for (const char* word : {"--output-format=json", "--eta=never", "--thread", "--ioengine=psync",
                             "--rw=write", "--bs=1M", "--fallocate=none", "--end_fsync=1"})
      arguments.push_back(word);
    arguments.push_back(fmt::format("--size={}", clients_.file_bytes));
    // Uses the files of the host before it.
    for (size_t client = 0; client < clients(); ++client) {
      if ((client + 1) % hosts != host) continue;
      arguments.push_back(fmt::format("--name={}", client));
      arguments.push_back(fmt::format("--filename={}", PathOf(client, host)));
    }
    questions.push_back({host, std::move(words)});
  }
  const auto seconds = static_cast<int64_t>(clients_.file_bytes * clients() / kBytesPerSecondMin);
  return workers_->Ask(questions, kSpareTime + Seconds(seconds)).status();
}

Result<OperationRates> CapacityMeasure::Sample(const CapacityLoad& load, uint64_t number) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<CapacityLoad> loads,
                        ClientLoads(load, clients(), clients_.file_bytes));
  const size_t hosts = workers_.hosts().size();
  std::vector<IdentifyWorkers::Question> questions;
  for (size_t host = 0; host < hosts; ++host) {
    std::vector<std::string> arguments = {
        "--output-format=json", "--eta=never", "--thread", "--ioengine=psync", "--time_based",
        "--norandommap", "--allow_file_create=0",
        fmt::format("--direct={}", clients_.direct ? 1 : 0),
        // fio's --fdatasync would also sync after reads.
        fmt::format("--sync={}", clients_.stored ? "dsync" : "none"),
        fmt::format("--runtime={}ms", clients_.sample_ms), fmt::format("--ramp_time={}ms", kRampMs),
        fmt::format("--size={}", clients_.file_bytes)};
    for (size_t client = host; client < clients(); client += hosts) {
      arguments.push_back(fmt::format("--name={}", client));
      arguments.push_back(fmt::format("--filename={}", PathOf(client, host)));
      const uint64_t seed = clients_.seed + number * clients() + client;
      for (std::string& word : FioJob(loads[client], seed)) arguments.push_back(std::move(word));
    }
    questions.push_back({host, {{"do", "fio"}, {"step", "run"}, {"arguments", arguments}}});
  }
  const Duration at_most = Milliseconds(clients_.sample_ms + kRampMs) + kSpareTime;
  MOSA_ASSIGN_OR_RETURN(const std::vector<json> answers, workers_->Ask(questions, at_most));
  OperationRates sum;
  for (const json& answer : answers) {
    sum.reads += answer.at("reads").get<double>();
    sum.writes += answer.at("writes").get<double>();
  }
  return sum;
}

}  // namespace mosa::cli
