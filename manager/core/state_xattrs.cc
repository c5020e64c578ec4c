// Extended attributes: ordinary ones, hints, and the read-only ones that tell where bytes are.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "manager/core/state.h"

namespace mosa::manager {
namespace {

constexpr size_t kAttributeNameBytesMax = 255;
constexpr size_t kAttributeValueBytesMax = 65536;
constexpr size_t kAttributesPerFileMax = 1024;

Failure NoAttribute(FileId file, std::string_view name) {
  return Refuse(StatusCode::kNotFound, ErrorReason::kNoAttribute,
                fmt::format("file {} has no attribute '{}'", file.value, name));
}

std::string JsonText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// What is wrong with an attribute's name before anything is looked at.
std::optional<Failure> CheckAttribute(FileId file, const Inode* inode, std::string_view name) {
  if (!inode)
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} is gone", file.value));
  if (name.size() > kAttributeNameBytesMax)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kRange,
                  fmt::format("an attribute name of {} bytes: at most {} are allowed", name.size(),
                              kAttributeNameBytesMax));
  const AttributeName known = ClassifyAttribute(name);
  if (known.kind == AttributeKind::kUnsupported || name.find('\0') != std::string_view::npos)
    return Refuse(StatusCode::kUnimplemented, ErrorReason::kUnsupported,
                  fmt::format("attribute '{}': only user.* is kept", name));
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
  const uint32_t held = texts_.Hold(EncodeHints(hints));
  texts_.Drop(inode.hints);
  inode.hints = held;
  inode.change_time = now_;
  Touch(file);
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
  if (name.kind == AttributeKind::kReadOnly) return ReadOnlyAttribute(*inode, name.hint);
  if (name.kind == AttributeKind::kHint) {
    const Hints hints = DecodedHints(*inode);
    const auto found = hints.find(name.hint);
    if (found == hints.end()) return NoAttribute(request.file, request.name);
    return GetXattrReply{name.alias ? AliasValue(name.hint, found->second.value)
                                    : found->second.value};
  }
  if (const auto file = xattrs_.find(request.file); file != xattrs_.end()) {
    if (const auto found = file->second.find(request.name); found != file->second.end())
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
    for (const auto& [name, value] : file->second) reply.names.push_back(name);
  }
  return reply;
}

Reply ManagerCore::State::ReadOnlyAttribute(const Inode& inode, std::string_view name) const {
  if (name == "hints") {
    std::string text;
    for (const auto& [hint, value] : DecodedHints(inode))
      text += fmt::format("{}{}={} ({})", text.empty() ? "" : ", ", hint, value.value,
                          value.inherited ? "inherited" : "set");
    return GetXattrReply{std::move(text)};
  }
  if (inode.type != FileType::kRegular)
    return Refuse(StatusCode::kNotFound, ErrorReason::kNoAttribute,
                  fmt::format("only regular files have a '{}'", name));
  if (name == "location" || name == "layout") {
    std::string text = name == "location" ? LocationOf(inode) : LayoutJsonOf(inode);
    if (text.size() > kAttributeValueBytesMax)
      return Refuse(StatusCode::kResourceExhausted, ErrorReason::kArgumentTooBig,
                    fmt::format("the '{}' of this file has {} bytes, an attribute at most {}", name,
                                text.size(), kAttributeValueBytesMax));
    return GetXattrReply{std::move(text)};
  }
  auto chunks = ChunkLocationsOf(inode);
  if (!chunks.ok())
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kArgumentTooBig,
                  MessageOf(chunks.status()));
  return GetXattrReply{*std::move(chunks)};
}

