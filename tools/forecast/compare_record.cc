#include "tools/forecast/compare_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "common/base/text_file.h"
#include "predictor/workflow/document.h"
#include "tools/console/residence.h"
#include "tools/runner/record.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::PathIndex;
using predict::SeenTask;
using predict::Workflow;

constexpr int kVersion = 1;
// Files are said to have other sizes only beyond that.
constexpr double kSizeShare = 0.01;
// Times in a record are rounded to microseconds.
constexpr double kRoundedSeconds = 1e-5;
// Later times are no times.
constexpr double kSecondsMax = 1e9;
// No record is as deep; what walks deeper values may run out of stack.
constexpr int kDepthMax = 64;

Duration FromSeconds(double seconds) {
  return Nanoseconds(std::llround(std::clamp(seconds, 0.0, kSecondsMax) * 1e9));
}

// Counts tasks or files of which something is so, and names one of them.
class Several {
 public:
  void Add(const std::string& example) {
    if (count_++ == 0) example_ = example;
  }
  // "run.json: WHAT: 'make_1' and 2 more".
  void Say(const std::string& path, const char* what, std::vector<std::string>& notes) const {
    if (count_ == 0) return;
    notes.push_back(fmt::format("{}: {}: '{}'{}", path, what, example_,
                                count_ > 1 ? fmt::format(" and {} more", count_ - 1) : ""));
  }
  size_t count() const { return count_; }

 private:
  size_t count_ = 0;
  std::string example_;
};

struct Faults {
  Several unknown, unlike, kept, not_done, repeated, impossible, silent, resized;
  Several unasked, restarted, truncated, untimed;  // Daemons.
  Several unused;                                  // Machines.
};

// As many bytes as a file can have, where it is said.
bool SizesArePossible(const json& files) {
  return std::all_of(files.begin(), files.end(), [](const json& file) {
    const json nodes = file.value("nodes", json::object());
    const auto is_size = [&file](const char* name) {
      return !file.contains(name) || file.at(name).is_number_unsigned();
    };
    return is_size("size_bytes") && is_size("chunk_bytes") &&
           std::all_of(nodes.begin(), nodes.end(),
                       [](const json& bytes) { return bytes.is_number_unsigned(); });
  });
}

// Checks one row of a daemon's requests.
bool TimesArePossible(const json& row) {
  constexpr uint64_t kCountMax = uint64_t{1} << 50;
  const auto is_time = [](double value, double per_second) {
    return value >= 0 && value <= kSecondsMax * per_second;
  };
  return row.at("count").is_number_unsigned() && row.at("count").get<uint64_t>() <= kCountMax &&
         is_time(row.at("sum_ns").get<double>(), 1e9) && is_time(row.value("p50_us", 0.0), 1e6) &&
         is_time(row.value("p90_us", 0.0), 1e6);
}

// Finds modes in a row that has its whole histogram.
std::optional<predict::Modes> ModesIn(const json& row) {
  if (!row.contains("buckets")) return std::nullopt;
  const Result<DurationCounts> times = TimesFromJson(row);
  return times.ok() ? predict::ModesOf(*times) : std::nullopt;
}

// No mount reads more in a run.
constexpr uint64_t kFetchedBytesMax = uint64_t{1} << 55;

class Reader {
 public:
  Reader(const RunFile& file, const Workflow& workflow) : file_(file), workflow_(workflow) {}

  Result<MeasuredRun> Read() {
    measured_.seen.name = file_.path;
    for (const RecordedHost& host : file_.hosts) {
      hosts_.emplace(host.name, static_cast<uint32_t>(hosts_.size()));
      measured_.seen.hosts.push_back(host.name);
    }
    measured_.seen.tasks.resize(workflow_.tasks.size());
    std::map<std::string, size_t> places;
    for (size_t i = 0; i < workflow_.tasks.size(); ++i) places.emplace(workflow_.tasks[i].id, i);
    std::set<size_t> met;
    for (const json& object : file_.root.at("tasks")) {
      const std::string id = object.at("id");
      const auto place = places.find(id);
      if (place == places.end()) {
        faults_.unknown.Add(id);
      } else if (object.at("digest") != DigestOf(workflow_, workflow_.tasks[place->second])) {
        faults_.unlike.Add(id);
      } else {
        met.insert(place->second);
        ReadTask(object, place->second);
      }
    }
    if (met.empty())
      return InvalidArgumentError(fmt::format(
          "{} is a run of another workflow ('{}'): no task of it has the name, the command and the "
          "files of one of '{}'; give the --workload that was run",
          file_.path, file_.root.at("workflow").value("name", ""), workflow_.name));
    for (size_t i = 0; i < workflow_.tasks.size(); ++i)
      if (!met.contains(i)) missing_.Add(workflow_.tasks[i].id);
    ReadRequests();
    ReadMachines();
    Say();
    return std::move(measured_);
  }

