#include "manager/core/file_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/utf8.h"

namespace mosa::manager {
namespace {

constexpr size_t kReasonBytesMax = 1000;

}  // namespace

std::string JsonText(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t size = FirstCharacterBytes(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (first == '"' || first == '\\') {
      quoted += '\\';
      quoted += text[0];
    } else if (size == 0 || first < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(first));
    } else {
      quoted += text.substr(0, size);
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return quoted + '"';
}

HintDefaults FileHints::Defaults() const {
  return {cluster_.options.default_placement, cluster_.options.chunk_bytes,
          cluster_.options.stripe_width};
}

const EffectiveHints& FileHints::HintsOf(const Inode& inode) const {
  const std::string& text = texts_.TextOf(inode.hints);
  KnownHints& known = known_hints_[inode.hints % known_hints_.size()];
  if (!known.hints || known.text != text) known = {text, Evaluate(DecodedHints(inode), Defaults())};
  return *known.hints;
}

uint64_t FileHints::RunChunksOf(const Inode& inode) const {
  const uint64_t run_chunks = HintsOf(inode).run_chunks;
  if (!inode.bytes || inode.bytes->segments.empty()) return run_chunks;
  // A file bound before it had runs keeps its chunk size, whatever its hint says.
  const uint64_t run_bytes = inode.bytes->chunk_bytes;
  return run_bytes % run_chunks == 0 && run_bytes / run_chunks >= kChunkBytesMin ? run_chunks : 1;
}

void FileHints::SetReason(FileBytes& bytes, std::string_view reason) {
  const uint32_t held = texts_.HoldIfRoom(reason.substr(0, kReasonBytesMax), 0);
  texts_.Drop(bytes.reason);
  bytes.reason = held;
}

Layout FileHints::LayoutOf(const Inode& inode) const {
  Layout layout;
  if (inode.bytes && !inode.bytes->segments.empty()) {
    layout.chunk_bytes = inode.bytes->chunk_bytes;
    layout.segments = inode.bytes->segments;
    layout.reason = texts_.TextOf(inode.bytes->reason);
  } else {
    layout.chunk_bytes = HintsOf(inode).run_bytes();
  }
  return layout;
}

Hints FileHints::HintsAtMake(FileId parent, std::string_view name, FileType type,
                             uint32_t maker) const {
  if (type != FileType::kRegular && type != FileType::kDirectory) return {};
  Hints hints = InheritedHints(DecodedHints(*files_.Find(parent)), std::to_string(parent.value));
  if (!rules_.empty())
    Overlay(hints, rules_.For(fmt::format("{}/{}", files_.PathOf(parent), name), maker));
  if (type == FileType::kRegular) SettleGroup(hints, parent);
  return hints;
}

Hints FileHints::HintsOfMake(const MakeRequest& request, const Hints& left) const {
  Hints hints = HintsAtMake(request.parent, request.name, request.type, request.uid);
  Overlay(hints, left);
  for (const HintValue& hint : request.hints) SetOwn(hints, hint.name, hint.value);
  if (request.type == FileType::kRegular) SettleGroup(hints, request.parent);
  return hints;
}

std::vector<ExplainedHint> FileHints::ExplainedHintsOf(const Inode& inode) const {
  std::vector<ExplainedHint> hints = Explain(DecodedHints(inode), Defaults());
  if (inode.bytes && !inode.bytes->segments.empty()) {
    // A file that is laid out keeps its chunk size; the current default does not matter.
    const uint64_t chunk_bytes = inode.bytes->chunk_bytes / RunChunksOf(inode);
    for (ExplainedHint& hint : hints)
      if (hint.name == "chunk_size") hint.value = std::to_string(chunk_bytes);
  }
  if (inode.type == FileType::kRegular)
    NoteAutoCopies(hints, inode.size_bytes > 0 ? std::optional(inode.size_bytes) : std::nullopt);
  NameOrigins(hints);
  return hints;
}

void FileHints::NoteAutoCopies(std::vector<ExplainedHint>& hints,
                               std::optional<uint64_t> size_bytes) const {
  for (ExplainedHint& hint : hints)
    if (hint.name == "replicas" && hint.value == "auto")
      hint.note =
          ToText(ChooseCopies(cluster_.copies_forecast, nodes_.CountStayingNodes(), size_bytes));
}

// Directories are recorded by id, since they may be renamed.
void FileHints::NameOrigins(std::vector<ExplainedHint>& hints) const {
  for (ExplainedHint& hint : hints) {
    if (hint.source != HintSource::kDirectory || hint.origin.starts_with('/')) continue;
    const FileId directory(hint.origin.empty() ? 0 : std::stoull(hint.origin));
    if (directory == kRootFile) {
      hint.origin = "/";
    } else {
      hint.origin =
          files_.FindDirectory(directory) ? files_.PathOf(directory) : "a directory that is gone";
    }
  }
}

std::string_view FileHints::GroupOf(const Inode& inode) const {
  if (!inode.bytes || inode.bytes->segments.empty()) return {};
  return GroupIn(HintsOf(inode).placement);
}

Hints FileHints::DecodedHints(const Inode& inode) const {
  if (inode.hints == 0) return {};
  auto hints = DecodeHints(texts_.TextOf(inode.hints));
  MOSA_CHECK(hints.ok());
  return *std::move(hints);
}

std::string FileHints::HintsJsonOf(const Inode& inode) const {
  std::string text;
  for (const ExplainedHint& hint : ExplainedHintsOf(inode)) {
    text += fmt::format("{}{}:{{\"value\":{},\"source\":\"{}\"", text.empty() ? "{" : ",",
                        JsonText(hint.name), JsonText(hint.value), ToText(hint.source));
    if (!hint.origin.empty()) text += fmt::format(",\"origin\":{}", JsonText(hint.origin));
    if (!hint.note.empty()) text += fmt::format(",\"note\":{}", JsonText(hint.note));
    text += "}";
  }
  return text + "}";
}

bool FileHints::IsEffective(const Inode& inode, std::string_view hint,
                            const std::string& value) const {
  const std::vector<ExplainedHint> hints = ExplainedHintsOf(inode);
  return std::any_of(hints.begin(), hints.end(), [&](const ExplainedHint& known) {
    return known.name == hint && known.value == value;
  });
}

}  // namespace mosa::manager
