// SumsRecord: what a node stores about an object beside it, so that its checksums survive the
// process. Pure.
//
// A log is a sequence of records: length and CRC-32C of the rest, then the file's id and one of:
// the object's size with the checksums of all nonzero blocks; that nothing is known; that the
// object is damaged until all of it is rewritten. An object's last such record counts. The
// checksums are written when the object is sealed, and "nothing known" before the first change
// afterwards. A separate record gives the layout generation of a change, before the change is made.
#ifndef MOSA_STORAGE_NODE_CORE_SUMS_RECORD_H_
#define MOSA_STORAGE_NODE_CORE_SUMS_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/ids.h"
#include "storage-node/core/checksum_table.h"

namespace mosa::node {

struct SumsRecord {
  bool damaged = false;  // No byte of the object can be trusted; the other fields are empty.
  uint64_t size_bytes = 0;
  std::vector<KnownSum> sums;  // Ascending.
  bool operator==(const SumsRecord&) const = default;
};

// Maximum checksums in one record. Larger objects (above 256 GiB) are summed again instead.
inline constexpr size_t kSumsPerRecordMax = size_t{1} << 22;

// Precondition: at most kSumsPerRecordMax sums.
std::string EncodeSums(FileId file, const SumsRecord& record);
// Nothing is known of the object any more, except its generation.
std::string EncodeForgotten(FileId file);
// The highest layout generation that has changed the object; 0: the object is gone.
std::string EncodeGeneration(FileId file, uint64_t generation);
inline constexpr uint64_t kGenerationRecordBytes = 32;

struct SumsFound {
  std::map<FileId, SumsRecord> records;
  std::map<FileId, uint64_t> generations;
};

enum class SumsLogEnd : uint8_t {
  kWhole,    // Every byte belongs to a record.
  kTorn,     // The last record is incomplete, as a crash of the process leaves it.
  kDamaged,  // There is something else; what follows it is not read.
};
// Reads records from the start of `bytes` into `found`. Later ones replace earlier ones.
SumsLogEnd ReadSums(std::string_view bytes, SumsFound& found);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_SUMS_RECORD_H_