 private:
  void ReadTask(const json& object, size_t index) {
    const std::string& id = workflow_.tasks[index].id;
    const json& attempts = object.at("attempts");
    if (object.value("kept", false)) return faults_.kept.Add(id);
    if (object.at("state") != "done" || attempts.empty()) return faults_.not_done.Add(id);
    // All that it computes would count as off.
    if (!workflow_.tasks[index].expected && workflow_.tasks[index].operations.empty())
      return faults_.silent.Add(id);
    if (attempts.size() > 1) faults_.repeated.Add(id);
    const json& last = attempts.back();
    const double begin = last.at("start").get<double>() - file_.start_s;
    const double end = last.at("end").get<double>() - file_.start_s;
    const auto host = hosts_.find(last.at("host").get<std::string>());
    if (host == hosts_.end() || begin < -kRoundedSeconds || !(end >= begin) || end > kSecondsMax ||
        !SizesArePossible(object.at("inputs")) || !SizesArePossible(object.at("outputs")))
      return faults_.impossible.Add(id);
    SeenTask& task = measured_.seen.tasks[index];
    task.ran = true;
    task.host = predict::HostIndex{host->second};
    task.start = FromSeconds(begin);
    task.end = FromSeconds(end);
    if (const auto processor = last.find("processor_s"); processor != last.end()) {
      const double seconds = *processor;
      if (seconds >= 0 && seconds <= kSecondsMax) task.processor = FromSeconds(seconds);
    }
    task.inputs_elsewhere =
        AddFiles(object.at("inputs"), workflow_.tasks[index].inputs, host->first, task.read);
    AddFiles(object.at("outputs"), workflow_.tasks[index].outputs, host->first, task.written);
  }

  // In the order of the task's files, as the digest is the same. Returns the bytes of each on other
  // nodes, as far as all before it are known.
  std::vector<uint64_t> AddFiles(const json& list, const std::vector<PathIndex>& files,
                                 const std::string& host, predict::BytesByNodeName& found) {
    std::vector<uint64_t> elsewhere;
    for (size_t i = 0; i < list.size() && i < files.size(); ++i) {
      if (!list[i].contains("size_bytes")) continue;
      const auto size_bytes = list[i].at("size_bytes").get<uint64_t>();
      const auto held = list[i].value("nodes", predict::BytesByNodeName());
      const uint64_t on_others = predict::AddFile(size_bytes, held, host, found);
      if (elsewhere.size() == i) elsewhere.push_back(on_others);
      const auto chunk_bytes = list[i].value("chunk_bytes", uint64_t{0});
      if (chunk_bytes > 0 && chunked_.insert(files[i]).second)
        measured_.seen.bytes_by_chunk[chunk_bytes] += size_bytes;
      for (const auto& [node, bytes] : held)
        if (!hosts_.contains(node)) other_nodes_.insert(node);
      const predict::WorkflowFile& file = workflow_.at(files[i]);
      const auto said = static_cast<double>(file.size_bytes.value_or(size_bytes));
      if (std::abs(said - static_cast<double>(size_bytes)) > kSizeShare * said &&
          resized_.insert(files[i]).second)
        faults_.resized.Add(file.path);
    }
    return elsewhere;
  }

  // Requests between the run's begin and end, if the cluster was asked.
  void ReadRequests() {
    const auto residence = file_.root.find("residence");
    if (residence == file_.root.end() || !residence->contains("daemons")) return;
    for (const json& daemon : residence->at("daemons")) {
      const std::string component = daemon.at("component"), host = daemon.at("host");
      const std::string name =
          component == "manager" ? component : fmt::format("the {} of {}", component, host);
      const std::string failure = daemon.value("failure", "");
      if (!failure.empty()) faults_.unasked.Add(fmt::format("{} ({})", name, failure));
      if (daemon.value("since_start", false)) faults_.restarted.Add(name);
      if (daemon.value("truncated", false)) faults_.truncated.Add(name);
      if (component == "mount") ReadFetched(host, daemon);
      const json& rows = daemon.at("requests");
      if (!std::all_of(rows.begin(), rows.end(), TimesArePossible)) {
        faults_.untimed.Add(name);
        continue;
      }
      for (const json& row : rows)
        predict::Add({row.at("count").get<uint64_t>(), row.at("sum_ns").get<double>() / 1e9,
                      row.value("p50_us", 0.0) / 1e6, row.value("p90_us", 0.0) / 1e6, ModesIn(row)},
                     measured_.seen.requests[{component, row.at("class").get<std::string>(), host,
                                              row.at("peer").get<std::string>()}]);
    }
    rows_left_out_ = residence->value("rows_left_out", 0.0);
    measured_.seen.knows_all_requests = rows_left_out_ == 0 && faults_.truncated.count() == 0;
  }

