// Extended attributes: ordinary ones, hints, and the read-only ones that describe where bytes are.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "manager/core/state.h"

namespace mosa::manager {
namespace {

constexpr size_t kAttributeNameBytesMax = 255;
// How long a file stays frozen for a user who sets a hint by path, and who may have gone away.
constexpr Duration kAdminFreezeMax = Seconds(5);

Failure NoAttribute(FileId file, std::string_view name) {
  return Refuse(StatusCode::kNotFound, ErrorReason::kNoAttribute,
                fmt::format("file {} has no attribute '{}'", file.value, name));
}

// Quotes text for JSON. A byte that is not UTF-8 becomes the character with that code point.
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

std::string_view SourceText(HintSource source) {
  switch (source) {
    case HintSource::kDefault:
      return "default";
    case HintSource::kPattern:
      return "pattern";
    case HintSource::kDirectory:
      return "directory";
    case HintSource::kRule:
      return "rule";
    case HintSource::kOwn:
      return "own";
  }
  return "unknown";
}

Failure TooLate(std::string_view hint, FileId file, std::string_view why) {
  return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kBusy,
                fmt::format("hint '{}' comes too late: file {} already has its place, and {}", hint,
                            file.value, why));
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

Hints ManagerCore::State::DecodedHints(const Inode& inode) const {
  if (inode.hints == 0) return {};
  auto hints = DecodeHints(texts_.TextOf(inode.hints));
  MOSA_CHECK(hints.ok());
  return *std::move(hints);
}

void ManagerCore::State::StoreHints(FileId file, Inode& inode, const Hints& hints) {
  const uint32_t held = texts_.Hold(EncodeHints(hints), inode.uid);
  texts_.Drop(inode.hints);
  inode.hints = held;
  FollowLifetime(file, inode, {});
  inode.change_time = now_;
  Touch(file);
  ReviewCopiesLater(file, inode);
}

const std::string& ManagerCore::State::NameOf(NodeId id) const {
  static const std::string kUnknown = "?";
  const Node* node = FindNode(id);
  return node ? node->address.name : kUnknown;
}

// ---- reading

Reply ManagerCore::State::Apply(const GetXattrRequest& request) {
  const Inode* inode = Find(request.file);
  if (auto failure = CheckAttribute(request.file, inode, request.name)) return *std::move(failure);
  const AttributeName name = ClassifyAttribute(request.name);
  if (name.kind == AttributeKind::kReadOnly)
    return ReadOnlyAttribute(request.file, *inode, name.hint);
  if (name.kind == AttributeKind::kHint) {
    for (const ExplainedHint& hint : ExplainedHintsOf(*inode)) {
      if (hint.name != name.hint || hint.source == HintSource::kDefault) continue;
      return GetXattrReply{name.alias ? AliasValue(name.hint, hint.value) : hint.value};
    }
    return NoAttribute(request.file, request.name);
  }
  if (const auto file = xattrs_.find(request.file); file != xattrs_.end()) {
    if (const auto found = file->second.values().find(request.name);
        found != file->second.values().end())
      return GetXattrReply{found->second};
  }
  return NoAttribute(request.file, request.name);
}

Reply ManagerCore::State::Apply(const ListXattrsRequest& request) {
  if (!Find(request.file))
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} is gone", request.file.value));
  ListXattrsReply reply;
  if (const auto file = xattrs_.find(request.file); file != xattrs_.end()) {
    for (const auto& [name, value] : file->second.values()) reply.names.push_back(name);
  }
  return reply;
}

Reply ManagerCore::State::ReadOnlyAttribute(FileId file, const Inode& inode,
                                            std::string_view name) const {
  const auto bounded = [&](std::string text) -> Reply {
    if (text.size() <= kAttributeValueBytesMax) return GetXattrReply{std::move(text)};
    return Refuse(
        StatusCode::kResourceExhausted, ErrorReason::kArgumentTooBig,
        fmt::format("the attribute '{}' of this file has {} bytes, but at most {} are allowed",
                    name, text.size(), kAttributeValueBytesMax));
  };
  if (name == "hints") return bounded(HintsJsonOf(inode));
  if (inode.type != FileType::kRegular)
    return Refuse(StatusCode::kNotFound, ErrorReason::kNoAttribute,
                  fmt::format("only regular files have the attribute '{}'", name));
  if (name == "location") return bounded(fmt::format("{}", fmt::join(NodeNamesOf(inode), ",")));
  if (name == "layout") return bounded(LayoutJsonOf(file, inode));
  auto chunks = ChunkLocationsOf(inode);
  if (!chunks.ok())
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kArgumentTooBig,
                  MessageOf(chunks.status()));
  return GetXattrReply{*std::move(chunks)};
}

