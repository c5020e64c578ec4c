// Probe: one thing that is timed on a real deployment and, the same, on a simulated one. What a
// platform's figures are is read off the difference.
//
// All files are new for each sample, so that nothing is remembered of an earlier one. Two hosts are
// enough: the *actor*, whose operation is timed, and the *other*, which readies what it works on.
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
  kStat,           // A name that the actor does not know: the other has just made it.
  kStatAgain,      // The same, known: no more than the kernel's own time.
  kOpen,           // Open and close of such a file whose name is known.
  kOpenAgain,      // The same for a file of one byte whose content is known too.
  kMakeDirectory,  //
  kSetAttribute,   // A hint of a directory of the actor's own.
  kGetAttribute,   // The layout of a file of the actor's own.
  kRemove,         // A file of the actor's own.
  // Open, all bytes, close.
  kWrite,      // A new file.
  kRead,       // What the actor (kOwn, kOwnThroughMount) or the other has just written.
  kReadAgain,  // The same, once more.
};

// Where the bytes are.
enum class Where : uint8_t {
  kDefault,  // Where the store puts them: small ones at the manager, large ones on all nodes.
  kOwn,      // On the actor's own node.
  kOwnThroughMount,  // The same, but the mount carries them, not the kernel alone.
  kOther,            // On the other's node.
};

struct Probe {
  ProbeKind kind = ProbeKind::kStat;
  Where where = Where::kDefault;
  uint64_t bytes = 0;
  uint32_t at_once = 1;  // So many do it at the same time, on the actor.
  bool operator==(const Probe&) const = default;
};

// "write 64 KiB to another host, 2 at once".
std::string ToText(const Probe& probe);
// How such a kind is called between processes, and back.
std::string_view NameOf(ProbeKind kind);
std::string_view NameOf(Where where);
std::optional<ProbeKind> ProbeKindOf(std::string_view name);
std::optional<Where> WhereOf(std::string_view name);

// What there is to be measured.
struct ProbeScope {
  uint32_t hosts = 1;       // That can be worked on.
  bool hints = true;        // The store takes hints and says where bytes are: it is Mosa.
  bool passthrough = true;  // Its kernels read and write objects of the own node by themselves.
  uint64_t room_bytes = uint64_t{1} << 30;  // For one sample's files.
};

// With files of so many bytes or more, those that take long tell no more than shorter ones: links
// are their limit.
inline constexpr uint64_t kStreamBytes = 64 << 20;

// All that can be told on it, the most telling first. Loads and sizes vary: figures of one size, or
// one load, say nothing of others.
std::vector<Probe> PlanProbes(const ProbeScope& scope);

// How many operations one after the other make one sample of about `sample_seconds`, if one takes
// `seconds`; at most what has room.
uint32_t RepeatsOf(const Probe& probe, double seconds, double sample_seconds, uint64_t room_bytes);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_PROBE_H_
