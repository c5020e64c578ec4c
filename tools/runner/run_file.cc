#include "tools/runner/run_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <utility>

#include "common/base/text_file.h"
#include "tools/console/output.h"
#include "tools/console/residence.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr uintmax_t kTextBytesMax = uintmax_t{1} << 30;
// No record is as deep; code that walks deeper values may run out of stack.
constexpr int kDepthMax = 64;
// Differences of two times up to this limit fit into 64 bits of nanoseconds.
constexpr double kTimeSecondsMax = 4.5e9;
constexpr double kDurationSecondsMax = 1e9;
// No file, transfer or counter is larger; sums of many still fit into 64 bits.
constexpr uint64_t kAmountMax = uint64_t{1} << 60;
constexpr uint64_t kRequestsMax = uint64_t{1} << 50;

// A part for Reader, a constant one for Writer.
template <typename T, typename U>
concept ConstOr = std::same_as<std::remove_const_t<T>, U>;

// List() names each field of a part once, for Writer and for Reader: Must() is always written and
// required, May() is always written and optional, Rare() is written only if it is not the default.

void List(auto& fields, ConstOr<Attempt> auto& attempt) {
  fields.Must("host", attempt.host, "start", attempt.start, "end", attempt.end);
  fields.Rare("signal", attempt.signal, "failure", attempt.failure, "processor_s",
              attempt.processor);
  fields.May("exit_code", attempt.exit_code, "placed", attempt.placed, "input_bytes_local",
             attempt.local_bytes, "input_bytes_remote", attempt.remote_bytes, "stdout",
             attempt.output_path, "stderr", attempt.error_path);
}

void List(auto& fields, ConstOr<FileFacts> auto& facts) {
  fields.Must("size_bytes", facts.size_bytes);
  fields.May("mtime_ns", facts.mtime_ns, "nodes", facts.bytes_by_node);
  fields.Rare("chunk_bytes", facts.chunk_bytes, "checksum", facts.checksum);
}

void List(auto& fields, ConstOr<RecordedFile> auto& file) {
  fields.Path("path", file.path);
  fields.Facts(file);
  fields.Rare("hints", file.hints);
}

void List(auto& fields, ConstOr<RecordedTask> auto& task) {
  fields.May("kept", task.kept);
  fields.Rare("cores", task.cores);
  fields.Must("id", task.id, "stage", task.stage, "state", task.state, "digest", task.digest,
              "command", task.command, "inputs", task.inputs, "outputs", task.outputs, "attempts",
              task.attempts);
}

void List(auto& fields, ConstOr<RecordedWorkflow> auto& workflow) {
  fields.May("name", workflow.name, "path", workflow.path);
}

void List(auto& fields, ConstOr<RunHost> auto& host) {
  fields.Must("name", host.name, "slots", host.slots);
  fields.May("mount", host.mount_point, "link_bytes_per_second", host.link_bytes_per_second);
  fields.Rare("memory_bytes", host.memory_bytes);
}

void List(auto& fields, ConstOr<MachineUse> auto& machine) {
  fields.Must("hosts", machine.hosts, "processors", machine.processors, "seconds", machine.seconds);
  fields.May("runner", machine.has_runner, "manager", machine.has_manager, "busy_s", machine.busy_s,
             "stolen_s", machine.stolen_s, "daemons_s", machine.daemons_s, "tasks_s",
             machine.tasks_s);
  fields.Rare("waited_s", machine.waited_s, "others_s", machine.others_s);
}

void List(auto& fields, ConstOr<RunFile> auto& run) {
  fields.May("versions", run.versions, "outcome", run.outcome, "end", run.end, "hosts_lost",
             run.hosts_lost);
  fields.Rare("environment", run.environment, "rules", run.rules_path, "plan", run.plan_path,
              "store_run", run.store_run, "turnaround_seconds", run.turnaround_s,
              "read_ahead_bytes", run.read_ahead_bytes, "read_ahead_used_bytes",
              run.read_ahead_used_bytes, "machines", run.machines, "residence", run.residence);
  fields.Must("workflow", run.workflow, "system", run.system, "start", run.start, "hosts",
              run.hosts, "tasks", run.tasks);
}

// Daemons and their requests are only read.
void List(auto& fields, ConstOr<RecordedRequests> auto& requests) {
  fields.Must("class", requests.name, "peer", requests.peer, "count", requests.count, "sum_ns",
              requests.sum_ns);
  fields.May("p50_us", requests.p50_us, "p90_us", requests.p90_us);
  fields.Times(requests);
}

