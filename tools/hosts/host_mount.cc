#include "tools/hosts/host_mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "tools/cluster/process.h"
#include "tools/console/manager.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Keeps the time of one question short.
constexpr size_t kPathsPerQuestion = 256;
constexpr uint32_t kLostFilesMax = 10'000;

json ToJson(const Result<FileFacts>& facts) {
  if (!facts.ok()) return StatusJson(facts.status());
  return {{"size", facts->size_bytes},
          {"mtime", facts->mtime_ns},
          {"nodes", facts->bytes_by_node},
          {"chunk", facts->chunk_bytes},
          {"checksum", facts->checksum}};
}

Result<FileFacts> FactsOf(const json& answer) {
  MOSA_RETURN_IF_ERROR(StatusIn(answer));
  FileFacts facts;
  facts.size_bytes = answer.at("size").get<uint64_t>();
  facts.mtime_ns = answer.at("mtime").get<int64_t>();
  facts.bytes_by_node = answer.at("nodes").get<std::map<std::string, uint64_t>>();
  facts.chunk_bytes = answer.at("chunk").get<uint64_t>();
  facts.checksum = answer.at("checksum").get<std::string>();
  return facts;
}

// ---- in the hands' processes

json LookAt(const RunHost& host) {
  char value[8192];
  std::error_code error;
  const char* const path = host.mount_point.c_str();
  const bool mosa = getxattr(path, "user.mosa.mount", value, sizeof value) >= 0 || errno == ERANGE;
  return {{"mosa", mosa}, {"there", mosa || fs::is_directory(path, error)}};
}

