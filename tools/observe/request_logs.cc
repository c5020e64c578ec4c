#include "tools/observe/request_logs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/text_file.h"
#include "common/base/units.h"
#include "common/observe/request_log.h"
#include "common/observe/request_log_file.h"
#include "tools/cluster/process.h"
#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/console/residence.h"
#include "tools/observe/request_path.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr size_t kLogBytesMax = size_t{256} << 20;
// Time for daemons to create or finish their files. After that their disk counts as stuck.
constexpr Duration kSettledMax = Seconds(30);
constexpr Duration kAskedEach = Milliseconds(20);

// ---- log

json LogToJson(const DaemonResidence& daemon) {
  const RequestLogState& log = daemon.snapshot.log;
  return {{"component", daemon.component},
          {"host", daemon.host},
          {"on", log.is_on},
          {"path", log.path},
          {"records", log.records},
          {"dropped", log.dropped},
          {"failure", daemon.failure.empty() ? log.fault : daemon.failure}};
}

bool IsSettled(const ClusterResidence& residence) {
  return std::ranges::none_of(
      residence.daemons, [](const DaemonResidence& daemon) { return daemon.snapshot.log.is_busy; });
}

// Sends the order and polls until daemons have obeyed it, because they do not wait for their disks.
// A daemon's immediate refusal is its final answer.
Result<ClusterResidence> Obeyed(sai::AdminClient& manager, const ResidenceQuery& query) {
  const SystemClock clock;
  const Time end = clock.Monotonic() + kSettledMax;
  MOSA_ASSIGN_OR_RETURN(ClusterResidence residence, TakeResidence(manager, query));
  while (!IsSettled(residence) && clock.Monotonic() < end) {
    cluster::Pause(kAskedEach);
    MOSA_ASSIGN_OR_RETURN(const ClusterResidence now, TakeResidence(manager));
    for (DaemonResidence& daemon : residence.daemons) {
      if (!daemon.snapshot.log.is_busy) continue;
      const auto same = std::ranges::find_if(now.daemons, [&daemon](const DaemonResidence& other) {
        return other.component == daemon.component && other.id == daemon.id;
      });
      if (same != now.daemons.end()) {
        daemon = *same;
      } else {
        daemon.snapshot = {};
        daemon.failure = "it is gone: the manager no longer knows it";
      }
    }
  }
  return residence;
}

// Returns why the order was not obeyed. Empty: it was. Ending a log that has a fault still obeys.
std::string WhyNot(const DaemonResidence& daemon, RequestLogOrder order) {
  const RequestLogState& log = daemon.snapshot.log;
  if (!daemon.failure.empty()) return daemon.failure;
  if (order != RequestLogOrder::kNone && log.is_busy)
    return fmt::format("the disk of {} has not answered yet: check later with 'mosa log status'",
                       log.path);
  return order == RequestLogOrder::kBegin ? log.fault : "";
}

// ---- follow

std::string Show(Duration time) {
  return fmt::format("{:.3f}", static_cast<double>(time.ns) / 1e6);
}