void List(auto& fields, ConstOr<RecordedDaemon> auto& daemon) {
  fields.Must("component", daemon.component, "host", daemon.host);
  fields.May("failure", daemon.failure, "since_start", daemon.since_start, "truncated",
             daemon.truncated);
  fields.Requests(daemon);
}

template <typename T>
concept Part = requires(int& fields, T& part) {
  List(fields, part);
};
template <typename T>
concept Parts = requires {
  typename T::value_type;
}
&&Part<typename T::value_type>;

// ---- writing

template <typename T>
json JsonOf(const T& value);

struct Writer {
  void Must(const char* name, const auto& value, const auto&... more) {
    object[name] = JsonOf(value);
    if constexpr (sizeof...(more) > 0) Must(more...);
  }
  void May(const auto&... all) { Must(all...); }
  template <typename T>
  void Rare(const char* name, const T& value, const auto&... more) {
    if (value != T()) Must(name, value);
    if constexpr (sizeof...(more) > 0) Rare(more...);
  }
  void Path(const char* name, const std::string& path) { PutBytes(object, name, path); }
  void Facts(const RecordedFile& file) {
    if (file.facts) List(*this, *file.facts);
  }

  json object = json::object();
};

template <typename T>
json JsonOf(const T& value) {
  if constexpr (Part<T>) {
    Writer writer;
    List(writer, value);
    if constexpr (std::same_as<T, RecordedTask>) {
      // From the last attempt, where one would look for it.
      for (const char* name :
           {"host", "start", "end", "exit_code", "input_bytes_local", "input_bytes_remote"})
        if (!value.attempts.empty()) writer.object[name] = writer.object["attempts"].back()[name];
    }
    return std::move(writer.object);
  } else if constexpr (Parts<T>) {
    json list = json::array();
    for (const auto& part : value) list.push_back(JsonOf(part));
    return list;
  } else if constexpr (std::same_as<T, Time>) {
    return std::round(static_cast<double>(value.ns) / 1e3) / 1e6;
  } else if constexpr (std::same_as<T, std::optional<Duration>>) {
    return static_cast<double>(value->ns) / 1e9;
  } else if constexpr (std::same_as<T, std::optional<double>>) {
    return *value;
  } else if constexpr (std::same_as<T, predict::System>) {
    return value == predict::System::kDss ? "dss" : "wass";
  } else {
    return value;
  }
}

// ---- reading: Set() says what is wrong with a value, or null

using Complaint = const char*;

Complaint SetIf(bool fits, const json& from, auto& value, Complaint complaint) {
  if (fits) from.get_to(value);
  return fits ? nullptr : complaint;
}
Complaint Set(const json& from, json& value) {
  return SetIf(from.is_object(), from, value, "is not an object");
}
Complaint Set(const json& from, std::string& value) {
  return SetIf(from.is_string(), from, value, "is not a text");
}
Complaint Set(const json& from, bool& value) {
  return SetIf(from.is_boolean(), from, value, "is neither true nor false");
}
Complaint Set(const json& from, double& value) {
  return SetIf(from.is_number(), from, value, "is not a number");
}
template <std::signed_integral T>
Complaint Set(const json& from, T& value) {
  const bool fits = from.is_number_unsigned()
                        ? std::in_range<T>(from.get<uint64_t>())
                        : from.is_number_integer() && std::in_range<T>(from.get<int64_t>());
  return SetIf(fits, from, value, "is not a possible whole number");
}
template <std::unsigned_integral T>
Complaint Set(const json& from, T& value) {
  constexpr uint64_t kMax = std::min(kAmountMax, uint64_t{std::numeric_limits<T>::max()});
  return SetIf(from.is_number_unsigned() && from.get<uint64_t>() <= kMax, from, value,
               "is not a possible whole number");
}
Complaint Set(const json& from, Time& value) {
  if (!from.is_number()) return "is not a number of seconds";
  const double seconds = std::clamp(from.get<double>(), -kTimeSecondsMax, kTimeSecondsMax);
  value.ns = std::llround(seconds * 1e6) * 1000;  // A record has whole microseconds.
  return nullptr;
}
Complaint Set(const json& from, std::optional<Duration>& value) {
  const double seconds = from.is_number() ? from.get<double>() : -1;
  if (!(seconds >= 0 && seconds <= kDurationSecondsMax))
    return "is not a possible number of seconds";
  value = Duration{std::llround(seconds * 1e9)};
  return nullptr;
}
Complaint Set(const json& from, std::optional<double>& value) {
  double number = 0;
  const Complaint complaint = Set(from, number);
  if (complaint == nullptr) value = number;
  return complaint;
}
Complaint Set(const json& from, predict::System& value) {
  if (from != "wass" && from != "dss") return "is neither 'wass' nor 'dss'";
  value = from == "dss" ? predict::System::kDss : predict::System::kWass;
  return nullptr;
}
template <typename T>
Complaint Set(const json& from, std::map<std::string, T>& value) {
  if (!from.is_object()) return "is not an object";
  for (const auto& [name, item] : from.items())
    if (Set(item, value[name]) != nullptr) return "has a value of another type";
  return nullptr;
}
template <typename T>
requires std::same_as<typename T::value_type, std::string> Complaint Set(const json& from,
                                                                         T& value) {
  if (!from.is_array()) return "is not a list of texts";
  for (const json& item : from) {
    std::string text;
    if (Set(item, text) != nullptr) return "is not a list of texts";
    value.insert(value.end(), std::move(text));
  }
  return nullptr;
}