std::string ManagerCore::State::LocationOf(const Inode& inode) const {
  if (!inode.bytes) return "";
  if (inode.bytes->is_inline)
    return inode.bytes->inline_node == kNoNode ? "" : NameOf(inode.bytes->inline_node);
  std::vector<NodeObject> objects = inode.bytes->objects;
  std::erase_if(objects, [](const NodeObject& o) { return o.lost || o.allocated_bytes == 0; });
  std::stable_sort(objects.begin(), objects.end(), [](const NodeObject& a, const NodeObject& b) {
    return a.allocated_bytes > b.allocated_bytes;
  });
  std::string text;
  for (const NodeObject& object : objects) text += (text.empty() ? "" : ",") + NameOf(object.node);
  return text;
}

Result<std::string> ManagerCore::State::ChunkLocationsOf(const Inode& inode) const {
  const Layout layout = LayoutOf(inode);
  if (!layout.bound() || inode.size_bytes == 0) return std::string();
  const uint64_t chunks = (inode.size_bytes - 1) / layout.chunk_bytes + 1;
  std::string text;
  for (uint64_t at = 0; at < inode.size_bytes;) {
    const NodeId node = layout.NodeAt(at);
    // A segment of one node is one range; others change their node with each chunk.
    uint64_t end = std::min(layout.SegmentEnd(at), inode.size_bytes);
    if (layout.SegmentAt(at).width > 1)
      end = std::min(end, (at / layout.chunk_bytes + 1) * layout.chunk_bytes);
    text += fmt::format("{}{}-{}:{}", text.empty() ? "" : ",", at / layout.chunk_bytes,
                        (end - 1) / layout.chunk_bytes, NameOf(node));
    if (text.size() > kAttributeValueBytesMax)
      return ResourceExhaustedError(
          fmt::format("the list of {} chunks is longer than {} bytes: read user.mosa.layout",
                      chunks, kAttributeValueBytesMax));
    at = end;
  }
  return text;
}

std::string ManagerCore::State::LayoutJsonOf(const Inode& inode) const {
  const Layout layout = LayoutOf(inode);
  std::string segments, nodes;
  for (const NodeId node : layout.Nodes())
    nodes += (nodes.empty() ? "" : ",") + JsonText(NameOf(node));
  for (const Segment& segment : layout.segments) {
    std::string names;
    for (const NodeId node : segment.nodes)
      names += (names.empty() ? "" : ",") + JsonText(NameOf(node));
    segments += fmt::format("{}{{\"begin\":{},\"width\":{},\"nodes\":[{}]}}",
                            segments.empty() ? "" : ",", segment.begin, segment.width, names);
  }
  const bool bound = layout.bound();
  return fmt::format(
      "{{\"chunk_size\":{},\"width\":{},\"replicas\":{},\"inline\":{},\"nodes\":[{}],\"segments\":["
      "{}],"
      "\"reason\":{}}}",
      layout.chunk_bytes, bound ? layout.segments[0].width : 0,
      bound ? layout.segments[0].copies() : 0, inode.bytes && inode.bytes->is_inline, nodes,
      segments, JsonText(layout.reason));
}

// ---- writing

Reply ManagerCore::State::Apply(const SetXattrRequest& request) {
  Inode* inode = Find(request.file);
  if (auto failure = CheckAttribute(request.file, inode, request.name)) return *std::move(failure);
  const AttributeName name = ClassifyAttribute(request.name);
  if (name.kind == AttributeKind::kReadOnly)
    return Refuse(StatusCode::kPermissionDenied, ErrorReason::kNotPermitted,
                  fmt::format("attribute '{}' can only be read", request.name));
  if (inode->type != FileType::kRegular && inode->type != FileType::kDirectory)
    return Refuse(StatusCode::kPermissionDenied, ErrorReason::kNotPermitted,
                  "only regular files and directories have attributes");
  if (request.value.size() > kAttributeValueBytesMax)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kArgumentTooBig,
                  fmt::format("a value of {} bytes: at most {} are allowed", request.value.size(),
                              kAttributeValueBytesMax));
  if (name.kind == AttributeKind::kHint) return SetHint(request.file, *inode, name, request.value);
  const auto known = xattrs_.find(request.file);
  const bool exists = known != xattrs_.end() && known->second.contains(request.name);
  if (request.must_create && exists)
    return Refuse(
        StatusCode::kAlreadyExists, ErrorReason::kExists,
        fmt::format("file {} has attribute '{}' already", request.file.value, request.name));
  if (request.must_replace && !exists) return NoAttribute(request.file, request.name);
  if (!exists && known != xattrs_.end() && known->second.size() >= kAttributesPerFileMax)
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                  fmt::format("file {} has {} attributes: no more are kept", request.file.value,
                              known->second.size()));
  xattrs_[request.file].insert_or_assign(request.name, request.value);
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
  if (name.kind == AttributeKind::kHint) return RemoveHint(request.file, *inode, name);
  const auto known = xattrs_.find(request.file);
  if (known == xattrs_.end() || known->second.erase(request.name) == 0)
    return NoAttribute(request.file, request.name);
  if (known->second.empty()) xattrs_.erase(known);
  effects_.writes.Delete(XattrKey(request.file, request.name));
  inode->change_time = now_;
  Touch(request.file);
  return EmptyReply{};
}

