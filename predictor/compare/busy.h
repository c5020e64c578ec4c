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
// The excuse depends on what others took on the machines where the time was spent. If that is
// unknown, nothing is excused.
//
// Pure.
#ifndef MOSA_PREDICTOR_COMPARE_BUSY_H_
#define MOSA_PREDICTOR_COMPARE_BUSY_H_

#include <string>
#include <vector>

#include "predictor/compare/judging.h"
#include "predictor/compare/seen_run.h"

namespace mosa::predict {

inline constexpr double kBusyShare = 0.1;
inline constexpr double kDelaySeconds = 0.01;

// The share of processors that others may have taken from the run: on the machine where it is
// largest, on a host's machine, and on the machine of the manager. 0: nothing,
// or unknown.
double TakenShare(const SeenRun& run);
double TakenShareAt(const SeenRun& run, const std::string& host);
double TakenShareAtManager(const SeenRun& run);
// By how much a time may exceed its prediction: a share of it, plus the seconds of a single wait.
struct Excuse {
  double share = 0;
  double delay_s = 0;
};
Excuse ExcuseFor(double taken_share);

// Takes the excuse off a run, as far as the run is slower than predicted. `predicted_place` is a
// logarithm of seconds.
JudgedRun WithoutOthers(const JudgedRun& run, double predicted_place, const Excuse& excuse);

// "Machine busy: ..." for the runs whose machines were busy; empty if there are none.
std::string SayBusy(const std::vector<const SeenRun*>& runs);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_BUSY_H_
