#include "tools/measure/store_workers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/base/hash.h"
#include "tools/cluster/process.h"
#include "tools/runner/record.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using OnSignal = IdentifyWorkers::OnSignal;

constexpr double kBusyCoresMin = 0.2;  // A smaller load is normal.

}  // namespace

// ---- what is measured

Result<MeasuredStore> FindStore(HostsRequest request, const std::string& name,
                                const std::string& path) {
  if (!path.empty()) request.mount = path;
  const Result<FoundHosts> found = FindHosts(request);
  if (!found.ok())
    return Status(found.status().code(),
                  path.empty() ? MessageOf(found.status())
                               : fmt::format("{}: {}", path, MessageOf(found.status())));
  if (!found->silent.empty())
    return UnavailableError(
        fmt::format("host {} has nothing at {}: mount it there, or leave the host out with --hosts",
                    found->silent.front(), path.empty() ? "its mount" : path));
  return MeasuredStore{name, found->hosts};
}

json ToJson(const MeasuredStore& store, const std::vector<json>& facts) {
  json hosts = json::array();
  for (size_t i = 0; i < facts.size(); ++i) {
    const json& own = facts[i];
    hosts.push_back({{"name", store.hosts[i].name},
                     {"path", store.hosts[i].directory},
                     {"link_bytes_per_second", store.hosts[i].link_bytes_per_second},
                     {"file_system", own.at("file_system")},
                     {"source", own.at("source")},
                     {"mount_options", own.at("mount_options")},
                     {"born_us", own.at("born_us")},
                     {"store_bytes", own.at("store_bytes")},
                     {"cores", own.at("cores")},
                     {"processor", own.at("processor")},
                     {"kernel", own.at("kernel")}});
  }
  return {{"name", store.name}, {"hosts", std::move(hosts)}};
}

std::vector<std::string> NotesOfLoad(const MeasuredStore& store, const std::vector<json>& facts) {
  std::vector<std::string> notes;
  for (size_t i = 0; i < facts.size(); ++i) {
    const double busy = facts[i].at("busy_cores");
    if (busy < kBusyCoresMin) continue;
    notes.push_back(fmt::format(
        "host {}: {:.1f} of {} cores were busy with something else when a measurement began",
        store.hosts[i].name, busy, facts[i].at("cores").get<int>()));
  }
  return notes;
}

std::string DirectoryNameOf(const std::string& prefix, const std::string& out) {
  std::error_code error;
  char machine[256] = {};
  gethostname(machine, sizeof machine - 1);
  const std::string path = std::filesystem::absolute(out, error).string();
  return fmt::format("{}{:016x}", prefix, Hash64(fmt::format("{}:{}", machine, path)));
}

Status Ended(const Status& status, const std::string& left) {
  if (left.empty()) return status;
  return status.ok() ? FailedPreconditionError(left)
                     : Status(status.code(), fmt::format("{}; {}", MessageOf(status), left));
}

Status MeasureInto(const std::string& out, const std::function<Status()>& measuring,
                   const std::function<std::string()>& clear) {
  const cluster::InterruptGuard guard;
  const auto lock = LockRecord(out);
  if (!lock.ok())
    return FailedPreconditionError(fmt::format(
        "cannot write {}, or another measurement is writing it: give another --output", out));
  Status status;
  try {
    status = measuring();
  } catch (const json::exception&) {
    status = FailedPreconditionError(
        "a process on a host sent a message that this program does not understand: check that it "
        "runs the same version of Mosa");
  }
  return Ended(status, clear());
}

Status SaveEnd(const Measurement& measurement, const Result<bool>& whole,
               const std::function<Status(const std::string& outcome)>& save) {
  const auto& [command, out, budget_seconds] = measurement;
  if (whole.ok()) {
    if (!*whole)
      fmt::print(stderr,
                 "{}: the {} s of --budget are used up, so there are fewer samples than requested: "
                 "run the same command again to continue with {}\n",
                 command, budget_seconds, out);
    return save(*whole ? "done" : "out of time");
  }
  const bool interrupted = cluster::InterruptGuard::Interrupted() != 0;
  MOSA_RETURN_IF_ERROR(save(interrupted ? "interrupted" : "failed"));
  if (interrupted)
    return AbortedError(
        fmt::format("interrupted: run the same command again to continue with {}", out));
  return whole.status();
}

// ---- who measures it

