// What a task of `mosa bench` does: writes bytes that follow from a name and their offset, and
// reads them back, every one compared.
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

// Names one sequence of bytes; two of different content or seed differ nearly everywhere.
uint64_t ContentKey(std::string_view content, uint64_t seed);

// Word i (8 bytes, little end first) is key + i * an odd constant: an addition per word, so that
// the machine is busy with the store and not with this. Bytes of another content, from another
// offset, of nobody or with a bit turned do not pass. Precondition: begin is a multiple of 8.
void FillContent(uint64_t key, uint64_t begin, std::span<std::byte> bytes);

struct Mismatch {
  uint64_t offset = 0;  // The first word that is wrong, from the content's beginning.
  uint64_t expected = 0;
  uint64_t found = 0;  // Words; where the bytes end, as many bytes as there are.
};
std::optional<Mismatch> FindMismatch(uint64_t key, uint64_t begin,
                                     std::span<const std::byte> bytes);

enum class Operation : uint8_t {
  kRead,    // Reads and compares; a whole file (begin 0) must not be longer.
  kWrite,   // Makes the file, with its directory if need be, or replaces what is in it.
  kUpdate,  // Writes a region of a file that is there.
  kMake,    // Makes a directory with those above it.
  kRemove,  // Removes a file or directory with all that is in it; nothing to remove is fine.
};

struct WorkStep {
  Operation operation = Operation::kRead;
  std::string content;
  uint64_t begin = 0;
  uint64_t bytes = 0;
  bool to_end = true;  // For a read: the file ends there.
  std::string path;
};

// "read:CONTENT:BEGIN:BYTES:PATH", where "part" instead of "read" says that the file goes on
// behind; "write" and "update" likewise; "make:PATH", "remove:PATH".
std::string ToWord(const WorkStep& step);
Result<WorkStep> ParseWorkStep(const std::string& word);

// Does the steps in turn. What was read and written, and the seconds of each. DataLoss names file,
// offset, what was expected and found.
Result<nlohmann::json> DoWork(const std::vector<WorkStep>& steps, uint64_t seed);

// Does the steps that these words say, with the host's name for every "{host}" in a path, and
// prints what DoWork() says.
Status RunWork(const std::vector<std::string>& words, uint64_t seed);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_WORK_H_
