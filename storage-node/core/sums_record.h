// SumsRecord: what a node keeps of an object beside it, so that its checksums outlive the process.
//
// A log is a sequence of records: length and CRC-32C of what follows, then the file's id and either
// the object's size with the checksums of all its blocks that are not zeroes, or that nothing is
// known of it any more. The last record of an object counts. A record is written when the object is
// sealed, and "nothing" before the first change afterwards; or that the object is damaged, until
// all of it was written anew. A record of its own says by which layout generation an object was
// changed, before it is. Pure.
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
  bool damaged = false;  // Nothing else is said: no byte of the object can be believed.
  uint64_t size_bytes = 0;
  std::vector<KnownSum> sums;  // Ascending.
  bool operator==(const SumsRecord&) const = default;
};

// Larger records are not written: their objects, of more than 256 GiB, are summed anew.
inline constexpr size_t kSumsPerRecordMax = size_t{1} << 22;

// Precondition: at most kSumsPerRecordMax sums.
std::string EncodeSums(FileId file, const SumsRecord& record);
// Nothing is known of the object any more, but its generation.
std::string EncodeForgotten(FileId file);
// The highest layout generation that has changed the object; 0: there is no object any more.
std::string EncodeGeneration(FileId file, uint64_t generation);
inline constexpr uint64_t kGenerationRecordBytes = 32;

struct SumsFound {
  std::map<FileId, SumsRecord> records;
  std::map<FileId, uint64_t> generations;
};

enum class SumsLogEnd : uint8_t {
  kWhole,    // Every byte belongs to a record.
  kTorn,     // The last record is incomplete, as the end of a process leaves it.
  kDamaged,  // Something else is there: what is behind it is not read.
};
// Reads records from the front of `bytes` into `found`, later ones in the place of earlier ones.
SumsLogEnd ReadSums(std::string_view bytes, SumsFound& found);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_SUMS_RECORD_H_
