// Hints: what files were tagged with, what follows from it, and what new files get from directories
// and rules.
#ifndef MOSA_MANAGER_CORE_FILE_HINTS_H_
#define MOSA_MANAGER_CORE_FILE_HINTS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manager/core/cluster.h"
#include "manager/core/file_table.h"
#include "manager/core/hint_rules.h"
#include "manager/core/hints.h"
#include "manager/core/node_table.h"
#include "manager/core/state_types.h"
#include "manager/core/text_pool.h"

namespace mosa::manager {

// Quotes text for JSON. A byte that is not UTF-8 becomes the character with that code point.
std::string JsonText(std::string_view text);

class FileHints {
 public:
  FileHints(Cluster& cluster, FileTable& files, NodeTable& nodes, HintRules& rules, TextPool& texts)
      : cluster_(cluster), files_(files), nodes_(nodes), rules_(rules), texts_(texts) {}

  HintDefaults Defaults() const;
  const EffectiveHints& HintsOf(const Inode& inode) const;  // Valid until the next call.
  // Chunks of the file's own size in one chunk of its layout.
  uint64_t RunChunksOf(const Inode& inode) const;
  void SetReason(FileBytes& bytes, std::string_view reason);
  Layout LayoutOf(const Inode& inode) const;
  // As HintsAtMake, with the request's own hints on top. Precondition: CheckMake accepted the
  // request.
  // `left`: own hints that an earlier file left to this name.
  Hints HintsOfMake(const MakeRequest& request, const Hints& left) const;
  std::vector<ExplainedHint> ExplainedHintsOf(const Inode& inode) const;
  // For replicas=auto, adds how many copies a file of this size gets.
  void NoteAutoCopies(std::vector<ExplainedHint>& hints, std::optional<uint64_t> size_bytes) const;
  void NameOrigins(std::vector<ExplainedHint>& hints) const;
  // The group of a bound file; empty if it has none. Valid until the next call of HintsOf.
  std::string_view GroupOf(const Inode& inode) const;
  Hints DecodedHints(const Inode& inode) const;
  std::string HintsJsonOf(const Inode& inode) const;
  bool IsEffective(const Inode& inode, std::string_view hint, const std::string& value) const;

 private:
  Hints HintsAtMake(FileId parent, std::string_view name, FileType type, uint32_t maker) const;

  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  HintRules& rules_;
  TextPool& texts_;
  // Parsed hints by text number. Most files share a few texts.
  struct KnownHints {
    std::string text;
    std::optional<EffectiveHints> hints;
  };
  mutable std::array<KnownHints, 64> known_hints_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_FILE_HINTS_H_
