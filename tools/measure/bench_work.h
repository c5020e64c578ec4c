// The work of a `mosa bench` task: writes bytes that follow from a name and their offset, reads
// them back and compares every one.
#ifndef MOSA_TOOLS_MEASURE_BENCH_WORK_H_
#define MOSA_TOOLS_MEASURE_BENCH_WORK_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace mosa::cli {

// The key of one sequence of bytes. Sequences of different content or seed differ nearly
// everywhere.
uint64_t ContentKey(std::string_view content, uint64_t seed);

// Word i (8 bytes, little-endian) is key + i * an odd constant: one addition per word, so that the
// machine is busy with the store and not with this. Detects bytes with another content or offset,
// unwritten bytes, and a flipped bit. Precondition: begin is a multiple of 8.
void FillContent(uint64_t key, uint64_t begin, std::span<std::byte> bytes);

struct Mismatch {
  uint64_t offset = 0;  // The first wrong word, from the begin of the content.
  uint64_t expected = 0;
  uint64_t found = 0;  // Words; at the end of the bytes, as many bytes as remain.
};
std::optional<Mismatch> FindMismatch(uint64_t key, uint64_t begin,
                                     std::span<const std::byte> bytes);

enum class Operation : uint8_t {
  kRead,    // Reads and compares; a whole file (begin 0) must not be longer.
  kWrite,   // Creates the file, and its directory if needed, or replaces its content.
  kUpdate,  // Writes a region of an existing file.
  kMake,    // Makes a directory and its parents.
  kRemove,  // Removes a file or directory with everything in it; an absent one is fine.
};

struct WorkStep {
  Operation operation = Operation::kRead;
  std::string content;
  uint64_t begin = 0;
  uint64_t bytes = 0;
  bool to_end = true;  // For a read: the file ends there.
  std::string path;
};

// "read:CONTENT:BEGIN:BYTES:PATH", where "part" instead of "read" says that the file continues
// beyond it; "write" and "update" likewise; "make:PATH", "remove:PATH".
std::string ToWord(const WorkStep& step);
Result<WorkStep> ParseWorkStep(const std::string& word);

// Does the steps in turn. Returns what was read and written, and the seconds of each. DataLoss
// names the file, the offset, and what was expected and found.
Result<nlohmann::json> DoWork(const std::vector<WorkStep>& steps, uint64_t seed);

// Does the steps that these words describe, with the host's name for every "{host}" in a path, and
// prints the result of DoWork().
Status RunWork(const std::vector<std::string>& words, uint64_t seed);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_WORK_H_