std::string ManagerCore::State::HintsJsonOf(const Inode& inode) const {
  std::string text;
  for (const ExplainedHint& hint : ExplainedHintsOf(inode)) {
    text += fmt::format("{}{}:{{\"value\":{},\"source\":\"{}\"", text.empty() ? "{" : ",",
                        JsonText(hint.name), JsonText(hint.value), SourceText(hint.source));
    if (!hint.origin.empty()) text += fmt::format(",\"origin\":{}", JsonText(hint.origin));
    if (!hint.note.empty()) text += fmt::format(",\"note\":{}", JsonText(hint.note));
    text += "}";
  }
  return text + "}";
}

std::vector<std::string> ManagerCore::State::NodeNamesOf(const Inode& inode) const {
  if (!inode.bytes) return {};
  if (inode.bytes->is_inline)
    return inode.bytes->inline_node == kNoNode
               ? std::vector<std::string>()
               : std::vector<std::string>{NameOf(inode.bytes->inline_node)};
  const FileBytes& bytes = *inode.bytes;
  // Counts the parts that each node has of the file, in first copies and in valid further copies.
  std::map<NodeId, size_t> parts;
  size_t parts_max = 0;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    const Segment& segment = bytes.segments[i];
    for (const NodeId node : segment.nodes) ++parts[node];
    parts_max += segment.width;
    for (size_t c = 0; !bytes.copies.empty() && c < bytes.copies[i].size(); ++c)
      if (IsValid(inode, i, c)) ++parts[bytes.copies[i][c].node];
  }
  std::vector<NodeObject> objects = bytes.objects;
  std::erase_if(objects, [&parts](const NodeObject& o) {
    return o.lost || o.allocated_bytes == 0 || !parts.contains(o.node);
  });
  const auto rank = [&](const NodeObject& o) {
    return std::pair(parts.at(o.node) >= parts_max, o.allocated_bytes);
  };
  std::stable_sort(objects.begin(), objects.end(),
                   [&](const NodeObject& a, const NodeObject& b) { return rank(a) > rank(b); });
  std::vector<std::string> names;
  for (const NodeObject& object : objects) names.push_back(NameOf(object.node));
  return names;
}

Result<std::string> ManagerCore::State::ChunkLocationsOf(const Inode& inode) const {
  const Layout layout = LayoutOf(inode);
  if (!layout.bound() || inode.size_bytes == 0) return std::string();
  const uint64_t chunk_bytes = layout.chunk_bytes / RunChunksOf(inode);
  const uint64_t chunks = (inode.size_bytes - 1) / chunk_bytes + 1;
  std::string text;
  for (uint64_t at = 0; at < inode.size_bytes;) {
    const NodeId node = layout.NodeAt(at);
    // A segment on one node is one range; other segments change nodes with each run of chunks.
    uint64_t end = std::min(layout.SegmentEnd(at), inode.size_bytes);
    if (layout.SegmentAt(at).width > 1)
      end = std::min(end, (at / layout.chunk_bytes + 1) * layout.chunk_bytes);
    text += fmt::format("{}{}-{}:{}", text.empty() ? "" : ",", at / chunk_bytes,
                        (end - 1) / chunk_bytes, NameOf(node));
    if (text.size() > kAttributeValueBytesMax)
      return ResourceExhaustedError(fmt::format(
          "the list of {} chunks is longer than {} bytes: read user.mosa.layout instead", chunks,
          kAttributeValueBytesMax));
    at = end;
  }
  return text;
}

// Describes the copies beyond the first, if any are wanted or exist.
std::string ManagerCore::State::CopiesJsonOf(FileId file, const Inode& inode) const {
  const FileStatus status = StatusOf(file, inode, "");
  const EffectiveHints hints = HintsOf(inode);
  const std::string automatic =
      hints.replicas != 0
          ? ""
          : fmt::format(",\"auto\":{}", JsonText(ToText(ChooseCopiesOf(file, inode, hints))));
  if (status.copies_wanted == 1 && status.copies.empty()) return automatic;
  constexpr std::array<std::string_view, 4> kStates = {"valid", "copying", "waiting", "failed"};
  std::string copies;
  for (const CopyStatus& copy : status.copies) {
    copies += fmt::format("{}{{\"node\":{},\"state\":\"{}\",\"copied_bytes\":{}",
                          copies.empty() ? "" : ",", JsonText(NameOf(copy.node)),
                          kStates.at(static_cast<size_t>(copy.state) - 1), copy.copied_bytes);
    copies += copy.why.empty() ? "}" : fmt::format(",\"why\":{}}}", JsonText(copy.why));
  }
  return fmt::format("{},\"copies\":[{}],\"missing\":{}", automatic, copies,
                     JsonText(status.copies_missing));
}

