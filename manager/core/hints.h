// What the hints of files come to: where each comes from, what is inherited, which wins. Pure.
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
  // With kDirectory: the directory's id in decimal digits, or nothing if that was not recorded.
  // With kRule: the rule's glob.
  std::string origin{};
  bool operator==(const Hint&) const = default;
};
// By name, without prefix. A file's hints are kept in one string, since most files of a directory
// share it. Besides the hints that people set there is "group", which SettleGroup adds.
using Hints = std::map<std::string, Hint, std::less<>>;
std::string EncodeHints(const Hints& hints);
// Anything that EncodeHints cannot have made is DataLoss. So is a value that today's limits refuse,
// unless `refused` is given: it is then left out, and named there.
Result<Hints> DecodeHints(std::string_view encoded, std::vector<HintValue>* refused = nullptr);

// What a file made in a directory with `hints` begins with; `directory` is the origin of what was
// set there.
Hints InheritedHints(const Hints& hints, std::string_view directory);
// Lays what a stronger source says over `hints`. A pattern there also takes the place of what it
// stands for.
void Overlay(Hints& hints, const Hints& stronger);
// Sets an own hint, as Overlay would.
void SetOwn(Hints& hints, std::string_view name, std::string value);
void EraseHint(Hints& hints, std::string_view name);
// Gives a file whose pattern is `reduce` without a group that of its directory.
void SettleGroup(Hints& hints, FileId directory);
// True if SettleGroup has something to do.
bool NeedsGroup(const Hints& hints);

// What hints come to. A hint that is set wins over what a pattern stands for, and that over the
// default.
struct EffectiveHints {
  std::string placement;
  uint64_t chunk_bytes = 0;
  uint64_t run_chunks = 1;  // Chunks in a row on one node.
  uint32_t stripe_width = 0;
  bool width_asked = false;  // By a hint: not the default.
  bool strict = false;
  bool may_be_inline = true;
  bool settles_placement = false;  // Hints alone say where the file goes.
  bool keep = false;               // Somebody said that it is to be kept.
  bool temporary = false;          // It goes at the end of its workflow.
  uint64_t readers = 0;            // It goes behind so many readers; 0: it does not.
  uint32_t replicas = 1;           // With the first copy; 0: auto.
  bool copied_eagerly = false;
  uint32_t close_copies = 1;  // A close waits for so many; 0: for all.

  // What a layout has for its chunk.
  uint64_t run_bytes() const { return chunk_bytes * run_chunks; }
};
struct HintDefaults {
  std::string placement;
  uint64_t chunk_bytes = 0;
  uint32_t stripe_width = 0;
};
EffectiveHints Evaluate(const Hints& hints, const HintDefaults& defaults);
// Every hint that there is, by name, with the origin as it stands in `hints`.
std::vector<ExplainedHint> Explain(const Hints& hints, const HintDefaults& defaults);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_HINTS_H_
