#include "manager/core/xattrs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace mosa::manager {
namespace {

constexpr size_t kAttributeNameBytesMax = 255;

Failure NoAttribute(FileId file, std::string_view name) {
  return Refuse(StatusCode::kNotFound, ErrorReason::kNoAttribute,
                fmt::format("file {} has no attribute '{}'", file.value, name));
}

// Returns true if the hint was set, that is, it is not the default.
bool HasHint(const std::vector<ExplainedHint>& hints, std::string_view name) {
  return std::any_of(hints.begin(), hints.end(), [&](const ExplainedHint& hint) {
    return hint.name == name && hint.source != HintSource::kDefault;
  });
}

// Checks an attribute's name, before the request is examined further.
std::optional<Failure> CheckAttribute(FileId file, const Inode* inode, std::string_view name) {
  if (!inode)
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} is gone", file.value));
  if (name.size() > kAttributeNameBytesMax)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kRange,
                  fmt::format("an attribute name of {} bytes exceeds the maximum of {}",
                              name.size(), kAttributeNameBytesMax));
  const AttributeName known = ClassifyAttribute(name);
  if (known.kind == AttributeKind::kUnsupported || name.find('\0') != std::string_view::npos)
    return Refuse(StatusCode::kUnimplemented, ErrorReason::kUnsupported,
                  fmt::format("attribute '{}' is not supported: only user.* attributes are", name));
  if (known.kind == AttributeKind::kUnknownHint)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  MessageOf(ParseHint(known.hint, false, "").status()));
  return std::nullopt;
}

}  // namespace

void Xattrs::StoreHints(FileId file, Inode& inode, const Hints& hints) {
  const uint32_t held = texts_.Hold(EncodeHints(hints), inode.uid);
  texts_.Drop(inode.hints);
  inode.hints = held;
  lifetimes_.Follow(file, inode, {});
  inode.change_time = step_.now;
  step_.Touch(file);
  copy_queue_.ReviewLater(file, inode);
}

Reply Xattrs::Apply(const GetXattrRequest& request) {
  const Inode* inode = files_.Find(request.file);
  if (auto failure = CheckAttribute(request.file, inode, request.name)) return *std::move(failure);
  const AttributeName name = ClassifyAttribute(request.name);
  if (name.kind == AttributeKind::kReadOnly)
    return ReadOnlyAttribute(request.file, *inode, name.hint);
  if (name.kind == AttributeKind::kHint) {
    for (const ExplainedHint& hint : hints_.ExplainedHintsOf(*inode)) {
      if (hint.name != name.hint || hint.source == HintSource::kDefault) continue;
      return GetXattrReply{name.alias ? AliasValue(name.hint, hint.value) : hint.value};
    }
    return NoAttribute(request.file, request.name);
  }
  if (const auto file = files_.xattrs.find(request.file); file != files_.xattrs.end()) {
    if (const auto found = file->second.values().find(request.name);
        found != file->second.values().end())
      return GetXattrReply{found->second};
  }
  return NoAttribute(request.file, request.name);
}

Reply Xattrs::Apply(const ListXattrsRequest& request) {
  if (!files_.Find(request.file))
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} is gone", request.file.value));
  ListXattrsReply reply;
  if (const auto file = files_.xattrs.find(request.file); file != files_.xattrs.end()) {
    for (const auto& [name, value] : file->second.values()) reply.names.push_back(name);
  }
  return reply;
}

Reply Xattrs::ReadOnlyAttribute(FileId file, const Inode& inode, std::string_view name) const {
  const auto bounded = [&](std::string text) -> Reply {
    if (text.size() <= kAttributeValueBytesMax) return GetXattrReply{std::move(text)};
    return Refuse(
        StatusCode::kResourceExhausted, ErrorReason::kArgumentTooBig,
        fmt::format("the attribute '{}' of this file has {} bytes, but at most {} are allowed",
                    name, text.size(), kAttributeValueBytesMax));
  };
  if (name == "hints") return bounded(hints_.HintsJsonOf(inode));
  if (inode.type != FileType::kRegular)
    return Refuse(StatusCode::kNotFound, ErrorReason::kNoAttribute,
                  fmt::format("only regular files have the attribute '{}'", name));
  if (name == "location")
    return bounded(fmt::format("{}", fmt::join(copy_view_.NodeNamesOf(inode), ",")));
  if (name == "layout") return bounded(LayoutJsonOf(file, inode));
  auto chunks = copy_view_.ChunkLocationsOf(inode);
  if (!chunks.ok())
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kArgumentTooBig,
                  MessageOf(chunks.status()));
  return GetXattrReply{*std::move(chunks)};
}

