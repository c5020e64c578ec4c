// Random histories of what programs do through several mounts, one operation at a time, and the
// actions that each operation causes. The same history is done by real mounts and by simulated
// ones; what differs is decided in two ways.
#ifndef MOSA_TESTS_FIDELITY_HISTORIES_H_
#define MOSA_TESTS_FIDELITY_HISTORIES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/model/messages.h"
#include "common/model/ranges.h"
#include "predictor/model/configuration.h"
#include "predictor/run/observer.h"
#include "predictor/workflow/workflow.h"

namespace mosa::fidelity {

using predict::HintMap;

struct Operation {
  enum class Kind : uint8_t {
    kMakeDirectory,  // With hints.
    kPrepare,        // As the runner: the directory, and an empty file with hints.
    kWrite,          // Makes or replaces the whole file.
    kUpdate,         // Overwrites `range` of a file.
    kRead,           // Reads `parts`, from one open to one close.
    kRemove,
  };
  Kind kind = Kind::kWrite;
  uint32_t mount = 0;  // From 0.
  std::string path;    // Without a leading slash.
  ByteRange range;
  std::vector<ByteRange> parts;
  HintMap hints;
};
std::string ToText(const Operation& operation);

struct History {
  predict::Configuration configuration;
  std::vector<Operation> operations;
  // What a copy occupies is its node's affair, and is not compared.
  bool has_copies = false;
};
// The same for the same seed.
History RandomHistory(uint64_t seed, bool has_copies);
// The patterns of use that hints are for, by name, each with files of that size on so many hosts.
std::map<std::string, std::vector<Operation>> Patterns(uint32_t hosts, uint64_t size_bytes);

// What the kernel asked a mount for, or handed it.
struct KernelRequest {
  predict::Access access;
  ByteRange range;
};

// What one operation caused. The envelopes of each mount to the manager are in the order in which
// they were sent, except answers to recalls, which come beside all else. Requests to nodes run side
// by side: they are sorted. Not compared: what these answers say of open handles, how often a
// refused bind is repeated, and when releases are sent, which are counted.
struct Actions {
  std::vector<std::string> calls;
  size_t releases = 0;
  std::vector<std::string> nodes;
  std::vector<KernelRequest> kernel;  // The simulated mount says; the real one gets the same.
  bool failed = false;
  Duration took{};  // Simulated time, with the rest afterwards.
};
// Puts what has no order of its own into one.
void Sort(Actions& actions);
// One line for each of them, without the kernel's.
std::string ToText(const Actions& actions);

// Adds an envelope, or counts it.
void NoteCall(Actions& actions, bool has_copies, ClientId mount,
              const std::vector<Request>& requests);
// One line for a request to a node.
std::string NodeText(ClientId mount, predict::Access access, NodeId node, FileId file,
                     ByteRange range);

// Does the history, and returns what each operation caused, and last what came behind all of them.
std::vector<Actions> Simulate(const History& history);
// The same with real mounts. `simulated` says what the kernels do.
std::vector<Actions> Perform(const History& history, const std::vector<Actions>& simulated);

}  // namespace mosa::fidelity

#endif  // MOSA_TESTS_FIDELITY_HISTORIES_H_
