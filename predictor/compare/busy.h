// Busy machines: how much of a run's times others' work on its machines can have made, so that it
// is not told as a fault of the store.
//
// What others *take* from a run is at most the share that they have of a machine's processors; and
// at most the share of the time in which any process there waited for one, if the kernel says it:
// work of low priority may have all that a run leaves, and take nothing from it. Where that is f,
// what computes takes up to 1 / (1 - f) times as long. Work that comes in pieces, as a daemon's,
// may wait more often than that: twice as much more is excused, and of a single request or a wait
// kDelaySeconds besides. Less than kBusyShare is what any machine does by itself, and excuses
// nothing. What is off by more than that is held against the prediction with the rest.
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

// What others may have taken from the run, on the machine where that is most; and on a host's.
// 0: nothing, or it is not known.
double TakenShare(const SeenRun& run);
double TakenShareAt(const SeenRun& run, const std::string& host);
// By how much more on a host's machine than where it is least on others'.
double TakenShareBeside(const SeenRun& run, const std::string& host);

// The most that others had of the processors of a machine.
double OthersShare(const SeenRun& run);

// Takes off what others who took that share can have made of it. `predicted_place` is of logarithms
// of seconds, or of times; `delay_s` in the same unit.
JudgedRun WithoutOthers(const JudgedRun& run, double predicted_place, double taken_share,
                        double delay_s);

// Processor seconds of a run's tasks beside what the workload says; of those that are known.
struct OwnSeconds {
  size_t tasks = 0;
  double own_s = 0;  // Less what the kernel takes to start them and for their bytes.
  double said_s = 0;
  double more_s = 0;  // By which they took longer than predicted, by the clock.
  double times() const { return said_s > 0 ? own_s / said_s : 0; }
};
// `stage`: empty: all.
OwnSeconds OwnSecondsOf(const Workflow& workflow, const SeenRun& run,
                        const std::vector<double>& typical_s,
                        const std::vector<Duration>& computing, const std::string& stage);

// Whether they are longer than others' share explains, by half of what tasks took longer or more.
bool ComputeLonger(const OwnSeconds& own, double others_share);

// "Machine busy: ...", of those of these runs whose machines were; empty: none was.
std::string SayBusy(const std::vector<const SeenRun*>& runs);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_BUSY_H_