std::string StoreWorkers::DirectoryOf(size_t store, size_t worker) const {
  const std::vector<RunHost>& hosts = stores_[store].hosts;
  // Two names may stand for one store.
  return fmt::format("{}/{}-{}", hosts[worker % hosts.size()].directory, directory_, store);
}

Status StoreWorkers::Start(size_t workers) {
  made_.assign(stores_.size(), Made::kNo);
  std::vector<RunHost> placed;
  for (size_t i = 0; i < workers; ++i) placed.push_back(hosts()[i % hosts().size()]);
  MOSA_ASSIGN_OR_RETURN(IdentifyWorkers started, IdentifyWorkers::Start(placed, kStartMax));
  workers_.emplace(std::move(started));
  return OkStatus();
}

Result<std::vector<json>> StoreWorkers::Facts(size_t store) {
  const std::vector<RunHost>& hosts = stores_[store].hosts;
  std::vector<IdentifyWorkers::Question> questions;
  for (size_t i = 0; i < hosts.size(); ++i)
    questions.push_back(
        {i, {{"do", "facts"}, {"directory", hosts[i].directory}, {"mount", hosts[i].mount_point}}});
  return workers_->Ask(questions, kAnswerMax);
}

Status StoreWorkers::Settle(size_t store) {
  made_[store] = Made::kPerhaps;
  // Removes what an earlier measurement was killed too early to remove.
  MOSA_RETURN_IF_ERROR(
      workers_->Ask(0, {{"do", "clear"}, {"path", DirectoryOf(store, 0)}}, kAnswerMax).status());
  MOSA_RETURN_IF_ERROR(
      workers_
          ->Ask(0, {{"do", "make"}, {"path", DirectoryOf(store, 0)}, {"placement", ""}}, kAnswerMax)
          .status());
  made_[store] = Made::kYes;
  const std::vector<RunHost>& hosts = stores_[store].hosts;
  for (size_t i = 1; i < hosts.size(); ++i) {
    const auto seen =
        workers_->Ask(i, {{"do", "look"}, {"path", DirectoryOf(store, i)}}, kAnswerMax);
    if (seen.status().code() != StatusCode::kNotFound) {
      MOSA_RETURN_IF_ERROR(seen.status());
      continue;
    }
    return FailedPreconditionError(
        fmt::format("host {} does not see in {} what host {} writes in {}: is the same store "
                    "mounted on both?",
                    hosts[i].name, hosts[i].directory, hosts[0].name, hosts[0].directory));
  }
  return OkStatus();
}

std::string StoreWorkers::ClearOne(size_t store, Time until) {
  std::string why;
  const size_t able = std::min(stores_[store].hosts.size(), workers_->count());
  for (size_t host = 0; host < able; ++host) {
    const Duration at_most = std::min(kClearMax, until - clock_.Monotonic());
    const auto cleared = workers_->Ask(host, {{"do", "clear"}, {"path", DirectoryOf(store, host)}},
                                       at_most, OnSignal::kGoOn);
    // If the store is no longer mounted there, nothing is found, but another host may find it.
    if (cleared.ok() && cleared->value("found", false)) return "";
    if (!cleared.ok()) why = MessageOf(cleared.status());
  }
  if (why.empty() && made_[store] == Made::kPerhaps) return "";
  if (why.empty())
    return fmt::format("{} may be left: no host sees it any more; mount the store and remove it",
                       DirectoryOf(store, 0));
  return fmt::format("{} is left: remove it ({})", DirectoryOf(store, 0), why);
}

std::string StoreWorkers::Clear() {
  if (!workers_) return "";
  const Time until = clock_.Monotonic() + kClearAllMax;
  // A worker that is still busy with a sample would create files in what is being removed.
  std::vector<IdentifyWorkers::Question> questions;
  for (size_t i = 0; i < workers_->count(); ++i) questions.push_back({i, {{"do", "clock"}}});
  const bool whole = workers_->Ask(questions, kClearMax, OnSignal::kGoOn).ok();
  std::string left;
  for (size_t store = 0; store < made_.size(); ++store) {
    if (made_[store] == Made::kNo) continue;
    std::string own = ClearOne(store, until);
    if (!own.empty() && !whole) {
      // The worker that is gone may have been the only one that could.
      auto fresh = IdentifyWorkers::Start({stores_[store].hosts.front()}, kClearMax);
      if (fresh.ok()) {
        workers_.emplace(*std::move(fresh));
        own = ClearOne(store, until);
      }
    }
    if (!own.empty()) left += (left.empty() ? "" : "; ") + own;
  }
  return left;
}

}  // namespace mosa::cli