  // What the mount read from other nodes in the run; not known if it began in it.
  void ReadFetched(const std::string& host, const json& mount) {
    const json totals = mount.value("totals", json::object());
    const auto bytes = totals.find("bytes_read_remote");
    if (mount.value("since_start", false) || bytes == totals.end() ||
        !bytes->is_number_unsigned() || bytes->get<uint64_t>() > kFetchedBytesMax)
      return;
    measured_.seen.fetched[host] += bytes->get<uint64_t>();
  }

  // Whose use by others is known.
  void ReadMachines() {
    const auto machines = file_.root.find("machines");
    if (machines == file_.root.end()) return;
    for (const json& machine : *machines) {
      const auto hosts = machine.at("hosts").get<std::vector<std::string>>();
      const double all_s = machine.at("seconds").get<double>();
      const double processors = machine.at("processors").get<double>();
      const double others_s = machine.value("others_s", 0.0);
      const double stolen_s = machine.value("stolen_s", 0.0);
      const double waited_s = machine.value("waited_s", 0.0);
      // Kernels count in hundredths of a second, and are not read at the same moment.
      const double possible_s = (1.1 * all_s + 0.1) * processors;
      if (!(all_s > 0 && all_s <= kSecondsMax && processors >= 1 && others_s >= 0 &&
            others_s <= possible_s && stolen_s >= 0 && stolen_s <= possible_s && waited_s >= 0 &&
            waited_s <= kSecondsMax)) {
        faults_.unused.Add(fmt::format("{}", fmt::join(hosts, ", ")));
        continue;
      }
      if (!machine.contains("others_s")) continue;
      predict::SeenMachine& seen = measured_.seen.machines.emplace_back();
      seen.hosts = hosts;
      seen.has_runner = machine.value("runner", false);
      seen.has_manager = machine.value("manager", false);
      seen.others_share = std::clamp((others_s - stolen_s) / (all_s * processors), 0.0, 1.0);
      seen.stolen_share = std::min(1.0, stolen_s / (all_s * processors));
      if (machine.contains("waited_s")) seen.waited_share = std::min(1.0, waited_s / all_s);
    }
  }

  void Say() {
    std::vector<std::string>& notes = measured_.notes;
    const json& root = file_.root;
    const std::string outcome = root.value("outcome", "");
    if (outcome != "done")
      notes.push_back(
          fmt::format("{}: the run is '{}', not done: only tasks that ended are compared",
                      file_.path, outcome));
    const auto lost = root.value("hosts_lost", std::vector<std::string>());
    if (!lost.empty())
      notes.push_back(fmt::format("{}: the run lost {}: what it took in all is not compared",
                                  file_.path, fmt::join(lost, ", ")));
    const bool stepped = root.value("end", 0.0) < file_.start_s;
    if (stepped)
      notes.push_back(
          fmt::format("{}: the run ends before it begins: its clock was set back", file_.path));
    const auto say = [&](const Several& some, const char* what) {
      some.Say(file_.path, what, notes);
    };
    say(faults_.unknown, "not in the workload, left out");
    say(faults_.unlike, "another command or other files than in the workload, left out");
    say(missing_, "in the workload, but not in the run");
    say(faults_.kept, "kept from an earlier run, left out");
    say(faults_.not_done, "not done, left out");
    say(faults_.repeated, "done at a second attempt or later, of which the last is compared");
    say(faults_.impossible,
        "an end before the begin, a begin before the run's, a host that is none of the run's, or a "
        "size that no file has, left out (was a clock set back?)");
    say(faults_.silent,
        "the workload does not say how long it computes, left out (give a --workload that does)");
    say(faults_.resized, "another size in the run than in the workload");
    say(faults_.unasked, "how long requests stayed is not known of");
    say(faults_.restarted,
        "began in the run, or before it and was started again: its requests are those since then");
    say(faults_.truncated,
        "has more classes and peers of requests than it said; not compared are "
        "the smallest of");
    say(faults_.untimed, "a time or a number that no requests have; not compared are those of");
    say(faults_.unused, "a time that no machine has; how busy it was is not known of");
    if (rows_left_out_ > 0)
      notes.push_back(fmt::format(
          "{}: of requests the classes and peers that took most time are kept, {:.0f} smaller ones "
          "are not, and not compared",
          file_.path, rows_left_out_));
    if (!other_nodes_.empty())
      notes.push_back(fmt::format(
          "{}: files lie on nodes that are no hosts of the run: {}; say 'storage=' in --config if "
          "they are hosts of their own",
          file_.path, fmt::join(other_nodes_, ", ")));
    measured_.seen.whole = outcome == "done" && lost.empty() && !stepped &&
                           missing_.count() + faults_.unknown.count() + faults_.kept.count() +
                                   faults_.not_done.count() + faults_.repeated.count() +
                                   faults_.impossible.count() + faults_.silent.count() ==
                               0;
  }

