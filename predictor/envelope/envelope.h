// The envelope of a store (MTC Envelope, section 3): how many files it creates, opens, reads and
// writes per second, over file sizes and numbers of clients. Eight curves: operations per second of
// create and open, and operations and bytes per second of 1-to-1 reads (each client its own files),
// N-to-1 reads (all one file) and writes.
//
// Plain values; nothing of how it was measured. Pure.
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
  uint64_t size_bytes = 0;  // The size of each file; 0 where no bytes are moved.
  uint32_t clients = 1;     // At the same time.

  auto operator<=>(const EnvelopeCell&) const = default;
};

// ---- what is to be measured

// In every cell of the MTC Envelope paper, whatever the size and the number of clients.
inline constexpr uint64_t kEnvelopeFiles = 8192;
inline constexpr uint64_t kScaleOneMillionths = 1'000'000;

struct EnvelopeGrid {
  std::vector<uint64_t> sizes = {1 << 10, 128 << 10, 1 << 20, 16 << 20};
  std::vector<uint32_t> clients = {1, 2, 4, 8};
  uint64_t scale_millionths = kScaleOneMillionths;  // Scales kEnvelopeFiles.
  uint64_t bytes_max = 0;                           // Limits one cell's operations; 0: no limit.
};
// Each once, by operation, size and clients.
std::vector<EnvelopeCell> CellsOf(const EnvelopeGrid& grid);
// Operations of a cell: as many for each client, at least one.
uint64_t OperationsOf(const EnvelopeGrid& grid, const EnvelopeCell& cell);
// What the cell's files take: N-to-1 reads share one.
uint64_t StoredBytesOf(const EnvelopeGrid& grid, const EnvelopeCell& cell);

// ---- what was measured

// A median and the order statistics around it.
struct Estimate {
  double median = 0;
  double low = 0;
  double high = 0;
  double confidence = 0;  // That the true median lies within; 0 of one sample.
};
// The narrowest pair of order statistics that has 95 %, or the least and the greatest sample if
// there are too few for that. Precondition: not empty.
Estimate MedianOf(std::vector<double> samples);

// Rates of one kind of operation over sizes, at one number of clients.
class SizeCurve {
 public:
  void Add(uint64_t size_bytes, double operations_per_second) {
    rates_[size_bytes] = operations_per_second;
  }
  bool empty() const { return rates_.empty(); }

  // The most at any size.
  double PeakOperations() const;
  double PeakBytes() const;
  // Operations and bytes per second of files of that size: each linear in the size between measured
  // ones (MTC Envelope, section 4.3). Below the least a file is all operation, above the greatest
  // all bytes.
  double OperationsAt(uint64_t size_bytes) const;
  double BytesAt(uint64_t size_bytes) const;

 private:
  double Between(uint64_t size_bytes, bool bytes) const;
  std::map<uint64_t, double> rates_;  // Operations per second by size.
};

// An envelope at one number of clients.
struct EnvelopeScale {
  uint32_t clients = 1;  // Whose rates these are.
  double creates = 0;    // Per second, as `opens`.
  double opens = 0;
  SizeCurve reads, shared_reads, writes;

  const SizeCurve& curve(EnvelopeOperation operation) const;
};

struct Envelope {
  std::string name;                        // The store's.
  std::map<EnvelopeCell, Estimate> cells;  // Operations per second of all clients together.

  std::vector<uint32_t> clients() const;  // Sorted, as are sizes.
  std::vector<uint64_t> sizes() const;
  // Null if it was not measured.
  const Estimate* Find(const EnvelopeCell& cell) const;
  // Between measured numbers of clients rates are linear; of fewer than the fewest measured they
  // are those of the fewest. FailedPrecondition: it has fewer clients only, or lacks an operation
  // there.
  Result<EnvelopeScale> At(uint32_t clients) const;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ENVELOPE_ENVELOPE_H_