class Reader {
 public:
  Reader(const json& object, std::string place, std::vector<std::string>& faults)
      : object_(object), place_(std::move(place)), faults_(faults) {}

  // Whether no field was missing.
  bool has_all() const { return has_all_; }

  void Must(const char* name, auto& value, auto&... more) {
    May(name, value);
    if (!object_.contains(name)) {
      AddFault(PlaceOf(name), "is missing");
      has_all_ = false;
    }
    if constexpr (sizeof...(more) > 0) Must(more...);
  }
  template <typename T>
  void May(const char* name, T& value, auto&... more) {
    if (const auto found = object_.find(name); found != object_.end()) {
      if constexpr (Part<T>) {
        ReadPart(*found, PlaceOf(name), value);
      } else if constexpr (Parts<T>) {
        ReadParts(*found, PlaceOf(name), value);
      } else if (const Complaint complaint = Set(*found, value); complaint != nullptr) {
        AddFault(PlaceOf(name), complaint);
      }
    }
    if constexpr (sizeof...(more) > 0) May(more...);
  }
  void Rare(auto&... all) { May(all...); }
  void Path(const char* name, std::string& path) { Must(name, path); }

  // Impossible numbers of one file or daemon are not faults of the record: readers leave out what
  // they concern.
  void Facts(RecordedFile& file) {
    if (!object_.contains("size_bytes")) return;
    std::vector<std::string> faults;
    Reader reader(object_, place_, faults);
    List(reader, file.facts.emplace());
    file.is_possible = faults.empty();
    if (!file.is_possible) file.facts.reset();
  }
  void Requests(RecordedDaemon& daemon) {
    std::vector<std::string> faults;
    Reader(object_, place_, faults).Must("requests", daemon.requests);
    daemon.is_possible = faults.empty() && std::ranges::all_of(daemon.requests, IsPossible);
    const json totals = object_.value("totals", json());
    uint64_t bytes = 0;
    faults.clear();
    Reader(totals, place_, faults).Must("bytes_read_remote", bytes);
    if (faults.empty()) daemon.bytes_read_remote = bytes;
  }
  void Times(RecordedRequests& requests) {
    if (!object_.contains("buckets")) return;
    if (const auto times = TimesFromJson(object_); times.ok()) requests.times = *times;
  }

 private:
  static bool IsPossible(const RecordedRequests& requests) {
    const auto is_time = [](double us) { return us >= 0 && us <= kDurationSecondsMax * 1e6; };
    return requests.count <= kRequestsMax && is_time(requests.p50_us) && is_time(requests.p90_us);
  }
  void ReadPart(const json& from, const std::string& place, auto& part) {
    if (!from.is_object()) return AddFault(place, "is not an object");
    Reader reader(from, place, faults_);
    List(reader, part);
  }
  void ReadParts(const json& from, const std::string& place, auto& parts) {
    if (!from.is_array()) return AddFault(place, "is not a list");
    for (size_t i = 0; i < from.size(); ++i) {
      ReadPart(from[i], fmt::format("{}[{}]", place, i), parts.emplace_back());
      if (!from[i].is_object()) parts.pop_back();
    }
  }
  std::string PlaceOf(const char* name) const {
    return place_.empty() ? name : fmt::format("{}.{}", place_, name);
  }
  void AddFault(const std::string& place, Complaint complaint) {
    faults_.push_back(fmt::format("'{}' {}", place, complaint));
  }