// Describes the copies beyond the first, if any are wanted or exist.
std::string Xattrs::CopiesJsonOf(FileId file, const Inode& inode) const {
  const FileStatus status = file_view_.StatusOf(file, inode, "");
  const EffectiveHints hints = hints_.HintsOf(inode);
  const std::string automatic =
      hints.replicas != 0
          ? ""
          : fmt::format(",\"auto\":{}",
                        JsonText(ToText(copy_planner_.ChooseCopiesOf(file, inode, hints))));
  if (status.copies_wanted == 1 && status.copies.empty()) return automatic;
  constexpr std::array<std::string_view, 4> kStates = {"valid", "copying", "waiting", "failed"};
  std::string copies;
  for (const CopyStatus& copy : status.copies) {
    copies += fmt::format("{}{{\"node\":{},\"state\":\"{}\",\"copied_bytes\":{}",
                          copies.empty() ? "" : ",", JsonText(nodes_.NameOf(copy.node)),
                          kStates.at(static_cast<size_t>(copy.state) - 1), copy.copied_bytes);
    copies += copy.why.empty() ? "}" : fmt::format(",\"why\":{}}}", JsonText(copy.why));
  }
  return fmt::format("{},\"copies\":[{}],\"missing\":{}", automatic, copies,
                     JsonText(status.copies_missing));
}

std::string Xattrs::LayoutJsonOf(FileId file, const Inode& inode) const {
  const Layout layout = hints_.LayoutOf(inode);
  std::string segments, nodes;
  for (const NodeId node : layout.Nodes())
    nodes += (nodes.empty() ? "" : ",") + JsonText(nodes_.NameOf(node));
  // Schedulers look here: a copy that can be read is as good as the first one.
  for (const Segment& segment : copy_view_.ReaderLayoutOf(inode).segments) {
    std::string names;
    for (const NodeId node : segment.nodes)
      names += (names.empty() ? "" : ",") + JsonText(nodes_.NameOf(node));
    segments += fmt::format("{}{{\"begin\":{},\"width\":{},\"nodes\":[{}]}}",
                            segments.empty() ? "" : ",", segment.begin, segment.width, names);
  }
  const bool bound = layout.bound();
  const uint64_t run_chunks = hints_.RunChunksOf(inode);
  const std::string damage = copy_view_.DamageOf(inode);
  return fmt::format(
      "{{\"chunk_size\":{},\"run_chunks\":{},\"width\":{},\"replicas\":{},\"inline\":{},\"nodes\":["
      "{}],\"segments\":[{}],\"policy\":{},\"reason\":{}{}{}}}",
      layout.chunk_bytes / run_chunks, run_chunks, bound ? layout.segments[0].width : 0,
      bound ? copy_view_.ValidCopies(inode) : 0, inode.bytes && inode.bytes->is_inline, nodes,
      segments, JsonText(hints_.HintsOf(inode).placement), JsonText(layout.reason),
      damage.empty() ? "" : fmt::format(",\"damage\":{}", JsonText(damage)),
      bound ? CopiesJsonOf(file, inode) : "");
}

Reply Xattrs::Apply(const SetXattrRequest& request) {
  Inode* inode = files_.Find(request.file);
  if (auto failure = CheckAttribute(request.file, inode, request.name)) return *std::move(failure);
  const AttributeName name = ClassifyAttribute(request.name);
  if (name.kind == AttributeKind::kReadOnly)
    return Refuse(StatusCode::kPermissionDenied, ErrorReason::kNotPermitted,
                  fmt::format("attribute '{}' is read-only", request.name));
  if (inode->type != FileType::kRegular && inode->type != FileType::kDirectory)
    return Refuse(StatusCode::kPermissionDenied, ErrorReason::kNotPermitted,
                  "only regular files and directories have attributes");
  if (request.value.size() > kAttributeValueBytesMax)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kArgumentTooBig,
                  fmt::format("a value of {} bytes exceeds the maximum of {}", request.value.size(),
                              kAttributeValueBytesMax));
  if (name.kind == AttributeKind::kHint) return SetHint(request.file, *inode, name, request);
  const auto known = files_.xattrs.find(request.file);
  const bool exists = known != files_.xattrs.end() && known->second.values().contains(request.name);
  if (request.must_create && exists)
    return Refuse(
        StatusCode::kAlreadyExists, ErrorReason::kExists,
        fmt::format("file {} already has attribute '{}'", request.file.value, request.name));
  if (request.must_replace && !exists) return NoAttribute(request.file, request.name);
  if (auto failure =
          limits_.CheckAttributeGrowth(request.file, *inode, request.name, request.value.size()))
    return *std::move(failure);
  files_.xattrs[request.file].Set(request.name, request.value);
  step_.effects.writes.Put(XattrKey(request.file, request.name), request.value);
  inode->change_time = step_.now;
  step_.Touch(request.file);
  return EmptyReply{};
}