  const RunFile& file_;
  const Workflow& workflow_;
  MeasuredRun measured_;
  std::map<std::string, uint32_t> hosts_;
  Faults faults_;
  Several missing_;
  double rows_left_out_ = 0;
  std::set<std::string> other_nodes_;
  std::set<PathIndex> chunked_, resized_;  // Each file counts once, however many tasks use it.
};

Status NoRecord(const std::string& path, const json::exception& error) {
  return InvalidArgumentError(
      fmt::format("{} is no whole record of a run: {}", path, error.what()));
}

// Throws as the library does, of values that are too deep as well.
json Parse(const std::string& text) {
  bool is_deep = false;
  json root = json::parse(text, [&is_deep](int depth, json::parse_event_t, const json&) {
    is_deep = is_deep || depth > kDepthMax;
    return depth <= kDepthMax;
  });
  if (is_deep)
    throw json::other_error::create(
        501, fmt::format("values are more than {} deep in each other", kDepthMax), nullptr);
  return root;
}

// The text up to the end of the last whole element of a list that the root object has, and what
// closes both.
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

// Reads a record that is cut among its tasks. `mosa run` writes names in their order, so that what
// comes after them is missing.
json ReadCutText(const std::string& text) {
  json root = Parse(CloseCutText(text));
  if (root.is_object() && root.contains("tasks")) {
    root.emplace("version", kVersion);
    root.emplace("workflow", json{{"name", ""}, {"path", ""}});
  }
  return root;
}

}  // namespace

Result<RunFile> ReadRunFile(const std::string& path, CutFiles cut) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, predict::kDocumentBytesMax));
  RunFile file;
  file.path = path;
  try {
    file.is_cut = cut == CutFiles::kReadAsFarAsTheyGo && !json::accept(text);
    file.root = file.is_cut ? ReadCutText(text) : Parse(text);
    if (file.root.at("version") != kVersion)
      return InvalidArgumentError(fmt::format("{} is a record of version {}, only {} is read", path,
                                              file.root.at("version").dump(), kVersion));
    file.workflow_path = file.root.at("workflow").at("path");
    file.system = file.root.at("system") == "dss" ? predict::System::kDss : predict::System::kWass;
    file.start_s = file.root.at("start");
    for (const json& host : file.root.at("hosts"))
      file.hosts.push_back({host.at("name").get<std::string>(), host.at("slots").get<uint32_t>(),
                            host.value("link_bytes_per_second", uint64_t{0})});
  } catch (const json::exception& error) {
    return NoRecord(path, error);
  }
  if (file.hosts.empty())
    return InvalidArgumentError(fmt::format("{}: the run has no hosts", path));
  return file;
}

Result<MeasuredRun> ReadMeasured(const RunFile& file, const Workflow& workflow) {
  try {
    return Reader(file, workflow).Read();
  } catch (const json::exception& error) {
    return NoRecord(file.path, error);
  }
}

size_t FillSizes(const RunFile& file, Workflow& workflow) {
  std::map<std::string, uint64_t> sizes;
  try {
    for (const json& task : file.root.at("tasks"))
      for (const char* list : {"inputs", "outputs"})
        for (const json& object : task.at(list))
          if (object.contains("size_bytes") && object.at("size_bytes").is_number_unsigned())
            sizes[object.at("path").get<std::string>()] = object.at("size_bytes").get<uint64_t>();
  } catch (const json::exception&) {
    return 0;  // ReadMeasured() says what is wrong with it.
  }
  size_t filled = 0;
  for (predict::WorkflowFile& known : workflow.files) {
    const auto size = sizes.find(known.path);
    if (known.size_bytes || size == sizes.end()) continue;
    known.size_bytes = size->second;
    ++filled;
  }
  return filled;
}

}  // namespace mosa::cli