  const json& object_;
  const std::string place_;
  std::vector<std::string>& faults_;
  bool has_all_ = true;
};

// ---- texts

Status NotComplete(const std::string& path, const std::string& why) {
  return InvalidArgumentError(fmt::format(
      "{} is not a complete record of a run: {}; give a record that 'mosa run' wrote", path, why));
}

// Throws as the library does, also for values that are nested too deep.
json Parse(const std::string& text) {
  bool is_deep = false;
  json root = json::parse(text, [&is_deep](int depth, json::parse_event_t, const json&) {
    is_deep = is_deep || depth > kDepthMax;
    return depth <= kDepthMax;
  });
  if (is_deep)
    throw json::other_error::create(
        501, fmt::format("its values are nested more than {} deep", kDepthMax), nullptr);
  return root;
}

// The text up to the end of the last whole element of a list in the root object, and the brackets
// that close both.
std::string CloseCutText(const std::string& text) {
  std::string open;  // What closes what is open.
  bool quoted = false, escaped = false;
  size_t whole = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (quoted) {
      quoted = escaped || byte != '"';
      escaped = !escaped && byte == '\\';
    } else if (byte == '"') {
      quoted = true;
    } else if (byte == '{' || byte == '[') {
      open += byte == '{' ? '}' : ']';
    } else if ((byte == '}' || byte == ']') && !open.empty()) {
      open.pop_back();
      if (open == "}]") whole = i + 1;
    }
  }
  return text.substr(0, whole) + "]}";
}

// Parses a record that is cut among its tasks. 'mosa run' writes fields in alphabetical order, so
// that only those after "tasks" are missing.
json ParseCutText(const std::string& text) {
  json root = Parse(CloseCutText(text));
  if (root.is_object() && root.contains("tasks")) {
    root.emplace("version", kVersion);
    root.emplace("workflow", json::object());
  }
  return root;
}

}  // namespace

std::optional<AttemptSpan> SpanOf(const Attempt& attempt, Time run_start) {
  constexpr Duration kRounded = Microseconds(10);  // Times in records are rounded.
  const AttemptSpan span{attempt.start - run_start, attempt.end - run_start};
  if (span.start < Duration() - kRounded || span.end < span.start ||
      static_cast<double>(span.end.ns) > kDurationSecondsMax * 1e9)
    return std::nullopt;
  return span;
}

Status CheckFaults(const RunFile& file) {
  if (file.faults.empty()) return OkStatus();
  const size_t more = file.faults.size() - 1;
  return NotComplete(
      file.path, file.faults.front() + (more == 0 ? "" : fmt::format(" ({} more faults)", more)));
}

Result<RunFile> ParseRunFile(const std::string& text, const std::string& path, CutFiles cut) {
  RunFile run;
  run.path = path;
  json root;
  try {
    run.is_cut = cut == CutFiles::kReadAsFarAsTheyGo && !json::accept(text);
    root = run.is_cut ? ParseCutText(text) : Parse(text);
  } catch (const json::exception& error) {
    return NotComplete(path, error.what());
  }
  Reader reader(root, "", run.faults);
  int version = kVersion;
  reader.Must("version", version);
  if (version != kVersion)
    return InvalidArgumentError(
        fmt::format("{} is a record of version {}, but this program reads only version {}: use the "
                    "program that wrote it",
                    path, version, kVersion));
  List(reader, run);
  const double took_s = run.turnaround_s.value_or(-1);
  if (!(took_s >= 0 && took_s < kDurationSecondsMax)) run.turnaround_s.reset();
  Reader residence(run.residence, "residence", run.faults);
  residence.May("cluster", run.cluster, "failure", run.residence_failure, "rows_left_out",
                run.rows_left_out, "daemons", run.daemons);
  if (cut == CutFiles::kRefuse || !reader.has_all()) MOSA_RETURN_IF_ERROR(CheckFaults(run));
  if (run.hosts.empty()) return NotComplete(path, "the run has no hosts");
  return run;
}

Result<RunFile> ReadRunFile(const std::string& path, CutFiles cut) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, kTextBytesMax));
  return ParseRunFile(text, path, cut);
}

json ToJson(const RunFile& file) {
  json object = JsonOf(file);
  object["version"] = kVersion;
  return object;
}

json ToJson(const std::vector<MachineUse>& machines) { return JsonOf(machines); }

}  // namespace mosa::cli