std::string ManagerCore::State::LayoutJsonOf(FileId file, const Inode& inode) const {
  const Layout layout = LayoutOf(inode);
  std::string segments, nodes;
  for (const NodeId node : layout.Nodes())
    nodes += (nodes.empty() ? "" : ",") + JsonText(NameOf(node));
  // Schedulers look here: a copy that can be read is as good as the first one.
  for (const Segment& segment : ReaderLayoutOf(inode).segments) {
    std::string names;
    for (const NodeId node : segment.nodes)
      names += (names.empty() ? "" : ",") + JsonText(NameOf(node));
    segments += fmt::format("{}{{\"begin\":{},\"width\":{},\"nodes\":[{}]}}",
                            segments.empty() ? "" : ",", segment.begin, segment.width, names);
  }
  const bool bound = layout.bound();
  const uint64_t run_chunks = RunChunksOf(inode);
  const std::string damage = DamageOf(inode);
  return fmt::format(
      "{{\"chunk_size\":{},\"run_chunks\":{},\"width\":{},\"replicas\":{},\"inline\":{},\"nodes\":["
      "{}],\"segments\":[{}],\"policy\":{},\"reason\":{}{}{}}}",
      layout.chunk_bytes / run_chunks, run_chunks, bound ? layout.segments[0].width : 0,
      bound ? ValidCopies(inode) : 0, inode.bytes && inode.bytes->is_inline, nodes, segments,
      JsonText(HintsOf(inode).placement), JsonText(layout.reason),
      damage.empty() ? "" : fmt::format(",\"damage\":{}", JsonText(damage)),
      bound ? CopiesJsonOf(file, inode) : "");
}

// ---- writing

Reply ManagerCore::State::Apply(const SetXattrRequest& request) {
  Inode* inode = Find(request.file);
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
  const auto known = xattrs_.find(request.file);
  const bool exists = known != xattrs_.end() && known->second.values().contains(request.name);
  if (request.must_create && exists)
    return Refuse(
        StatusCode::kAlreadyExists, ErrorReason::kExists,
        fmt::format("file {} already has attribute '{}'", request.file.value, request.name));
  if (request.must_replace && !exists) return NoAttribute(request.file, request.name);
  if (auto failure = CheckAttributeGrowth(request.file, *inode, request.name, request.value.size()))
    return *std::move(failure);
  xattrs_[request.file].Set(request.name, request.value);
  effects_.writes.Put(XattrKey(request.file, request.name), request.value);
  inode->change_time = now_;
  Touch(request.file);
  return EmptyReply{};
}

Reply ManagerCore::State::Apply(const RemoveXattrRequest& request) {
  Inode* inode = Find(request.file);
  if (auto failure = CheckAttribute(request.file, inode, request.name)) return *std::move(failure);
  const AttributeName name = ClassifyAttribute(request.name);
  if (name.kind == AttributeKind::kReadOnly)
    return Refuse(StatusCode::kPermissionDenied, ErrorReason::kNotPermitted,
                  fmt::format("attribute '{}' cannot be removed", request.name));
  if (name.kind == AttributeKind::kHint)
    return RemoveHint(request.file, *inode, name, request.pinned);
  const auto known = xattrs_.find(request.file);
  if (known == xattrs_.end() || !known->second.Erase(request.name))
    return NoAttribute(request.file, request.name);
  if (known->second.values().empty()) xattrs_.erase(known);
  effects_.writes.Delete(XattrKey(request.file, request.name));
  inode->change_time = now_;
  Touch(request.file);
  return EmptyReply{};
}

bool ManagerCore::State::IsEffective(const Inode& inode, std::string_view hint,
                                     const std::string& value) const {
  const std::vector<ExplainedHint> hints = ExplainedHintsOf(inode);
  return std::any_of(hints.begin(), hints.end(), [&](const ExplainedHint& known) {
    return known.name == hint && known.value == value;
  });
}

bool ManagerCore::State::IsOpenForWritingElsewhere(FileId file) const {
  const auto opens = write_opens_.find(file);
  if (opens == write_opens_.end()) return false;
  return !actor_ || opens->second.size() > 1 || !opens->second.contains(actor_->start.client);
}

// A hint never moves bytes: only a file without bytes can still be laid out again.
std::optional<Failure> ManagerCore::State::PrepareLayoutHint(FileId file, Inode& inode,
                                                             std::string_view hint, bool pinned) {
  if (inode.type != FileType::kRegular || !IsLayoutHint(hint)) return std::nullopt;
  if (inode.size_bytes > 0)
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kNotEmpty,
                  fmt::format("hint '{}' comes too late: file {} already has {} bytes; set it on "
                              "the empty file or its directory",
                              hint, file.value, inode.size_bytes));
  if (!inode.bytes || inode.bytes->segments.empty()) return std::nullopt;
  // Bytes that others stored there without committing would be lost.
  if (pinned || IsOpenForWritingElsewhere(file))
    return TooLate(hint, file,
                   pinned ? "the kernel has its object open (passthrough)"
                          : "another mount has it open for writing");
  if (auto failure = MayUnbind(file, inode)) {
    if (failure->code == StatusCode::kAborted) return failure;
    return TooLate(hint, file, "the kernel of another mount has its object open (passthrough)");
  }
  Unbind(file, inode, FirstObjects::kCut);
  return std::nullopt;
}

