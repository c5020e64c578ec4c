// Busy machines: how much of a run's time the work of others on its machines can explain, so that
// such delays are not reported as a fault of the store.
//
// The others *take* from a run at most their share of a machine's processors. If the kernel reports
// it, the share of time in which any process there waited for a processor is a second limit:
// low-priority work may use everything that a run leaves idle, and take nothing from it. Time
// stolen by the machine's own host is added, because no process waits meanwhile as the kernel sees
// it. If the share taken is f, computing takes up to 1 / (1 - f) times as long. Bursty work, such
// as a daemon's, may wait more often than that: twice this excess is excused, and for a single
// request or wait another f times kDelaySeconds. A share below kBusyShare is normal for any machine
// and excuses nothing; from there to twice kBusyShare the excuse grows from nothing to its full
// size. A deviation beyond the excuse counts against the prediction.
//
// The excuse depends on what others took on the machines where the time in question was spent: for
// a task, on the machine of its host; for a stage and the workflow, on the busiest of the machines
// that ran their tasks. If that is unknown, nothing is excused.
//
// If the tasks' own processor seconds are longer too, they compute longer, whoever else was there:
// nothing is excused then. Other work on the same cores also lengthens own seconds, by about its
// share. Pure.
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

// The share of processors that others may have taken from the run: on the machine where it is
// largest, on a host's machine, and on the machines of the runner and of the manager. 0: nothing,
// or unknown.
double TakenShare(const SeenRun& run);
double TakenShareAt(const SeenRun& run, const std::string& host);
double TakenShareAtRunner(const SeenRun& run);
double TakenShareAtManager(const SeenRun& run);
// By how much more a host's machine was taken than the least taken machine of the other hosts.
double TakenShareBeside(const SeenRun& run, const std::string& host);

// By how much a time may exceed its prediction: a share of it, plus the seconds of a single wait.
struct Excuse {
  double share = 0;
  double delay_s = 0;
};
Excuse ExcuseFor(double taken_share);

// Over the machines of the hosts where tasks ran.
struct TakenFromTasks {
  bool is_known = false;  // For at least one of these machines.
  double most = 0;
  double had = 0;  // The largest share of processors that others and the machine's own host had.
  Excuse mean;     // The excuse of the mean task.
};
// An empty `stage` stands for all stages.
TakenFromTasks TakenFrom(const Workflow& workflow, const SeenRun& run, const std::string& stage);

// Takes the excuse off a run, as far as the run is slower than predicted. `predicted_place` is a
// logarithm of seconds.
JudgedRun WithoutOthers(const JudgedRun& run, double predicted_place, const Excuse& excuse);

// The usual own processor seconds of a task: the least of the runs in which it took about as long
// as predicted; without such a run, the workload's runtime, which is wall-clock time.
struct UsualSeconds {
  double seconds = 0;
  bool is_measured = false;
};
std::vector<UsualSeconds> UsualSecondsOf(const std::vector<SeenRun>& runs,
                                         const std::vector<double>& typical_s,
                                         const std::vector<Duration>& computing);

// Own processor seconds of a run's tasks next to the usual ones, where known. A task that used more
// of them than it took by the wall clock has several threads, so the workload's runtime does not
// count for it.
struct OwnSeconds {
  size_t tasks = 0;
  size_t measured = 0;  // Compared with other runs; the rest with the workload.
  double own_s = 0;     // Without what the kernel uses to start tasks and to move their bytes.
  double usual_s = 0;
  double more_s = 0;  // Excess over the prediction, of tasks by the wall clock.
  double times() const { return usual_s > 0 ? own_s / usual_s : 0; }
  bool is_beside_runs() const { return 2 * measured > tasks; }
};
// An empty `stage` stands for all stages.
OwnSeconds OwnSecondsOf(const Workflow& workflow, const SeenRun& run,
                        const std::vector<double>& typical_s,
                        const std::vector<UsualSeconds>& usual, const std::string& stage);

// Whether own seconds are longer than the others' share explains, by half or more of the tasks'
// excess.
bool ComputeLonger(const OwnSeconds& own, double others_share);

// "Machine busy: ..." for the runs whose machines were busy; empty if there are none.
std::string SayBusy(const std::vector<const SeenRun*>& runs);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_BUSY_H_
