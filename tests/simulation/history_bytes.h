// The bytes that programs write in a history.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_BYTES_H_
#define MOSA_TESTS_SIMULATION_HISTORY_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/simulation/virtual_threads.h"

namespace mosa::simulation {

// So many bytes of one write are nowhere else.
inline constexpr size_t kUniqueBytes = 8 << 10;

// The bytes of the `write`-th write; none is 0.
std::string BytesOf(uint64_t write, uint64_t length);
// How much a program writes or reads.
uint64_t LengthOf(Rng& rng);
// How far behind a file's end something is written.
uint64_t GapOf(Rng& rng);
// Describes how what was read differs.
std::string Difference(const std::string& right, const std::string& read);

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_BYTES_H_
