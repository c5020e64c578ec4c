// What measurements of all kinds of stores have in common: where the stores are mounted, worker
// processes on their hosts, a temporary directory on each store, and what a result says about the
// hosts and the store.
#ifndef MOSA_TOOLS_MEASURE_STORE_WORKERS_H_
#define MOSA_TOOLS_MEASURE_STORE_WORKERS_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "tools/hosts/hosts.h"
#include "tools/hosts/identify_workers.h"

namespace mosa::cli {

// Several stores share their hosts, and differ only in where they are mounted.
struct MeasuredStore {
  std::string name;
  std::vector<RunHost> hosts;
};
// `path` as it is mounted on the hosts; empty: as in `request`. Unavailable names a host that has
// nothing there.
Result<MeasuredStore> FindStore(HostsRequest request, const std::string& name,
                                const std::string& path);
// Includes what must be equal for two measurements of one store; `facts` are by host.
nlohmann::json ToJson(const MeasuredStore& store, const std::vector<nlohmann::json>& facts);
// Names hosts that were busy with something else when a measurement began, which affects all
// figures.
std::vector<std::string> NotesOfLoad(const MeasuredStore& store,
                                     const std::vector<nlohmann::json>& facts);
// Names a directory on stores, for a measurement that is stored in `out`: whoever continues it
// finds what the earlier one had to leave, and nobody else uses this name.
std::string DirectoryNameOf(const std::string& prefix, const std::string& out);

// A measurement's outcome, extended by what Clear() says.
Status Ended(const Status& status, const std::string& left);

// Measures into the file `out`, which nobody else writes meanwhile. Ctrl-C ends the requests of
// `measuring` to workers; `clear` runs afterwards in any case. FailedPrecondition: `out` cannot be
// written or belongs to another measurement, or a worker has another version.
Status MeasureInto(const std::string& out, const std::function<Status()>& measuring,
                   const std::function<std::string()>& clear);

// The measurement as its messages name it.
struct Measurement {
  std::string command;  // "mosa envelope run".
  std::string out;
  double budget_seconds = 0;
};
// To be called after all rounds, with `whole` saying whether the time sufficed: saves the outcome,
// and says how to continue. Aborted: a signal came.
Status SaveEnd(const Measurement& measurement, const Result<bool>& whole,
               const std::function<Status(const std::string& outcome)>& save);

// One thread.
class StoreWorkers {
 public:
  // `directory` begins the name of a directory that this creates on every store, and removes.
  StoreWorkers(std::vector<MeasuredStore> stores, std::string directory)
      : stores_(std::move(stores)), directory_(std::move(directory)) {}

  // Starts this many, in turn on the hosts. Unavailable names a host where that fails.
  Status Start(size_t workers);
  // For each host: the "facts" of identify_worker.cc.
  Result<std::vector<nlohmann::json>> Facts(size_t store);
  // Creates the directory, or takes over that of an earlier measurement. FailedPrecondition names
  // the host that does not see what the first one writes.
  Status Settle(size_t store);
  // Removes the directories, even after a signal and without workers. Returns what is left and why,
  // in words; empty: nothing.
  std::string Clear();

  // As the worker's host sees it.
  std::string DirectoryOf(size_t store, size_t worker) const;
  const std::vector<RunHost>& hosts() const { return stores_.front().hosts; }
  // Precondition: Start().
  IdentifyWorkers* operator->() { return &*workers_; }

  static constexpr Duration kAnswerMax = Seconds(20);  // For steps that move no bytes.

 private:
  std::string ClearOne(size_t store, Time until);

  static constexpr Duration kStartMax = Seconds(20);
  static constexpr Duration kClearMax = Seconds(10);  // Per host, even after a signal.
  static constexpr Duration kClearAllMax = Seconds(30);

  const std::vector<MeasuredStore> stores_;
  const std::string directory_;
  const SystemClock clock_;
  std::optional<IdentifyWorkers> workers_;
  // By store: whether its directory exists.
  enum class Made : uint8_t { kNo, kPerhaps, kYes };
  std::vector<Made> made_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_STORE_WORKERS_H_