// The limit is the command's own, so that nothing of it is left over.
json Reach(const RunHost& host, Duration at_most) {
  std::vector<std::string> words = {"timeout", fmt::format("{}", at_most.ns / 1'000'000'000 - 2)};
  words.insert(words.end(), host.exec.begin(), host.exec.end());
  words.push_back("true");
  return cluster::RunCommand(words).ok();
}

Result<FileFacts> LocateOne(const RunHost& host, const std::string& how, const std::string& path,
                            bool with_checksum) {
  const std::string full = fs::path(host.directory) / path;
  if (how == "written") MOSA_RETURN_IF_ERROR(CheckWritten(host.directory, path));
  if (how == "readable") MOSA_RETURN_IF_ERROR(CheckReadable(full));
  return Locate(full, with_checksum);
}

json GiveAll(const RunHost& host, const json& files) {
  for (const json& file : files) {
    const fs::path full = fs::path(host.directory) / file.at(0).get<std::string>();
    const Status given = GiveHints(full, file.at(1).get<predict::HintMap>());
    if (!given.ok()) return StatusJson(given);
  }
  return StatusJson(OkStatus());
}

json Prepare(const RunHost& host, const json& outputs) {
  for (const json& output : outputs) {
    const Status ready = PrepareOutput(host.directory, output.at(0).get<std::string>(),
                                       output.at(1).get<predict::HintMap>());
    if (!ready.ok()) return StatusJson(ready);
  }
  return StatusJson(OkStatus());
}

// Opens the files, or closes them. In this process, which serves one host.
json HoldStreams(const RunHost& host, const json& paths, bool begin) {
  static std::map<std::string, UniqueFd> held;
  for (const json& path : paths) {
    const std::string full = fs::path(host.directory) / path.get<std::string>();
    const bool was_held = held.erase(full) > 0;
    if (!begin && !was_held)
      return StatusJson(UnavailableError(fmt::format(
          "the stream {} was not held open, so that its readers may lack its end", full)));
    if (!begin) continue;
    UniqueFd file(open(full.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file)
      return StatusJson(
          FailedPreconditionError(fmt::format("cannot open {}: {}", full, strerror(errno))));
    held.emplace(full, std::move(file));
  }
  return StatusJson(OkStatus());
}

ManagerChoice ManagerOf(const RunHost& host) {
  ManagerChoice choice;
  for (const auto& [name, value] : host.environment) {
    if (name == "MOSA_MANAGER") choice.address = value;
    if (name == "MOSA_SECRET") choice.secret = value;
  }
  return choice;
}

// The manager of the host's mount, as the host's environment names it, or else ours.
Result<std::unique_ptr<sai::AdminClient>> Connect(const RunHost& host) {
  ManagerChoice choice = ManagerOf(host);
  if (choice.address.empty()) {
    const char* const address = std::getenv("MOSA_MANAGER");
    const char* const secret = std::getenv("MOSA_SECRET");
    if (address == nullptr)
      return FailedPreconditionError(
          "no manager is known: set MOSA_MANAGER, and MOSA_SECRET if the cluster has one");
    choice.address = address;
    choice.secret = secret == nullptr ? "" : secret;
  }
  return ConnectManagerOf(choice, host.mount_point);
}

// Goes on after a task that the manager refuses, but not if the manager does not answer.
json EndTasksOf(sai::AdminClient& manager, const json& tasks) {
  size_t answered = 0;
  for (const json& task : tasks) {
    const Status ended = manager.EndTask(task.at(0).get<std::string>(), task.at(1).get<bool>());
    if (ended.code() == StatusCode::kUnavailable || ended.code() == StatusCode::kAborted) break;
    ++answered;
  }
  json answer = StatusJson(OkStatus());
  answer["answered"] = answered;
  return answer;
}

json AnswerOfManager(sai::AdminClient& manager, const std::string& does, const json& what) {
  if (does == "begin") return StatusJson(manager.BeginWorkflow(what.get<std::string>()));
  if (does == "tasks") return EndTasksOf(manager, what);
  if (does == "end") return StatusJson(manager.EndWorkflow(what.get<std::string>()).status());
  const auto taken = TakeResidence(manager);
  json answer = StatusJson(taken.status());
  if (taken.ok()) answer["residence"] = ToJson(*taken);
  return answer;
}

// `manager` is kept for the next question, unless one fails.
json AskManagerOf(const RunHost& host, std::unique_ptr<sai::AdminClient>& manager,
                  const json& question) {
  if (manager == nullptr) {
    auto connected = Connect(host);
    if (!connected.ok()) return StatusJson(connected.status());
    manager = *std::move(connected);
  }
  json answer =
      AnswerOfManager(*manager, question.at("does").get<std::string>(), question.at("what"));
  if (!StatusIn(answer).ok()) manager.reset();
  return answer;
}

json ListLostFiles(const RunHost& host) {
  json answer = StatusJson(OkStatus());
  answer["paths"] = json::array();
  const ManagerChoice choice = ManagerOf(host);
  if (choice.address.empty()) return answer;
  const auto manager = ConnectManager(choice);
  if (!manager.ok()) return StatusJson(manager.status());
  const auto files = (*manager)->ListLostFiles(kLostFilesMax);
  if (!files.ok()) return StatusJson(files.status());
  // The mount is the store's root.
  const std::string above =
      ("/" / fs::path(host.directory).lexically_relative(host.mount_point) / "").lexically_normal();
  for (const FileStatus& file : *files) {
    if (file.path.starts_with(above)) answer["paths"].push_back(file.path.substr(above.size()));
  }
  return answer;
}

json Work(const RunHost& host, const json& question) {
  const auto does = question.at("do").get<std::string>();
  const json& what = question.at("what");
  if (does == "directory") {
    std::error_code error;
    fs::create_directories(host.directory, error);
    if (!error) return StatusJson(OkStatus());
    return StatusJson(FailedPreconditionError(
        fmt::format("cannot create {}: {}", host.directory, error.message())));
  }
  if (does == "lost") return ListLostFiles(host);
  if (does == "prepare") return Prepare(host, what);
  if (does == "give") return GiveAll(host, what);
  if (does == "begin" || does == "end") return HoldStreams(host, what, does == "begin");
  if (does == "try") return StatusJson(TryHints(host.directory, what.get<predict::HintMap>()));
  if (does == "settle") {
    const std::string full = fs::path(host.directory) / what.at(0).get<std::string>();
    const auto carried = SettleDirectory(full, what.at(1).get<predict::HintMap>());
    json answer = StatusJson(carried.status());
    answer["carried"] = carried.ok() && *carried;
    return answer;
  }
  json answers = json::array();
  for (const json& path : what)
    answers.push_back(ToJson(
        LocateOne(host, does, path.get<std::string>(), question.at("checksums").get<bool>())));
  return answers;
}

}  // namespace

// ---- in the runner

HostMount::HostMount(const RunHost& host, bool with_checksums)
    : host_(host),
      with_checksums_(with_checksums),
      look_([this](const json&) { return LookAt(host_); }),
      reach_([this](const json&) { return Reach(host_, kReachMax); }),
      work_([this](const json& question) { return Work(host_, question); }),
      manager_([this, manager = std::make_shared<std::unique_ptr<sai::AdminClient>>()](
                   const json& question) { return AskManagerOf(host_, *manager, question); }) {}

void HostMount::BeginLook() {
  // An answer to a look that began earlier is too old.
  if (look_.has_question()) look_.GiveUp();
  looked_ = SystemClock().Monotonic();
  (void)look_.Post(json());
  if (!host_.exec.empty()) (void)reach_.Post(json());
}

HostMount::Look HostMount::EndLook() {
  const auto take = [](Hand& hand, Duration at_most) {
    const SystemClock clock;
    const Time limit = clock.Monotonic() + at_most;
    while (hand.has_question() && clock.Monotonic() < limit &&
           cluster::InterruptGuard::Interrupted() == 0) {
      auto answer = hand.Take(limit - clock.Monotonic());
      if (answer.ok() && *answer) return **std::move(answer);
    }
    hand.GiveUp();
    return json();
  };
  const json look = take(look_, kLookMax);
  Look seen;
  if (look.is_object()) seen = {look.at("there").get<bool>(), look.at("mosa").get<bool>()};
  if (!host_.exec.empty() && take(reach_, kReachMax) != true) seen.answers = false;
  return seen;
}

bool HostMount::Answers() {
  BeginLook();
  const Look seen = EndLook();
  return seen.answers && seen.mosa >= host_.mosa;
}

bool HostMount::SeemsAlive(Time now) {
  if (!look_.has_question()) {
    if (now - looked_ < kLookEach) return true;
    looked_ = now;
    return look_.Post(json()).ok();
  }
  const auto answer = look_.Take(Milliseconds(0));
  if (!answer.ok()) return false;
  if (!*answer) return now - looked_ < kLookMax;
  return (**answer).at("there") == true && (**answer).at("mosa").get<bool>() >= host_.mosa;
}

Result<json> HostMount::Ask(const json& question, Duration at_most) {
  const SystemClock clock;
  const Time limit = clock.Monotonic() + at_most;
  MOSA_RETURN_IF_ERROR(work_.Post(question));
  while (clock.Monotonic() < limit && cluster::InterruptGuard::Interrupted() == 0) {
    const Time asked = clock.Monotonic();
    MOSA_ASSIGN_OR_RETURN(auto answer, work_.Take(std::min(kLookMax, at_most)));
    if (answer) return *std::move(answer);
    // A mount that waits for others may be slow, but says so.
    const Time now = clock.Monotonic();
    if (now < limit && now - asked >= kLookMax && !Answers()) break;
  }
  work_.GiveUp();
  if (cluster::InterruptGuard::Interrupted() != 0) return AbortedError("interrupted");
  return UnavailableError(
      fmt::format("the mount {} of host {} does not answer", host_.mount_point, host_.name));
}

Status HostMount::MakeDirectory() {
  MOSA_ASSIGN_OR_RETURN(const json answer, Ask({{"do", "directory"}, {"what", nullptr}}));
  return StatusIn(answer);
}

Result<bool> HostMount::SettleDirectory(const std::string& path, const predict::HintMap& hints) {
  MOSA_ASSIGN_OR_RETURN(const json answer,
                        Ask({{"do", "settle"}, {"what", json::array({path, json(hints)})}}));
  MOSA_RETURN_IF_ERROR(StatusIn(answer));
  return answer.at("carried").get<bool>();
}

Status HostMount::TryHints(const predict::HintMap& hints) {
  MOSA_ASSIGN_OR_RETURN(const json answer, Ask({{"do", "try"}, {"what", json(hints)}}));
  return StatusIn(answer);
}

Result<HostMount::Found> HostMount::LocateAll(const char* how,
                                              const std::vector<std::string>& paths) {
  Found found;
  for (size_t at = 0; at < paths.size(); at += kPathsPerQuestion) {
    json some = json::array();
    for (size_t i = at; i < std::min(paths.size(), at + kPathsPerQuestion); ++i)
      some.push_back(paths[i]);
    MOSA_ASSIGN_OR_RETURN(
        const json answers,
        Ask({{"do", how}, {"what", std::move(some)}, {"checksums", with_checksums_}}));
    for (const json& answer : answers) found.push_back(FactsOf(answer));
  }
  return found;
}

Result<HostMount::Found> HostMount::Locate(const std::vector<std::string>& paths) {
  return LocateAll("locate", paths);
}

Result<HostMount::Found> HostMount::LocateReadable(const std::vector<std::string>& paths) {
  return LocateAll("readable", paths);
}

Result<HostMount::Found> HostMount::LocateWritten(const std::vector<std::string>& paths) {
  return LocateAll("written", paths);
}

Status HostMount::BeginStreams(const std::vector<std::string>& paths) {
  MOSA_ASSIGN_OR_RETURN(const json answer, Ask({{"do", "begin"}, {"what", paths}}));
  return StatusIn(answer);
}

Status HostMount::EndStreams(const std::vector<std::string>& paths) {
  MOSA_ASSIGN_OR_RETURN(const json answer, Ask({{"do", "end"}, {"what", paths}}));
  return StatusIn(answer);
}

Result<std::vector<std::string>> HostMount::ListLost() {
  MOSA_ASSIGN_OR_RETURN(const json answer, Ask({{"do", "lost"}, {"what", nullptr}}));
  MOSA_RETURN_IF_ERROR(StatusIn(answer));
  return answer.at("paths").get<std::vector<std::string>>();
}

Result<json> HostMount::AskManager(const char* does, json what) {
  MOSA_RETURN_IF_ERROR(manager_.Post({{"does", does}, {"what", std::move(what)}}));
  const SystemClock clock;
  const Time limit = clock.Monotonic() + kManagerMax;
  while (clock.Monotonic() < limit && cluster::InterruptGuard::Interrupted() == 0) {
    MOSA_ASSIGN_OR_RETURN(auto answer, manager_.Take(limit - clock.Monotonic()));
    if (!answer) continue;
    MOSA_RETURN_IF_ERROR(StatusIn(*answer));
    return *std::move(answer);
  }
  manager_.GiveUp();
  if (cluster::InterruptGuard::Interrupted() != 0) return AbortedError("interrupted");
  return UnavailableError(
      fmt::format("the manager did not answer within {} s", kManagerMax.ns / Seconds(1).ns));
}

Status HostMount::BeginWorkflow(const std::string& run) {
  return AskManager("begin", run).status();
}

Status HostMount::PostTasks(const std::vector<std::pair<std::string, bool>>& tasks) {
  json list = json::array();
  for (const auto& [task, succeeded] : tasks) list.push_back(json::array({task, succeeded}));
  tasks_posted_ = SystemClock().Monotonic();
  return manager_.Post({{"does", "tasks"}, {"what", std::move(list)}});
}

Result<std::optional<size_t>> HostMount::TakeTasks(Duration at_most) {
  MOSA_ASSIGN_OR_RETURN(const auto answer, manager_.Take(at_most));
  if (answer) {
    MOSA_RETURN_IF_ERROR(StatusIn(*answer));
    return std::optional(answer->at("answered").get<size_t>());
  }
  if (SystemClock().Monotonic() - tasks_posted_ < kManagerMax) return std::optional<size_t>();
  manager_.GiveUp();
  return UnavailableError(
      fmt::format("the manager did not answer within {} s", kManagerMax.ns / Seconds(1).ns));
}

Status HostMount::EndWorkflow(const std::string& run) { return AskManager("end", run).status(); }

Result<ClusterResidence> HostMount::TakeResidence() {
  MOSA_ASSIGN_OR_RETURN(const json answer, AskManager("residence", nullptr));
  return ResidenceFromJson(answer.at("residence"));
}

Status HostMount::AskWithHints(const char* does, const HintsOfFiles& files) {
  json list = json::array();
  for (const auto& [path, hints] : files) list.push_back(json::array({path, json(hints)}));
  MOSA_ASSIGN_OR_RETURN(const json answer, Ask({{"do", does}, {"what", std::move(list)}}));
  return StatusIn(answer);
}

Status HostMount::GiveHints(const HintsOfFiles& files) { return AskWithHints("give", files); }

Status HostMount::PrepareOutputs(const HintsOfFiles& outputs) {
  return AskWithHints("prepare", outputs);
}

}  // namespace mosa::cli
