// Probe: one operation that is timed both on a real deployment and on a simulated one. The
// platform's figures are fitted to the difference.
//
// Each sample uses new files, so that nothing is cached from an earlier one. Two hosts are enough:
// the *actor*, whose operation is timed, and the *other*, which prepares the files it works on.
#ifndef MOSA_PREDICTOR_IDENTIFY_PROBE_H_
#define MOSA_PREDICTOR_IDENTIFY_PROBE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mosa::predict {

enum class ProbeKind : uint8_t {
  // Zero-byte operations.
  kStat,           // A name that the actor does not know yet: the other has just made it.
  kStatAgain,      // The same, with the name known: only the kernel's own time.
  kOpen,           // Open and close of a file that the other has made; its name is known.
  kOpenAgain,      // The same for a file of one byte whose content is known too.
  kMakeDirectory,  // A new directory.
  kSetAttribute,   // A hint on one of the actor's own directories.
  kGetAttribute,   // The layout of one of the actor's own files.
  kRemove,         // One of the actor's own files.
  // Open, transfer all bytes, close.
  kWrite,      // A new file.
  kRead,       // A file just written by the actor (kOwn, kOwnThroughMount) or by the other.
  kReadAgain,  // The same file, a second time.
};

// Where the bytes are.
enum class Where : uint8_t {
  kDefault,  // Where the store puts them: small files at the manager, large ones on all nodes.
  kOwn,      // On the actor's own node.
  kOwnThroughMount,  // The same, but the bytes pass through the mount, not only the kernel.
  kOther,            // On the other's node.
};

struct Probe {
  ProbeKind kind = ProbeKind::kStat;
  Where where = Where::kDefault;
  uint64_t bytes = 0;
  uint32_t at_once = 1;  // How many of these run at the same time, on the actor.
  bool operator==(const Probe&) const = default;
};

// "write 64 KiB to another host, 2 at once".
std::string ToText(const Probe& probe);
// The name of the kind between processes, and the reverse.
std::string_view NameOf(ProbeKind kind);
std::string_view NameOf(Where where);
std::optional<ProbeKind> ProbeKindOf(std::string_view name);
std::optional<Where> WhereOf(std::string_view name);

// What can be measured on a deployment.
struct ProbeScope {
  uint32_t hosts = 1;  // Usable hosts.
  bool hints = true;   // The store is Mosa: it takes hints and reports where bytes lie.
  // The kernel reads and writes objects of the own node without the mount.
  bool passthrough = true;
  uint64_t room_bytes = uint64_t{1} << 30;  // For one sample's files.
};

// Above this file size, links are the limit. Longer transfers tell no more than shorter ones.
inline constexpr uint64_t kStreamBytes = 64 << 20;

// Plans every probe that the scope allows, the most telling first. Loads and sizes vary, since
// figures of one size or load say nothing about others.
std::vector<Probe> PlanProbes(const ProbeScope& scope);

// Returns how many operations, one after the other, make a sample of about `sample_seconds` if one
// takes `seconds`. `room_bytes` limits them.
uint32_t RepeatsOf(const Probe& probe, double seconds, double sample_seconds, uint64_t room_bytes);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_PROBE_H_