std::string TimeOfDay(Time time) {
  const std::chrono::sys_seconds second{std::chrono::seconds(time.ns / 1'000'000'000)};
  return fmt::format("{:%H:%M:%S}.{:06}", second, time.ns / 1000 % 1'000'000);
}

Result<std::vector<RequestLogFile>> ReadLogs(const std::vector<std::string>& paths,
                                             std::vector<std::string>& notes) {
  std::vector<RequestLogFile> files;
  for (const std::string& path : paths) {
    MOSA_ASSIGN_OR_RETURN(const std::string bytes, ReadText(path, kLogBytesMax));
    auto file = ReadRequestLog(bytes);
    if (!file.ok())
      return InvalidArgumentError(fmt::format("{}: {}", path, MessageOf(file.status())));
    if (!file->fault.empty()) notes.push_back(fmt::format("{}: {}", path, file->fault));
    if (file->dropped > 0)
      notes.push_back(
          fmt::format("{}: {} requests are missing, because they arrived faster than the log was "
                      "written or it was full",
                      path, file->dropped));
    files.push_back(*std::move(file));
  }
  return files;
}

json ToJson(const RequestPath& path) {
  json parts = json::array();
  for (const PathPart& part : path.parts)
    parts.push_back({{"depth", part.depth},
                     {"component", part.component},
                     {"host", part.host},
                     {"class", part.name},
                     {"peer", part.peer},
                     {"bytes", part.bytes},
                     {"at_ns", part.at.ns},
                     {"took_ns", part.took.ns},
                     {"own_ns", part.own.ns},
                     {"own_is", part.own_is},
                     {"notes", part.notes}});
  json shares = json::object();
  for (const auto& [whose, time] : path.shares) shares[whose] = time.ns;
  return {{"trace", fmt::format("{:016x}", path.trace)},
          {"begin_ns", path.begin.ns},
          {"parts", std::move(parts)},
          {"shares_ns", std::move(shares)},
          {"notes", path.notes}};
}

void Print(const RequestPath& path) {
  fmt::print("{:016x} began at {} UTC\n\n", path.trace, TimeOfDay(path.begin));
  Table table({"AT MS", "TOOK MS", "OWN MS", "WHERE", "WHAT", "NOTE"});
  for (const PathPart& part : path.parts) {
    std::string what(2 * part.depth, ' ');
    what += part.name;
    if (!part.peer.empty())
      what += fmt::format(" {} {}", part.component == "storage" ? "for" : "of", part.peer);
    if (part.bytes > 0) what += fmt::format(", {}", HumanBytes(static_cast<int64_t>(part.bytes)));
    table.Add({Show(part.at), Show(part.took), Show(part.own),
               part.host.empty() ? part.component : fmt::format("{} {}", part.component, part.host),
               what, part.notes.empty() ? "" : part.notes.front()});
  }
  table.Print();
  std::vector<std::pair<Duration, std::string>> shares;
  for (const auto& [whose, time] : path.shares) shares.emplace_back(time, whose);
  std::ranges::sort(shares, std::greater());
  fmt::print("\n");
  for (const auto& [time, whose] : shares)
    if (time.ns > 0) fmt::print("{} ms: {}\n", Show(time), whose);
}

void PrintList(const std::vector<RequestPaths::Root>& roots) {
  Table table({"TRACE", "BEGAN AT", "TOOK MS", "HOST", "CLASS", "BYTES"});
  for (const RequestPaths::Root& root : roots) {
    const RequestRecord& record = root.request->record;
    table.Add({fmt::format("{:016x}", record.trace), TimeOfDay(root.request->begin),
               Show({record.duration_ns}), root.file->host, root.request->name,
               fmt::format("{}", record.bytes)});
  }
  table.Print();
}

Status ListRoots(std::vector<RequestPaths::Root> roots, size_t shown, bool as_json) {
  if (roots.size() > shown) roots.resize(shown);
  if (!as_json) {
    PrintList(roots);
    return OkStatus();
  }
  json all = json::array();
  for (const RequestPaths::Root& root : roots)
    all.push_back({{"trace", fmt::format("{:016x}", root.request->record.trace)},
                   {"begin_ns", root.request->begin.ns},
                   {"took_ns", root.request->record.duration_ns},
                   {"host", root.file->host},
                   {"class", root.request->name},
                   {"bytes", root.request->record.bytes}});
  PrintJson(all);
  return OkStatus();
}

}  // namespace

Status OrderLogs(const ManagerChoice& choice, const ResidenceQuery& query, bool as_json) {
  if (query.log_order == RequestLogOrder::kBegin)
    MOSA_RETURN_IF_ERROR(RequestLog::CheckDirectory(query.log_directory));
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(choice));
  MOSA_ASSIGN_OR_RETURN(const ClusterResidence residence, Obeyed(*manager, query));
  json all = json::array();
  Table table({"COMPONENT", "HOST", "LOG", "REQUESTS", "DROPPED", "FILE"});
  size_t failures = 0;
  for (const DaemonResidence& daemon : residence.daemons) {
    const RequestLogState& log = daemon.snapshot.log;
    const std::string failure = WhyNot(daemon, query.log_order);
    all.push_back(LogToJson(daemon));
    table.Add({daemon.component, daemon.host,
               log.is_busy       ? "busy"
               : log.is_on       ? "on"
               : failure.empty() ? "off"
                                 : "failed",
               fmt::format("{}", log.records), fmt::format("{}", log.dropped),
               log.path.empty() ? "-" : log.path});
    if (!failure.empty()) ++failures;
    if (!failure.empty() || !log.fault.empty())
      fmt::print(stderr, "mosa: {}: {}\n", Describe(daemon), failure.empty() ? log.fault : failure);
  }
  if (as_json) {
    PrintJson(all);
  } else {
    table.Print();
  }
  if (failures == 0 || query.log_order == RequestLogOrder::kNone) return OkStatus();
  return FailedPreconditionError(fmt::format(
      "{} of {} daemons did not obey: see the messages above", failures, residence.daemons.size()));
}

Status Follow(const FollowRequest& options, bool as_json) {
  uint64_t trace = 0;
  const char* const end = options.trace.data() + options.trace.size();
  const auto parsed = std::from_chars(options.trace.data(), end, trace, 16);
  if (!options.trace.empty() && (parsed.ec != std::errc() || parsed.ptr != end))
    return InvalidArgumentError(fmt::format(
        "--trace {}: give up to 16 hexadecimal digits, as --list prints them", options.trace));
  std::vector<std::string> notes;
  MOSA_ASSIGN_OR_RETURN(std::vector<RequestLogFile> files, ReadLogs(options.files, notes));
  for (const std::string& note : notes) fmt::print(stderr, "mosa: {}\n", note);
  const RequestPaths paths(std::move(files));
  const std::vector<RequestPaths::Root> roots = paths.RootsOf(options.name, options.host);
  if (options.list > 0) return ListRoots(roots, options.list, as_json);
  const RequestPaths::Root* root = roots.empty() ? nullptr : &roots.front();
  if (!options.trace.empty()) root = paths.RootOf(trace);
  if (root == nullptr)
    return NotFoundError(
        options.trace.empty()
            ? fmt::format("no {} in these logs: daemons do not see requests that the kernel serves "
                          "from its page cache or by passthrough",
                          options.name)
            : fmt::format("no trace {} in these logs: use --list 20 to see the slowest requests",
                          options.trace));
  const RequestPath path = paths.PathOf(*root);
  if (as_json) {
    json all = ToJson(path);
    for (const std::string& note : notes) all["notes"].push_back(note);
    PrintJson(all);
    return OkStatus();
  }
  Print(path);
  for (const std::string& note : path.notes) fmt::print("{}\n", note);
  return OkStatus();
}

}  // namespace mosa::cli