bool ManagerCore::State::IsKnownElsewhere(FileId file, const Inode& inode) const {
  const ClientId asker = actor_ ? actor_->start.client : ClientId();
  if (!interests_.Of(file, inode, asker).empty()) return true;
  const auto outstanding = recalls_by_file_.find(file);
  return outstanding != recalls_by_file_.end() &&
         std::any_of(outstanding->second.begin(), outstanding->second.end(),
                     [&](const auto& recall) { return recall.first != asker; });
}

// A reader's kernel with the object open would continue to use what no longer is the file's object.
// So clients that know the file are asked first, by a freeze: the requester's own, or for commands
// of users one without holder.
std::optional<Failure> ManagerCore::State::MayUnbind(FileId file, const Inode& inode) {
  const ClientId asker = actor_ ? actor_->start.client : ClientId();
  const Freeze* const freeze = FreezeOf(file);
  const bool own = freeze && freeze->holder == asker;
  const bool answering = own && !actor_ && recalls_by_file_.contains(file);
  if (own ? answering : freeze || IsKnownElsewhere(file, inode)) {
    if (!freeze && !actor_) {
      freezes_[file] = {asker, now_ + kAdminFreezeMax};
      access_changed_[file] = true;
    }
    return Refuse(StatusCode::kAborted, ErrorReason::kBusy,
                  fmt::format("other mounts cache the layout of file {}: freeze it and try again",
                              file.value));
  }
  const bool pinned_elsewhere = own && freeze->pinned;
  freezes_.erase(file);
  if (!pinned_elsewhere) return std::nullopt;
  return Refuse(
      StatusCode::kUnavailable, ErrorReason::kBusy,
      fmt::format("the kernel of another mount has the object of file {} open", file.value));
}

Reply ManagerCore::State::SetHint(FileId file, Inode& inode, const AttributeName& name,
                                  const SetXattrRequest& request) {
  auto canonical = ParseHint(name.hint, name.alias, request.value);
  if (!canonical.ok())
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  MessageOf(canonical.status()));
  Hints hints = DecodedHints(inode);
  if (request.must_create || request.must_replace) {
    const bool exists = HasHint(ExplainedHintsOf(inode), name.hint);
    if (request.must_create && exists)
      return Refuse(StatusCode::kAlreadyExists, ErrorReason::kExists,
                    fmt::format("file {} already has hint '{}'", file.value, name.hint));
    if (request.must_replace && !exists) return NoAttribute(file, name.hint);
  }
  const bool is_laid_out = inode.size_bytes > 0 || (inode.bytes && !inode.bytes->segments.empty());
  if (inode.type == FileType::kRegular && is_laid_out && IsLayoutHint(name.hint) &&
      IsEffective(inode, name.hint, *canonical))
    return EmptyReply{};
  const auto known = hints.find(name.hint);
  if (known != hints.end() && known->second == Hint{*canonical, HintSource::kOwn, {}})
    return EmptyReply{};
  if (auto failure = CheckTextGrowth(inode.uid)) return *std::move(failure);
  if (auto failure = quotas_.Check(inode.uid, {.attribute_bytes = request.value.size()}))
    return *std::move(failure);
  if (auto failure = PrepareLayoutHint(file, inode, name.hint, request.pinned))
    return *std::move(failure);
  SetOwn(hints, name.hint, *std::move(canonical));
  if (inode.type == FileType::kRegular && NeedsGroup(hints)) SettleGroup(hints, DirectoryOf(inode));
  StoreHints(file, inode, hints);
  return EmptyReply{};
}

Reply ManagerCore::State::RemoveHint(FileId file, Inode& inode, const AttributeName& name,
                                     bool pinned) {
  Hints hints = DecodedHints(inode);
  const auto known = hints.find(name.hint);
  if (known == hints.end()) return NoAttribute(file, name.hint);
  if (auto failure = PrepareLayoutHint(file, inode, name.hint, pinned)) return *std::move(failure);
  EraseHint(hints, name.hint);
  if (inode.type == FileType::kRegular) SettleGroup(hints, DirectoryOf(inode));
  StoreHints(file, inode, hints);
  return EmptyReply{};
}

}  // namespace mosa::manager
