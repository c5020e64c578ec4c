// The capacity of a store (Fighting with Unknowns): from the operations per second of only reads
// and of only writes of each I/O size, those of any share of reads and any mix of sizes.
//
// The claim: a store has so much work to give per second and I/O size, whatever the share of reads:
// C = T_read + T_write * f_rw is constant (equations 1 to 3), with f_rw = T_100%read / T_100%write
// (4). Hence T_read = k * R_read with k = T_100%read / (R_read + (100 - R_read) * f_rw) (5, 6), and
// for several sizes T = 100 * sum of P_i * k_i (7).
//
// As printed, P_i is the proportion of the objects that have size i. But (7) adds up rates, so P_i
// must be the share of the store's time that a size gets, and those are not the same: if all
// clients do operations in turn, size i gets (p_i / T_i) / sum of (p_j / T_j), since one of them
// takes 1/T of the store's second. With that (7) is T = 1 / sum of (p_i / T_i), a correction of the
// paper's that is used for shares of operations here; EquationSeven() is what is printed. Shares
// of clients are taken to get the store's time by their number.
//
// Plain values; nothing of how it was measured. Pure.
#ifndef MOSA_PREDICTOR_CAPACITY_CAPACITY_H_
#define MOSA_PREDICTOR_CAPACITY_CAPACITY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/capacity/load.h"
#include "predictor/envelope/envelope.h"

namespace mosa::predict {

// Operations per second.
struct OperationRates {
  double reads = 0;
  double writes = 0;

  double all() const { return reads + writes; }
};

// One I/O size, in operations per second.
class SizeCapacity {
 public:
  // Both above 0.
  SizeCapacity(double reads, double writes)
      : read_write_factor_(reads / writes), constants_{{0, reads}, {100, reads}} {}

  double read_write_factor() const { return read_write_factor_; }  // f_rw.
  // C of what was measured (equation 3).
  double ConstantOf(const OperationRates& rates) const {
    return rates.reads + rates.writes * read_write_factor_;
  }
  // C where that is not as of only reads: between such ratios it is linear.
  void Resample(uint32_t read_percent, double constant) { constants_[read_percent] = constant; }
  double ConstantAt(uint32_t read_percent) const;
  // C of the samples of one load.
  Estimate ConstantOf(const std::vector<OperationRates>& samples) const;
  // Reads and writes together (equation 6).
  double OperationsAt(uint32_t read_percent) const;

 private:
  double read_write_factor_;
  std::map<uint32_t, double> constants_;  // By the share of reads.
};
using SizeCapacities = std::map<uint64_t, SizeCapacity>;

// Equations 6 and 7, this corrected as above. Precondition: all sizes of the load are there.
OperationRates EstimateRates(const SizeCapacities& sizes, const CapacityLoad& load);
// Equation 7 as printed, whatever the shares are of. Operations per second.
double EquationSeven(const SizeCapacities& sizes, const CapacityLoad& load);
double BytesPerSecond(const CapacityLoad& load, const SizeCapacities& sizes);

// Equation 8, in per cent.
double ErrorPercent(double estimated, double measured);

// What was measured of a store. At least one sample per load, in the order in which they were
// taken.
struct Capacity {
  std::string name;
  uint32_t clients = 0;  // On all hosts together; 0: not known.
  std::map<CapacityLoad, std::vector<OperationRates>> samples;

  // Those with both seeds, sorted.
  std::vector<uint64_t> seeded_sizes() const;
  // Null if it was not measured.
  const std::vector<OperationRates>* Find(const CapacityLoad& load) const;
};

// The model of a store, and how well its seeds are known.
struct CapacityModel {
  SizeCapacities median;
  SizeCapacities low, high;  // From the least and the greatest of both seeds' intervals.

  // Operations per second. NotFound names a size without seeds and what to do.
  Result<Estimate> Operations(const CapacityLoad& load) const;
};
// `resampled`: with C of every ratio that was measured, not of 100 % reads alone.
CapacityModel ModelOf(const Capacity& capacity, bool resampled);
// All operations of a load's samples.
Estimate MeasuredOperations(const std::vector<OperationRates>& samples);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_CAPACITY_CAPACITY_H_
