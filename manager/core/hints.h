// Evaluates the hints of files: their sources, inheritance and precedence. Pure.
#ifndef MOSA_MANAGER_CORE_HINTS_H_
#define MOSA_MANAGER_CORE_HINTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/model/hint_values.h"
#include "common/model/hints.h"
#include "common/model/ids.h"

namespace mosa::manager {

struct Hint {
  std::string value;
  HintSource source = HintSource::kOwn;
  // kDirectory: the directory's id in decimal digits, or empty if it was not recorded. kRule: the
  // rule's glob.
  std::string origin{};
  bool operator==(const Hint&) const = default;
};
// Hints by name, without prefix. A file's hints are kept as one string, which most files of a
// directory share. Besides the hints that users set it can hold "group", which SettleGroup adds.
using Hints = std::map<std::string, Hint, std::less<>>;
std::string EncodeHints(const Hints& hints);
// DataLoss for anything that EncodeHints cannot have produced. A value that today's limits refuse
// is DataLoss too, unless `refused` is given: then it is left out and added there.
Result<Hints> DecodeHints(std::string_view encoded, std::vector<HintValue>* refused = nullptr);

// Returns the hints that a new file in a directory with `hints` starts with. `directory` becomes
// the origin of hints that were set there.
Hints InheritedHints(const Hints& hints, std::string_view directory);
// Puts the hints of a stronger source on top of `hints`. A pattern in `stronger` also replaces the
// hints that it stands for.
void Overlay(Hints& hints, const Hints& stronger);
// Sets an own hint, as Overlay would.
void SetOwn(Hints& hints, std::string_view name, std::string value);
void EraseHint(Hints& hints, std::string_view name);
// Gives a file with pattern `reduce` and no group its directory as group.
void SettleGroup(Hints& hints, FileId directory);
// Returns true if SettleGroup would change `hints`.
bool NeedsGroup(const Hints& hints);

// The result of all hints. An explicit hint beats what a pattern stands for, which beats the
// default.
struct EffectiveHints {
  std::string placement;
  uint64_t chunk_bytes = 0;
  uint64_t run_chunks = 1;  // Consecutive chunks on one node.
  uint32_t stripe_width = 0;
  bool width_asked = false;  // Set by a hint, not by default.
  bool strict = false;
  bool stream = false;  // Read while it is written.
  bool may_be_inline = true;
  bool settles_placement = false;  // The hints alone determine where the file goes.
  bool keep = false;               // A hint says that it is to be kept.
  bool temporary = false;          // Removed at the end of its workflow.
  uint64_t readers = 0;            // Removed after this many readers; 0: never.
  uint32_t replicas = 1;           // Including the first copy; 0: auto.
  bool copied_eagerly = false;
  uint32_t close_copies = 1;  // A close waits for this many copies; 0: for all.

  // The chunk size in the file's layout.
  uint64_t run_bytes() const { return chunk_bytes * run_chunks; }
};
struct HintDefaults {
  std::string placement;
  uint64_t chunk_bytes = 0;
  uint32_t stripe_width = 0;
};
EffectiveHints Evaluate(const Hints& hints, const HintDefaults& defaults);
// Returns every known hint, by name, with its origin in `hints`.
std::vector<ExplainedHint> Explain(const Hints& hints, const HintDefaults& defaults);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_HINTS_H_
