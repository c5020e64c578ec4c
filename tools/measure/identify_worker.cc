#include "tools/measure/identify_worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "common/base/clock.h"
#include "predictor/model/cost.h"
#include "tools/cluster/process.h"
#include "tools/console/xattr.h"
#include "tools/hosts/identify_workers.h"
#include "tools/measure/envelope_client.h"
#include "tools/measure/fio.h"
#include "tools/measure/identify_files.h"
#include "tools/measure/identify_network.h"
#include "tools/measure/processor_ticks.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value after the colon in the first line of `path` that begins with `key`.
std::string ValueIn(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t at = line.find_first_not_of(" \t", line.find(':') + 1);
    return at == std::string::npos ? "" : line.substr(at);
  }
  return "";
}

// Whether it is a Mosa mount whose kernel reads and writes objects directly.
struct MountFacts {
  bool mosa = false;
  bool passthrough = false;
};
MountFacts FactsOf(const std::string& mount_point) {
  std::string text(65536, '\0');
  const ssize_t size = getxattr(mount_point.c_str(), "user.mosa.mount", text.data(), text.size());
  if (size <= 0) return {};
  const json said = json::parse(text.substr(0, static_cast<size_t>(size)), nullptr, false);
  const json fuse = said.is_object() ? said.value("fuse", json::object()) : json::object();
  return {true, fuse.value("passthrough", false)};
}

// What is mounted there, according to the kernel; all empty if that is unknown.
struct FileSystem {
  std::string type;      // "tmpfs", "nfs4", "fuse.mosa".
  std::string source;    // "10.0.0.1:/export".
  std::string options;   // Options of the mount, and of the file system.
  uint64_t born_us = 0;  // Birth of the directory itself, since 1970; 0: unknown.
};
FileSystem FileSystemOf(const std::string& directory) {
  struct statx seen {};
  if (statx(AT_FDCWD, directory.c_str(), 0, STATX_BTIME, &seen) != 0) return {};
  const std::string device = fmt::format("{}:{}", seen.stx_dev_major, seen.stx_dev_minor);
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string id, parent, number, root, mount_point, own, word, of_all;
    fields >> id >> parent >> number >> root >> mount_point >> own;
    if (number != device) continue;
    while (fields >> word && word != "-") {
    }
    FileSystem found;
    fields >> found.type >> found.source >> of_all;
    found.options = own + "," + of_all;
    if ((seen.stx_mask & STATX_BTIME) != 0)
      found.born_us =
          static_cast<uint64_t>(seen.stx_btime.tv_sec) * 1'000'000 + seen.stx_btime.tv_nsec / 1000;
    return found;
  }
  return {};
}

// How many cores were busy during a moment, with anything.
double BusyCores() {
  constexpr Duration kMoment = Milliseconds(300);
  const ProcessorTicks before = ReadProcessorTicks();
  cluster::Pause(kMoment);
  const auto ticks = static_cast<double>((ReadProcessorTicks() - before).busy);
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) / predict::SecondsOf(kMoment);
}

json Facts(const std::string& directory, const std::string& mount_point) {
  const MountFacts mount = FactsOf(mount_point);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const bool counted = sched_getaffinity(0, sizeof cores, &cores) == 0;
  utsname system{};
  uname(&system);
  struct statvfs space {};
  statvfs(directory.c_str(), &space);
  const uint64_t block = space.f_frsize;
  const FileSystem store = FileSystemOf(directory);
  return {{"mosa", mount.mosa},
          {"passthrough", mount.passthrough},
          {"busy_cores", BusyCores()},
          {"boot_id", FirstLine("/proc/sys/kernel/random/boot_id")},
          {"cores", counted ? CPU_COUNT(&cores) : 1},
          {"processor", ValueIn("/proc/cpuinfo", "model name")},
          {"kernel", std::string(system.release)},
          {"memory_available_kib",
           std::strtoull(ValueIn("/proc/meminfo", "MemAvailable").c_str(), nullptr, 10)},
          {"file_system", store.type},
          {"source", store.source},
          {"mount_options", store.options},
          {"born_us", store.born_us},
          {"store_bytes", uint64_t{space.f_blocks} * block},
          {"store_free_bytes", uint64_t{space.f_bavail} * block},
          // Some file systems do not count them.
          {"store_free_files", space.f_files == 0 ? UINT64_MAX : uint64_t{space.f_favail}}};
}

Status MakeDirectory(const std::string& path, const std::string& placement) {
  std::error_code error;
  // Does not create its parents: what has vanished must not come back.
  fs::create_directory(path, error);
  if (error)
    return FailedPreconditionError(fmt::format("cannot create {}: {}", path, error.message()));
  if (placement.empty()) return OkStatus();
  if (setxattr(path.c_str(), "user.mosa.placement", placement.data(), placement.size(), 0) == 0)
    return OkStatus();
  return FailedPreconditionError(
      fmt::format("cannot hint {} with placement={}: {}", path, placement, strerror(errno)));
}