bool ManagerCore::State::IsEffective(const Inode& inode, std::string_view hint,
                                     const std::string& value) const {
  const Hints hints = DecodedHints(inode);
  if (const auto found = hints.find(hint); found != hints.end())
    return found->second.value == value;
  const EffectiveHints effective = HintsOf(inode);
  if (hint == "placement") return effective.placement == value;
  if (hint == "chunk_size") return std::to_string(LayoutOf(inode).chunk_bytes) == value;
  if (hint == "stripe_width") return std::to_string(effective.stripe_width) == value;
  return false;
}

// Bytes do not move for a hint: only a file without any can still be laid out anew.
std::optional<Failure> ManagerCore::State::PrepareLayoutHint(FileId file, Inode& inode,
                                                             std::string_view hint) {
  if (inode.type != FileType::kRegular || !IsLayoutHint(hint)) return std::nullopt;
  if (inode.size_bytes > 0)
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kNotEmpty,
                  fmt::format("hint '{}' comes too late: file {} has {} bytes already; set it on "
                              "the empty file or its directory",
                              hint, file.value, inode.size_bytes));
  if (!inode.bytes || inode.bytes->segments.empty()) return std::nullopt;
  if (write_opens_.contains(file))
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kBusy,
                  fmt::format("hint '{}' comes too late: file {} has its place already and is open "
                              "for writing",
                              hint, file.value));
  Unbind(file, inode);
  return std::nullopt;
}

Reply ManagerCore::State::SetHint(FileId file, Inode& inode, const AttributeName& name,
                                  std::string_view value) {
  auto canonical = ParseHint(name.hint, name.alias, value);
  if (!canonical.ok())
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  MessageOf(canonical.status()));
  Hints hints = DecodedHints(inode);
  const bool bytes_stay = inode.type == FileType::kRegular && inode.size_bytes > 0;
  if (bytes_stay && IsLayoutHint(name.hint) && IsEffective(inode, name.hint, *canonical))
    return EmptyReply{};
  const auto known = hints.find(name.hint);
  if (known != hints.end() && known->second == Hint{*canonical, false}) return EmptyReply{};
  if (auto failure = PrepareLayoutHint(file, inode, name.hint)) return *std::move(failure);
  hints.insert_or_assign(std::string(name.hint), Hint{*std::move(canonical), false});
  StoreHints(file, inode, hints);
  return EmptyReply{};
}

Reply ManagerCore::State::RemoveHint(FileId file, Inode& inode, const AttributeName& name) {
  Hints hints = DecodedHints(inode);
  const auto known = hints.find(name.hint);
  if (known == hints.end()) return NoAttribute(file, name.hint);
  if (auto failure = PrepareLayoutHint(file, inode, name.hint)) return *std::move(failure);
  hints.erase(known);
  StoreHints(file, inode, hints);
  return EmptyReply{};
}

}  // namespace mosa::manager
