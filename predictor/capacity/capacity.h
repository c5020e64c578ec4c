// The capacity of a store (Fighting with Unknowns). From the rates of pure reads and pure writes at
// each I/O size, it derives the rates at any share of reads and any mix of sizes.
//
// The claim: for each I/O size a store has a constant amount of work to give per second, whatever
// the share of reads: C = T_read + T_write * f_rw (equations 1 to 3), with f_rw = T_100%read /
// T_100%write (4). Hence T_read = k * R_read with k = T_100%read / (R_read + (100 - R_read) * f_rw)
// (5, 6), and for several sizes T = 100 * sum of P_i * k_i (7).
//
// As printed, P_i is the proportion of objects that have size i. But (7) adds up rates, so P_i must
// be the share of the store's time that a size gets, which is not the same. If all clients do
// operations in turn, size i gets (p_i / T_i) / sum of (p_j / T_j), since one operation takes 1/T
// of the store's second. (7) then becomes T = 1 / sum of (p_i / T_i). This correction is used here
// for shares of operations; EquationSeven() is the printed form. Shares of clients get the store's
// time in proportion to their number.
//
// Plain values, independent of how they were measured. Pure.
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

// One I/O size, in operations per second. Percentages of reads are at most 100: MakeLoad() checks.
class SizeCapacity {
 public:
  // Precondition: reads > 0, writes > 0.
  SizeCapacity(double reads, double writes)
      : read_write_factor_(reads / writes), constants_{{0, reads}, {100, reads}} {}

  double read_write_factor() const { return read_write_factor_; }  // f_rw.
  // C of measured rates (equation 3).
  double ConstantOf(const OperationRates& rates) const {
    return rates.reads + rates.writes * read_write_factor_;
  }
  // Sets C at a ratio where it differs from that of pure reads. C is linear between such ratios.
  void Resample(uint32_t read_percent, double constant) { constants_[read_percent] = constant; }
  double ConstantAt(uint32_t read_percent) const;
  // C over the samples of one load.
  Estimate ConstantOf(const std::vector<OperationRates>& samples) const;
  // Reads and writes together (equation 6).
  double OperationsAt(uint32_t read_percent) const;

 private:
  double read_write_factor_;
  std::map<uint32_t, double> constants_;  // By percentage of reads.
};
using SizeCapacities = std::map<uint64_t, SizeCapacity>;

// Equation 6, and 7 corrected as above. Precondition: `sizes` has every size of the load.
OperationRates EstimateRates(const SizeCapacities& sizes, const CapacityLoad& load);
// Equation 7 as printed, whatever the shares refer to. Operations per second.
double EquationSeven(const SizeCapacities& sizes, const CapacityLoad& load);
double BytesPerSecond(const CapacityLoad& load, const SizeCapacities& sizes);

// Equation 8, in per cent.
double ErrorPercent(double estimated, double measured);

// Measured rates of a store. Each load has at least one sample; samples are in the order in which
// they were taken.
struct Capacity {
  std::string name;
  uint32_t clients = 0;  // On all hosts together; 0: not known.
  std::map<CapacityLoad, std::vector<OperationRates>> samples;

  // Sizes with both seeds, sorted.
  std::vector<uint64_t> seeded_sizes() const;
  // Returns null if the load was not measured.
  const std::vector<OperationRates>* Find(const CapacityLoad& load) const;
};

// The model of a store, with the uncertainty of its seeds.
struct CapacityModel {
  SizeCapacities median;
  SizeCapacities low, high;  // From the lower and upper ends of both seeds' intervals.

  // Operations per second. NotFound names a size without seeds and says what to do.
  Result<Estimate> Operations(const CapacityLoad& load) const;
};
// `resampled`: takes C from every measured ratio, not from 100 % reads alone.
CapacityModel ModelOf(const Capacity& capacity, bool resampled);
// Reads and writes of a load's samples together.
Estimate MeasuredOperations(const std::vector<OperationRates>& samples);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_CAPACITY_CAPACITY_H_
