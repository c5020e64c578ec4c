// What measuring stores of any kind has in common: where they are mounted, processes on their hosts
// that do what they are told, a directory on each store that is there only meanwhile, and what a
// result says of the hosts and of the store.
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

// Several stores have the same hosts; only where each is mounted differs.
struct MeasuredStore {
  std::string name;
  std::vector<RunHost> hosts;
};
// `path` as it is mounted on the hosts; empty: as `request` says. Unavailable names a host that has
// nothing there.
Result<MeasuredStore> FindStore(HostsRequest request, const std::string& name,
                                const std::string& path);
// With what must be equal for two measurements to be of one store; `facts` of each host.
nlohmann::json ToJson(const MeasuredStore& store, const std::vector<nlohmann::json>& facts);
// Names hosts that did something else when a measurement began: that is in all figures.
std::vector<std::string> NotesOfLoad(const MeasuredStore& store,
                                     const std::vector<nlohmann::json>& facts);
// Names a directory on stores, for a measurement that is kept in `out`: whoever continues it finds
// what the one before had to leave, and nobody else has this name.
std::string DirectoryNameOf(const std::string& prefix, const std::string& out);

// A measurement's outcome with what Clear() says.
Status Ended(const Status& status, const std::string& left);

// Measures into the file `out`, which nobody else writes meanwhile; Ctrl-C ends what `measuring`
// asks of workers, and `clear` comes after it however it ends. FailedPrecondition: `out` cannot be
// written or is another's, or a worker is of another version.
Status MeasureInto(const std::string& out, const std::function<Status()>& measuring,
                   const std::function<std::string()>& clear);

// The caller that measures, for its messages to people.
struct Measurement {
  std::string command;  // "mosa envelope run".
  std::string out;
  double budget_seconds = 0;
};
// After all rounds, `whole` saying whether the time sufficed: saves with the outcome, and says how
// to go on. Aborted: a signal came.
Status SaveEnd(const Measurement& measurement, const Result<bool>& whole,
               const std::function<Status(const std::string& outcome)>& save);

// One thread.
class StoreWorkers {
 public:
  // `directory` begins the name of a directory that this makes on every store, and removes.
  StoreWorkers(std::vector<MeasuredStore> stores, std::string directory)
      : stores_(std::move(stores)), directory_(std::move(directory)) {}

  // Starts so many, in turn on the hosts. Unavailable names a host where it cannot.
  Status Start(size_t workers);
  // For each host: the "facts" of identify_worker.cc.
  Result<std::vector<nlohmann::json>> Facts(size_t store);
  // Makes the directory, also if another measurement left it. FailedPrecondition names the host
  // that does not see what the first one writes.
  Status Settle(size_t store);
  // Removes the directories, after a signal and without workers too. What is left and why, as
  // words; empty: nothing.
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
  static constexpr Duration kClearMax = Seconds(10);  // Per host, also after a signal.
  static constexpr Duration kClearAllMax = Seconds(30);

  const std::vector<MeasuredStore> stores_;
  const std::string directory_;
  const SystemClock clock_;
  std::optional<IdentifyWorkers> workers_;
  // By store: whether the directory there is made.
  enum class Made : uint8_t { kNo, kPerhaps, kYes };
  std::vector<Made> made_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_STORE_WORKERS_H_
