// The envelope of a store (MTC Envelope, section 3): how many files it creates, opens, reads and
// writes per second, over file sizes and numbers of clients. It has eight curves: operations per
// second of create and open, and operations and bytes per second of 1-to-1 reads (each client its
// own files), N-to-1 reads (all clients one file) and writes.
//
// Plain values, independent of how they were measured. Pure.
#ifndef MOSA_PREDICTOR_ENVELOPE_ENVELOPE_H_
#define MOSA_PREDICTOR_ENVELOPE_ENVELOPE_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace mosa::predict {

enum class EnvelopeOperation : uint8_t { kCreate = 1, kOpen, kRead, kSharedRead, kWrite };
inline constexpr std::array kEnvelopeOperations = {
    EnvelopeOperation::kCreate, EnvelopeOperation::kOpen, EnvelopeOperation::kRead,
    EnvelopeOperation::kSharedRead, EnvelopeOperation::kWrite};

constexpr bool MovesBytes(EnvelopeOperation operation) {
  return operation != EnvelopeOperation::kCreate && operation != EnvelopeOperation::kOpen;
}
// "create", "open", "1-to-1 read", "N-to-1 read", "write".
std::string_view NameOf(EnvelopeOperation operation);
std::optional<EnvelopeOperation> EnvelopeOperationOf(std::string_view name);

struct EnvelopeCell {
  EnvelopeOperation operation = EnvelopeOperation::kCreate;
  uint64_t size_bytes = 0;  // The size of each file; 0 where no bytes move.
  uint32_t clients = 1;     // Concurrent clients.

  auto operator<=>(const EnvelopeCell&) const = default;
};

// ---- what is to be measured

// The number of files in every cell of the MTC Envelope paper, for any size and number of clients.
inline constexpr uint64_t kEnvelopeFiles = 8192;
inline constexpr uint64_t kScaleOneMillionths = 1'000'000;

struct EnvelopeGrid {
  std::vector<uint64_t> sizes = {1 << 10, 128 << 10, 1 << 20, 16 << 20};
  std::vector<uint32_t> clients = {1, 2, 4, 8};
  uint64_t scale_millionths = kScaleOneMillionths;  // Scales kEnvelopeFiles.
  uint64_t bytes_max = 0;                           // Limits the bytes of one cell; 0: no limit.
};
// Each cell once, by operation, size and clients.
std::vector<EnvelopeCell> CellsOf(const EnvelopeGrid& grid);
// The number of operations in a cell: the same for each client, at least one.
uint64_t OperationsOf(const EnvelopeGrid& grid, const EnvelopeCell& cell);
// Space that the cell's files take. N-to-1 reads share one file.
uint64_t StoredBytesOf(const EnvelopeGrid& grid, const EnvelopeCell& cell);

// ---- what was measured

// A median with an interval of order statistics.
struct Estimate {
  double median = 0;
  double low = 0;
  double high = 0;
  double confidence = 0;  // Probability that the interval holds the true median; 0 for one sample.
};
// Takes the narrowest pair of order statistics with 95 % confidence, or the smallest and largest
// sample if there are too few. Precondition: not empty.
Estimate MedianOf(std::vector<double> samples);

// Rates of one kind of operation over file sizes, at one number of clients.
class SizeCurve {
 public:
  void Add(uint64_t size_bytes, double operations_per_second) {
    rates_[size_bytes] = operations_per_second;
  }
  bool empty() const { return rates_.empty(); }

  // The highest rate at any size.
  double PeakOperations() const;
  double PeakBytes() const;
  // Operations and bytes per second at that size. Each is linear in the size between measured sizes
  // (MTC Envelope, section 4.3). Below the smallest, time per operation is constant; above the
  // largest, bytes per second are.
  double OperationsAt(uint64_t size_bytes) const;
  double BytesAt(uint64_t size_bytes) const;

 private:
  double Between(uint64_t size_bytes, bool bytes) const;
  std::map<uint64_t, double> rates_;  // Operations per second by size.
};

// An envelope at one number of clients.
struct EnvelopeScale {
  uint32_t clients = 1;  // The number of clients that these rates hold for.
  double creates = 0;    // Per second, like `opens`.
  double opens = 0;
  SizeCurve reads, shared_reads, writes;

  const SizeCurve& curve(EnvelopeOperation operation) const;
};

struct Envelope {
  std::string name;                        // Name of the store.
  std::map<EnvelopeCell, Estimate> cells;  // Operations per second of all clients together.

  std::vector<uint32_t> clients() const;  // Sorted, like sizes().
  std::vector<uint64_t> sizes() const;
  // Returns null if the cell was not measured.
  const Estimate* Find(const EnvelopeCell& cell) const;
  // Interpolates linearly between measured numbers of clients. Below the fewest measured, returns
  // the rates of those. FailedPrecondition: only fewer clients were measured, or an operation is
  // missing.
  Result<EnvelopeScale> At(uint32_t clients) const;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ENVELOPE_ENVELOPE_H_