// Returns whether there was anything. Another host may be creating the last file below it.
Result<bool> Clear(const std::string& path) {
  std::error_code error;
  const bool found = fs::exists(path, error);
  for (int trial = 0; trial < 5; ++trial) {
    fs::remove_all(path, error);
    if (error != std::errc::directory_not_empty) break;
    usleep(100'000);
  }
  if (!error) return found;
  return FailedPreconditionError(fmt::format("cannot remove {}: {}", path, error.message()));
}

SampleFiles FilesFrom(const json& words) {
  SampleFiles files;
  files.probe.kind = predict::ProbeKindOf(words.at("kind").get<std::string>()).value();
  files.probe.where = predict::WhereOf(words.at("where").get<std::string>()).value();
  files.probe.bytes = words.at("bytes");
  files.probe.at_once = words.at("at_once");
  files.directory = words.at("directory");
  files.tag = words.at("tag");
  files.rounds = words.at("rounds");
  return files;
}

// The address at which other hosts reach this one, if they do: where the ssh that started this
// process reached it.
std::string OwnAddress(bool reached_from_afar) {
  if (!reached_from_afar) return AddressTowards("");
  // "PEER PORT OWN PORT".
  const char* connection = std::getenv("SSH_CONNECTION");
  std::istringstream fields(connection == nullptr ? "" : connection);
  std::string peer, peer_port, own;
  fields >> peer >> peer_port >> own;
  return own.empty() ? AddressTowards(peer) : own;
}

StreamTarget TargetFrom(const json& words) {
  return {words.at("addresses"), words.at("port"), words.at("token")};
}

class IdentifyWorker {
 public:
  json Answer(const json& words) {
    json answer = AnswerOf(words);
    if (words.is_object()) answer["number"] = words.value("number", json());
    return answer;
  }

 private:
  json AnswerOf(const json& words) {
    try {
      Result<json> answer = Do(words.at("do").get<std::string>(), words);
      if (answer.ok()) return *std::move(answer);
      return StatusJson(answer.status());
    } catch (const std::exception& error) {
      return StatusJson(InternalError(error.what()));
    }
  }
  Result<json> Do(const std::string& what, const json& words) {
    if (what == "facts") return Facts(words.at("directory"), words.at("mount"));
    if (what == "listen") {
      std::string address = words.at("address");
      if (address.empty()) address = OwnAddress(words.at("reached_from_afar"));
      MOSA_ASSIGN_OR_RETURN(receiver_, StreamReceiver::Open(address, words.at("token")));
      return json{{"port", receiver_->port()}, {"address", address}};
    }
    if (what == "stream") {
      MOSA_ASSIGN_OR_RETURN(const StreamSpan span,
                            SendStreams(TargetFrom(words), words.at("bytes"),
                                        words.at("warm_bytes"), words.at("connections")));
      return json{{"bytes", span.bytes}, {"begin_ns", span.begin_ns}, {"end_ns", span.end_ns}};
    }
    if (what == "shares") return Shares(words);
    if (what == "ping")
      return Number(RoundTripSeconds(TargetFrom(words), words.at("count"), words.at("loaded")));
    if (what == "clock") return json{{"ns", SystemClock().Monotonic().ns}};
    if (what == "fio") return DoFioStep(words.at("step"), words, STDIN_FILENO);
    if (what == "envelope") return DoClientStep(client_, words.at("step"), words);
    if (what == "operate") return Number(files_.Operate(FilesFrom(words)));
    if (what == "locate")
      return json{{"nodes", MosaAttribute(words.at("path"), "location").value_or("")}};
    if (what == "layout")
      return json{{"layout", MosaAttribute(words.at("path"), "layout").value_or("")}};
    if (what == "clear") {
      MOSA_ASSIGN_OR_RETURN(const bool found, Clear(words.at("path").get<std::string>()));
      return json{{"found", found}};
    }
    MOSA_RETURN_IF_ERROR(Change(what, words));
    return json::object();
  }
  Result<json> Shares(const json& words) {
    std::vector<StreamTarget> targets;
    for (const json& target : words.at("targets")) targets.push_back(TargetFrom(target));
    MOSA_ASSIGN_OR_RETURN(const std::vector<StreamSpan> spans,
                          SendStreamsApart(targets, words.at("bytes"),
                                           Nanoseconds(words.at("counted_ns").get<int64_t>()),
                                           words.at("connections")));
    json rates = json::array();
    for (const StreamSpan& span : spans) rates.push_back(span.BytesPerSecond());
    return json{{"rates", rates}};
  }
  Status Change(const std::string& what, const json& words) {
    if (what == "make") return MakeDirectory(words.at("path"), words.at("placement"));
    if (what == "write") return files_.Write(FilesFrom(words));
    if (what == "remove") return files_.Remove(FilesFrom(words));
    if (what == "look") {
      std::error_code error;
      if (fs::is_directory(words.at("path").get<std::string>(), error)) return OkStatus();
      return NotFoundError(fmt::format("{} is gone", words.at("path").get<std::string>()));
    }
    return InvalidArgumentError(fmt::format("unknown request '{}'", what));
  }
  static Result<json> Number(const Result<double>& number) {
    if (!number.ok()) return number.status();
    return json{{"value", *number}};
  }

  std::unique_ptr<StreamReceiver> receiver_;
  IdentifyFiles files_;
  EnvelopeClient client_;
};

}  // namespace

Status ServeAsIdentifyWorker(pid_t parent, const std::string& net_namespace) {
  if (!net_namespace.empty()) MOSA_RETURN_IF_ERROR(cluster::EnterNetNamespace(net_namespace));
  IdentifyWorker worker;
  ServeAsWorker(parent, kIdentifyGreeting,
                [&worker](const json& words) { return worker.Answer(words); });
  return OkStatus();
}

}  // namespace mosa::cli
