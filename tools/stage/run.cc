#include "tools/stage/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/unique_fd.h"
#include "common/base/units.h"
#include "common/model/task_names.h"
#include "tools/console/output.h"
#include "tools/console/progress.h"
#include "tools/stage/plan.h"
#include "tools/stage/workers.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

// Files of one round of --unstaged.
constexpr uint32_t kUnstagedAtOnce = 10'000;

bool IsWithin(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

// One run at a time of this machine copies to a target. Runs of several machines only remove each
// other's temporaries, which is an error of the run that misses them.
Result<UniqueFd> LockTarget(const std::string& directory) {
  UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Cannot("read", directory);
  // Some file systems lock no directories.
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return FailedPreconditionError(
        fmt::format("another mosa stage copies to {}: wait for its end", directory));
  return fd;
}

// Names of temporaries: those of all runs to one target begin alike, as do those of one run. A
// target in the store is the same on every mount: `target` is its path below the mount.
struct TemporaryNames {
  std::string runs, own;
  explicit TemporaryNames(std::string_view target) {
    const SystemClock clock;
    const uint64_t run =
        HashCombine(static_cast<uint64_t>(clock.Now().ns), static_cast<uint64_t>(getpid()));
    runs = fmt::format("{}{:016x}-", kStagePrefix, Hash64(target));
    own = fmt::format("{}{:016x}-", runs, run);
  }
};

class Staging {
 public:
  Staging(const StageRequest& request, const std::vector<RunHost>& hosts, sai::AdminClient& manager,
          std::string target, TemporaryNames names, dev_t store, StageReport& report)
      : request_(request),
        hosts_(hosts),
        manager_(manager),
        target_(std::move(target)),
        names_(std::move(names)),
        tree_(names_.runs, names_.own, store),
        report_(report) {}
  ~Staging() {
    for (const auto& [job, path] : temporaries_) unlink(path.c_str());
    if (!probe_.empty()) unlink(probe_.c_str());
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  StageTree& tree() { return tree_; }
  Status Run();

 private:
  // What a host calls a file that is known here.
  std::string OnHost(const RunHost& host, const std::string& path, bool in_store) const {
    return in_store ? host.mount_point + path.substr(request_.mount_point.size()) : path;
  }
  std::string InStore(const std::string& path) const {
    return path.substr(request_.mount_point.size());
  }
  struct Copied {
    size_t job, host;
    CopyResult result;
  };

  Status AskForLocations();
  Status AskForHints();
  Status MakeProbe();
  std::vector<size_t> ChooseHosts() const;
  CopyJob Prepare(size_t job, size_t host);
  void Done(size_t job, size_t host, const Result<CopyResult>& result);
  Status WriteManifest();
  void ShowProgress();
  Status MarkStaged();
  void Fail(const std::string& path, Status status) {
    report_.failures.push_back({path, std::move(status)});
  }

  const StageRequest& request_;
  const std::vector<RunHost>& hosts_;
  sai::AdminClient& manager_;
  const std::string target_;
  const TemporaryNames names_;
  StageTree tree_;
  StageReport& report_;
  std::vector<FileLocation> locations_;        // Out: one per file, from before it was copied.
  std::vector<std::vector<HintValue>> hints_;  // In: one per file; empty: `request_.hints`.
  std::map<size_t, std::string> temporaries_;  // By job that is under way.
  std::vector<Copied> copied_;                 // Whole at the target; in the end: and marked.
  std::string probe_;                          // A file at the target that every host must see.
  uint64_t next_temporary_ = 0;
  uint64_t bytes_total_ = 0, bytes_done_ = 0;
  size_t files_done_ = 0;
  ProgressBar progress_;
  const SystemClock clock_;
  const Time begin_ = clock_.Monotonic();
  std::ofstream manifest_;
};

// Which version is about to be read, and where it lies. What a mount has not told the manager of
// yet has neither.
Status Staging::AskForLocations() {
  const auto& files = tree_.files();
  locations_.resize(files.size());
  std::vector<size_t> open;
  for (size_t i = 0; i < files.size(); ++i)
    if (files[i].regular) open.push_back(i);
  while (!open.empty()) {
    std::vector<std::string> paths;
    for (const size_t i : open) paths.push_back(InStore(files[i].source));
    MOSA_ASSIGN_OR_RETURN(std::vector<FileLocation> answers,
                          manager_.ListLocations(paths, /*with_chunks=*/false));
    std::vector<size_t> later;
    for (size_t k = 0; k < open.size(); ++k) {
      const auto& failure = answers[k].failure;
      if (failure && failure->reason == ErrorReason::kArgumentTooBig) later.push_back(open[k]);
      locations_[open[k]] = std::move(answers[k]);
    }
    if (later.size() == open.size()) break;
    open = std::move(later);
  }
  return OkStatus();
}

// A file gets the hints that rules have for its path when it is made; it is made under another
// name. What is asked for is stronger than rules, as is what a pattern that is asked for stands
// for.
Status Staging::AskForHints() {
  const auto& files = tree_.files();
  hints_.assign(files.size(), request_.hints);
  MOSA_ASSIGN_OR_RETURN(const auto rules, manager_.ListHintRules());
  if (rules.empty()) return OkStatus();
  std::set<std::string> settled;
  for (const HintValue& hint : request_.hints) {
    settled.insert(hint.name);
    if (hint.name == "pattern")
      for (std::string& name : HintsOfPattern(hint.value)) settled.insert(std::move(name));
  }
  for (size_t i = 0; i < files.size(); ++i) {
    if (!files[i].regular) continue;
    MOSA_ASSIGN_OR_RETURN(const HintExplanation explained,
                          manager_.ExplainHints(InStore(files[i].target)));
    std::vector<HintValue> hints;
    for (const ExplainedHint& hint : explained.hints)
      if (hint.source == HintSource::kRule && !settled.contains(hint.name))
        hints.push_back({hint.name, hint.value});
    hints.insert(hints.end(), request_.hints.begin(), request_.hints.end());
    hints_[i] = std::move(hints);
  }
  return OkStatus();
}

std::vector<size_t> Staging::ChooseHosts() const {
  std::map<std::string, size_t> host_of_name;
  for (size_t i = 0; i < hosts_.size(); ++i) host_of_name[hosts_[i].name] = i;
  std::vector<StageShare> shares;
  for (size_t i = 0; i < tree_.files().size(); ++i) {
    StageShare& share = shares.emplace_back();
    share.bytes = tree_.files()[i].bytes;
    std::vector<std::string> nodes;
    if (request_.out) nodes = locations_[i].nodes;
    if (!request_.out)
      for (const HintValue& hint : hints_[i])
        if (hint.name == "placement" && hint.value.starts_with("node:"))
          nodes = {hint.value.substr(5)};
    for (const std::string& node : nodes)
      if (const auto host = host_of_name.find(node); host != host_of_name.end())
        share.holders.push_back(host->second);
  }
  return ShareOut(shares, hosts_.size());
}

CopyJob Staging::Prepare(size_t job, size_t host) {
  const StageFile& file = tree_.files()[job];
  // Left by a process that was lost with it.
  if (const auto earlier = temporaries_.find(job); earlier != temporaries_.end())
    unlink(earlier->second.c_str());
  const std::string temporary = fmt::format("{}/{}{}", fs::path(file.target).parent_path().string(),
                                            names_.own, next_temporary_++);
  temporaries_[job] = temporary;
  return {.source = OnHost(hosts_[host], file.source, request_.out),
          .target = OnHost(hosts_[host], file.target, !request_.out),
          .temporary = OnHost(hosts_[host], temporary, !request_.out),
          .hints = request_.out ? std::vector<HintValue>() : hints_[job],
          .sync = request_.out,
          .compare = request_.compare};
}

void Staging::Done(size_t job, size_t host, const Result<CopyResult>& result) {
  const StageFile& file = tree_.files()[job];
  temporaries_.erase(job);
  ++files_done_;
  bytes_done_ += file.bytes;
  if (!result.ok()) return Fail(file.source, result.status());
  copied_.push_back({job, host, *result});
  ++report_.files;
  report_.bytes += result->size_bytes;
  if (result->skipped) {
    ++report_.skipped;
  } else {
    StageReport::Host& copied = report_.hosts[hosts_[host].name];
    ++copied.files;
    copied.bytes += result->size_bytes;
  }
}

Status Staging::WriteManifest() {
  if (!manifest_.is_open()) return OkStatus();
  for (const auto& [job, host, result] : copied_) {
    nlohmann::json line = {
        {"host", hosts_[host].name}, {"bytes", result.size_bytes}, {"skipped", result.skipped}};
    PutBytes(line, "path", fs::path(tree_.files()[job].target).lexically_relative(target_));
    PutBytes(line, "source", tree_.files()[job].source);
    if (result.crc32c) line["crc32c"] = fmt::format("{:08x}", *result.crc32c);
    manifest_ << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  }
  return manifest_.flush() ? OkStatus() : Cannot("write", request_.manifest);
}

void Staging::ShowProgress() {
  const double passed = static_cast<double>((clock_.Monotonic() - begin_).ns) / 1e9;
  const double done = static_cast<double>(std::max<uint64_t>(1, bytes_done_));
  const double left = passed * static_cast<double>(bytes_total_ - bytes_done_) / done;
  progress_.Show(files_done_, tree_.files().size(), left,
                 fmt::format("files, {}", HumanBytes(static_cast<int64_t>(bytes_done_))));
}

// The manager takes a copy for the file only if it is of the version that it has still.
Status Staging::MarkStaged() {
  std::vector<StagedFile> marks;
  std::vector<Copied> marked, staged;
  for (const Copied& copied : copied_) {
    const StageFile& file = tree_.files()[copied.job];
    const FileLocation& location = locations_[copied.job];
    if (!file.regular) {
      staged.push_back(copied);
    } else if (location.failure) {
      Fail(file.source,
           AbortedError(fmt::format("{} is still being written: stage it again when it is closed",
                                    file.source)));
    } else if (location.file.value != copied.result.inode) {
      Fail(file.source,
           AbortedError(fmt::format(
               "{} gave way to another file while it was copied: stage it again", file.source)));
    } else {
      marks.push_back({location.file, location.data_version});
      marked.push_back(copied);
    }
  }
  copied_.clear();
  MOSA_ASSIGN_OR_RETURN(const auto outcomes, manager_.MarkStaged(marks));
  for (size_t i = 0; i < marks.size(); ++i) {
    const std::string& path = tree_.files()[marked[i].job].source;
    if (outcomes[i] == StageOutcome::kStaged) {
      ++report_.marked;
      staged.push_back(marked[i]);
    } else {
      Fail(path, AbortedError(path + (outcomes[i] == StageOutcome::kChanged
                                          ? " was changed while it was copied: stage it again"
                                          : " was copied, but is open for writing: stage it again "
                                            "when it is closed")));
    }
  }
  copied_ = std::move(staged);
  return OkStatus();
}

// Hosts that are other machines may have another directory of that name.
Status Staging::MakeProbe() {
  const bool elsewhere = std::any_of(hosts_.begin(), hosts_.end(),
                                     [](const RunHost& host) { return !host.exec.empty(); });
  if (!request_.out || !elsewhere) return OkStatus();
  probe_ = fmt::format("{}/{}probe", target_, names_.own);
  const UniqueFd made(open(probe_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return made ? OkStatus() : Cannot("create", probe_);
}

Status Staging::Run() {
  if (!request_.manifest.empty()) {
    manifest_.open(request_.manifest, std::ios::app | std::ios::binary);
    if (!manifest_) return Cannot("write", request_.manifest);
  }
  for (const StageFile& file : tree_.files()) bytes_total_ += file.bytes;
  MOSA_RETURN_IF_ERROR(request_.out ? AskForLocations() : AskForHints());
  MOSA_RETURN_IF_ERROR(MakeProbe());
  const std::vector<size_t> host_of_file = ChooseHosts();
  std::vector<size_t> counts(hosts_.size(), 0);
  for (const size_t host : host_of_file) counts[host] = std::min(request_.jobs, counts[host] + 1);
  // Files are copied in under the task that this process belongs to.
  const char* const task = request_.out ? nullptr : getenv("MOSA_TASK");
  const StageWorkers::Options options{
      .task = task != nullptr && *task != '\0' ? task : std::string(kStageTask), .probe = probe_};
  MOSA_ASSIGN_OR_RETURN(StageWorkers workers, StageWorkers::Start(hosts_, counts, options));
  const Status run = workers.Run(
      host_of_file, [this](size_t job, size_t host) { return Prepare(job, host); },
      [this](size_t job, size_t host, const Result<CopyResult>& result) {
        Done(job, host, result);
      },
      [this] { ShowProgress(); });
  progress_.End();
  MOSA_RETURN_IF_ERROR(run);
  if (request_.out)
    MOSA_RETURN_IF_ERROR(SyncDirectories({tree_.directories().begin(), tree_.directories().end()}));
  tree_.FinishDirectories();
  std::move(tree_.failures().begin(), tree_.failures().end(), std::back_inserter(report_.failures));
  report_.passed_over.insert(report_.passed_over.end(), tree_.passed_over().begin(),
                             tree_.passed_over().end());
  if (request_.out) MOSA_RETURN_IF_ERROR(MarkStaged());
  return WriteManifest();
}

// A source as the kernel goes there, and what it becomes. "dir/." is what is in it, as for cp -r; a
// symbolic link that is named is followed into the store, but not out of it.
Result<std::pair<std::string, std::string>> Resolve(const StageRequest& request,
                                                    const std::string& source,
                                                    const std::string& target) {
  std::error_code error;
  fs::path named = fs::absolute(source, error).lexically_normal();
  const bool inside = fs::path(source).filename() == "." || named == "/";
  if (!named.has_filename()) named = named.parent_path();
  fs::path real = inside ? fs::canonical(named, error)
                         : fs::canonical(named.parent_path(), error) / named.filename();
  if (!error && !request.out && fs::is_symlink(fs::symlink_status(real)))
    real = fs::canonical(real, error);
  if (error) return NotFoundError(fmt::format("cannot read {}: {}", source, error.message()));
  if (request.out && !IsWithin(real, request.mount_point))
    return InvalidArgumentError(
        fmt::format("{} is not on the mount {}: name sources on one mount of the store", source,
                    request.mount_point));
  return std::pair(real.string(), inside ? target : target + "/" + named.filename().string());
}

Status AddSources(const StageRequest& request, const std::string& target, Staging& staging) {
  std::set<std::string> names;
  for (const std::string& source : request.sources) {
    MOSA_ASSIGN_OR_RETURN(const auto resolved, Resolve(request, source, target));
    const auto& [from, to] = resolved;
    if (to != target && !names.insert(to).second)
      return InvalidArgumentError(
          fmt::format("two sources would both become {}: stage them to two directories", to));
    staging.tree().Add(from, to);
  }
  return OkStatus();
}

}  // namespace

Status Stage(const StageRequest& request, const std::vector<RunHost>& hosts,
             sai::AdminClient& manager, StageReport& report) {
  struct stat store {};
  if (stat(request.mount_point.c_str(), &store) != 0) return Cannot("read", request.mount_point);
  const dev_t forbidden = request.out ? dev_t{0} : store.st_dev;
  MOSA_ASSIGN_OR_RETURN(const auto fresh, MakeDirectories(request.target));
  std::error_code error;
  const std::string target = fs::canonical(request.target, error);
  // What was there when the target was looked at may have given way to a link.
  if (error || IsWithin(target, request.mount_point) == request.out)
    return InvalidArgumentError(
        fmt::format("{} was replaced by another directory meanwhile: stage again", request.target));
  MOSA_ASSIGN_OR_RETURN(const UniqueFd lock, LockTarget(target));
  const TemporaryNames names(request.out ? target : target.substr(request.mount_point.size()));
  if (!request.unstaged) {
    Staging staging(request, hosts, manager, target, names, forbidden, report);
    staging.tree().Open(target, fresh);
    MOSA_RETURN_IF_ERROR(AddSources(request, target, staging));
    return staging.Run();
  }
  // One pass over all of them, in the order of their ids.
  FileId after;
  for (uint64_t listed = 0, files = 1; listed < files;) {
    MOSA_ASSIGN_OR_RETURN(const UnstagedFiles unstaged,
                          manager.ListUnstaged(kUnstagedAtOnce, after));
    if (unstaged.first.empty()) break;
    if (listed == 0) files = unstaged.files;
    listed += unstaged.first.size();
    after = unstaged.first.back().file;
    Staging staging(request, hosts, manager, target, names, forbidden, report);
    staging.tree().Open(target, fresh);
    for (const UnstagedFile& file : unstaged.first)
      staging.tree().AddBelow(request.mount_point, target, file.path);
    MOSA_RETURN_IF_ERROR(staging.Run());
  }
  MOSA_ASSIGN_OR_RETURN(const UnstagedFiles left, manager.ListUnstaged(0));
  if (left.files == 0 || !report.failures.empty()) return OkStatus();
  return AbortedError(
      fmt::format("{} files of lifetime=keep were changed or created meanwhile: stage them out too",
                  left.files));
}

}  // namespace mosa::cli