Reply Xattrs::Apply(const RemoveXattrRequest& request) {
  Inode* inode = files_.Find(request.file);
  if (auto failure = CheckAttribute(request.file, inode, request.name)) return *std::move(failure);
  const AttributeName name = ClassifyAttribute(request.name);
  if (name.kind == AttributeKind::kReadOnly)
    return Refuse(StatusCode::kPermissionDenied, ErrorReason::kNotPermitted,
                  fmt::format("attribute '{}' cannot be removed", request.name));
  if (name.kind == AttributeKind::kHint)
    return RemoveHint(request.file, *inode, name, request.pinned);
  const auto known = files_.xattrs.find(request.file);
  if (known == files_.xattrs.end() || !known->second.Erase(request.name))
    return NoAttribute(request.file, request.name);
  if (known->second.values().empty()) files_.xattrs.erase(known);
  step_.effects.writes.Delete(XattrKey(request.file, request.name));
  inode->change_time = step_.now;
  step_.Touch(request.file);
  return EmptyReply{};
}

Reply Xattrs::SetHint(FileId file, Inode& inode, const AttributeName& name,
                      const SetXattrRequest& request) {
  auto canonical = ParseHint(name.hint, name.alias, request.value);
  if (!canonical.ok())
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  MessageOf(canonical.status()));
  Hints hints = hints_.DecodedHints(inode);
  if (request.must_create || request.must_replace) {
    const bool exists = HasHint(hints_.ExplainedHintsOf(inode), name.hint);
    if (request.must_create && exists)
      return Refuse(StatusCode::kAlreadyExists, ErrorReason::kExists,
                    fmt::format("file {} already has hint '{}'", file.value, name.hint));
    if (request.must_replace && !exists) return NoAttribute(file, name.hint);
  }
  const bool is_laid_out = inode.size_bytes > 0 || (inode.bytes && !inode.bytes->segments.empty());
  if (inode.type == FileType::kRegular && is_laid_out && IsLayoutHint(name.hint) &&
      hints_.IsEffective(inode, name.hint, *canonical))
    return EmptyReply{};
  const auto known = hints.find(name.hint);
  if (known != hints.end() && known->second == Hint{*canonical, HintSource::kOwn, {}})
    return EmptyReply{};
  if (auto failure = limits_.CheckTextGrowth(inode.uid)) return *std::move(failure);
  if (auto failure = quotas_.Check(inode.uid, {.attribute_bytes = request.value.size()}))
    return *std::move(failure);
  if (auto failure = placing_.PrepareLayoutHint(file, inode, name.hint, request.pinned))
    return *std::move(failure);
  SetOwn(hints, name.hint, *std::move(canonical));
  if (inode.type == FileType::kRegular && NeedsGroup(hints))
    SettleGroup(hints, files_.DirectoryOf(inode));
  StoreHints(file, inode, hints);
  return EmptyReply{};
}

Reply Xattrs::RemoveHint(FileId file, Inode& inode, const AttributeName& name, bool pinned) {
  Hints hints = hints_.DecodedHints(inode);
  const auto known = hints.find(name.hint);
  if (known == hints.end()) return NoAttribute(file, name.hint);
  if (auto failure = placing_.PrepareLayoutHint(file, inode, name.hint, pinned))
    return *std::move(failure);
  EraseHint(hints, name.hint);
  if (inode.type == FileType::kRegular) SettleGroup(hints, files_.DirectoryOf(inode));
  StoreHints(file, inode, hints);
  return EmptyReply{};
}

}  // namespace mosa::manager
