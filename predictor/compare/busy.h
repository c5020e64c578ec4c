// Busy machines: how much of a run's times others' work on its machines can have made, so that it
// is not told as a fault of the store.
//
// What others *take* from a run is at most the share that they have of a machine's processors; and
// at most the share of the time in which any process there waited for one, if the kernel says it:
// work of low priority may have all that a run leaves, and take nothing from it. What the machine's
// own host took comes on top: for the kernel nobody waits meanwhile. Where that is f, what computes
// takes up to 1 / (1 - f) times as long. Work that comes in pieces, as a daemon's, may wait more
// often than that: twice as much more is excused, and for a single request or a wait f times
// kDelaySeconds besides. Less than kBusyShare is what any machine does by itself, and excuses
// nothing; from there to twice that the excuse grows from nothing to all of it. What is off by more
// than that is held against the prediction with the rest.
//
// What is excused is what others had on the machines that the time in question was spent on: for a
// task on its host's, for a stage and the workflow on the busiest of those where their tasks ran.
// Where it is not known, nothing is excused.
//
// Tasks whose own processor seconds are longer as well compute longer, whoever else was there:
// nothing is excused then. Others' work on the same cores makes own seconds longer too, by as much
// as its share, about. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_BUSY_H_
#define MOSA_PREDICTOR_COMPARE_BUSY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "predictor/compare/judging.h"
#include "predictor/compare/seen_run.h"

namespace mosa::predict {

inline constexpr double kBusyShare = 0.1;
inline constexpr double kDelaySeconds = 0.01;

// What others may have taken from the run, on the machine where that is most; on a host's; where
// the runner and where the manager is. 0: nothing, or it is not known.
double TakenShare(const SeenRun& run);
double TakenShareAt(const SeenRun& run, const std::string& host);
double TakenShareAtRunner(const SeenRun& run);
double TakenShareAtManager(const SeenRun& run);
// By how much more on a host's machine than where it is least on others'.
double TakenShareBeside(const SeenRun& run, const std::string& host);

// How much longer than predicted a time may be: by a share of it, and by seconds of a single wait.
struct Excuse {
  double share = 0;
  double delay_s = 0;
};
Excuse ExcuseFor(double taken_share);

// On the machines of the hosts where tasks ran.
struct TakenFromTasks {
  bool is_known = false;  // For at least one of them.
  double most = 0;
  double had = 0;  // The most that others, and the machine's own host, had of the processors.
  Excuse mean;     // What is excused of the mean task.
};
// `stage`: empty: all.
TakenFromTasks TakenFrom(const Workflow& workflow, const SeenRun& run, const std::string& stage);

// Takes that off, as far as it is longer. `predicted_place` is a logarithm of seconds.
JudgedRun WithoutOthers(const JudgedRun& run, double predicted_place, const Excuse& excuse);

// What a task's own processor seconds are usually: the least of the runs in which it took about as
// long as predicted; if there are none, what the workload says, which is by the clock.
struct UsualSeconds {
  double seconds = 0;
  bool is_measured = false;
};
std::vector<UsualSeconds> UsualSecondsOf(const std::vector<SeenRun>& runs,
                                         const std::vector<double>& typical_s,
                                         const std::vector<Duration>& computing);

// Processor seconds of a run's tasks beside the usual, where known. A task that had
// more of them than it took by the clock has several threads: what the workload says is none of it.
struct OwnSeconds {
  size_t tasks = 0;
  size_t measured = 0;  // Compared with other runs; the rest with the workload.
  double own_s = 0;     // Less what the kernel takes to start them and for their bytes.
  double usual_s = 0;
  double more_s = 0;  // By which they took longer than predicted, by the clock.
  double times() const { return usual_s > 0 ? own_s / usual_s : 0; }
  bool is_beside_runs() const { return 2 * measured > tasks; }
};
// `stage`: empty: all.
OwnSeconds OwnSecondsOf(const Workflow& workflow, const SeenRun& run,
                        const std::vector<double>& typical_s,
                        const std::vector<UsualSeconds>& usual, const std::string& stage);

// Whether they are longer than others' share explains, by half of what tasks took longer or more.
bool ComputeLonger(const OwnSeconds& own, double others_share);

// "Machine busy: ...", for the runs whose machines were; empty: none was.
std::string SayBusy(const std::vector<const SeenRun*>& runs);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_BUSY_H_
