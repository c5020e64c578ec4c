// Hints for files that do not exist yet (rules, inheritance), their origins, and groups of files.
#include <fmt/format.h>

#include <algorithm>

#include "manager/core/state.h"

namespace mosa::manager {
namespace {

// The kernel's limit. Explaining costs a lookup per directory of the path.
constexpr size_t kPathBytesMax = 4096;
// Limit for node names and chunk ranges in one answer.
constexpr size_t kLocationBytesMax = size_t{8} << 20;

}  // namespace

// ---- paths

std::string ManagerCore::State::PathOf(FileId directory) const {
  std::vector<std::string_view> names;
  size_t bytes = 0;
  for (FileId at = directory; at != kRootFile;) {
    const Directory* here = FindDirectory(at);
    if (!here) break;
    bytes += 1 + here->name.size();
    if (bytes > kPathBytesMax) {
      names.push_back("...");
      break;
    }
    names.push_back(here->name);
    at = here->parent;
  }
  std::string path;
  for (auto name = names.rbegin(); name != names.rend(); ++name) path.append("/").append(*name);
  return path;
}

// Returns the directory of the file's latest name; the root if that directory is gone.
FileId ManagerCore::State::DirectoryOf(const Inode& inode) const {
  return FindDirectory(inode.named_in) ? inode.named_in : kRootFile;
}

// ---- hints of a new file

Hints ManagerCore::State::HintsAtMake(FileId parent, std::string_view name, FileType type,
                                      uint32_t maker) const {
  if (type != FileType::kRegular && type != FileType::kDirectory) return {};
  Hints hints = InheritedHints(DecodedHints(*Find(parent)), std::to_string(parent.value));
  if (!rules_.empty())
    Overlay(hints, rules_.For(fmt::format("{}/{}", PathOf(parent), name), maker));
  if (type == FileType::kRegular) SettleGroup(hints, parent);
  return hints;
}

Hints ManagerCore::State::HintsOfMake(const MakeRequest& request) const {
  Hints hints = HintsAtMake(request.parent, request.name, request.type, request.uid);
  for (const HintValue& hint : request.hints) SetOwn(hints, hint.name, hint.value);
  if (request.type == FileType::kRegular) SettleGroup(hints, request.parent);
  return hints;
}

std::vector<ExplainedHint> ManagerCore::State::ExplainedHintsOf(const Inode& inode) const {
  std::vector<ExplainedHint> hints = Explain(DecodedHints(inode), Defaults());
  if (inode.bytes && !inode.bytes->segments.empty()) {
    // A file that is laid out keeps its chunk size; the current default does not matter.
    const uint64_t chunk_bytes = inode.bytes->chunk_bytes / RunChunksOf(inode);
    for (ExplainedHint& hint : hints)
      if (hint.name == "chunk_size") hint.value = std::to_string(chunk_bytes);
  }
  if (inode.type == FileType::kRegular)
    NoteCopies(hints, inode.size_bytes > 0 ? std::optional(inode.size_bytes) : std::nullopt);
  NameOrigins(hints);
  return hints;
}

void ManagerCore::State::NoteCopies(std::vector<ExplainedHint>& hints,
                                    std::optional<uint64_t> size_bytes) const {
  for (ExplainedHint& hint : hints)
    if (hint.name == "replicas" && hint.value == "auto")
      hint.note = ToText(ChooseCopies(copies_forecast_, CountStayingNodes(), size_bytes));
}

// Directories are recorded by id, since they may be renamed.
void ManagerCore::State::NameOrigins(std::vector<ExplainedHint>& hints) const {
  for (ExplainedHint& hint : hints) {
    if (hint.source != HintSource::kDirectory || hint.origin.starts_with('/')) continue;
    const FileId directory(hint.origin.empty() ? 0 : std::stoull(hint.origin));
    if (directory == kRootFile) {
      hint.origin = "/";
    } else {
      hint.origin = FindDirectory(directory) ? PathOf(directory) : "a directory that is gone";
    }
  }
}

Result<HintExplanation> ManagerCore::State::ExplainHints(std::string_view path) const {
  if (path.size() > kPathBytesMax)
    return InvalidArgumentError(
        fmt::format("a path of {} bytes exceeds the maximum of {}", path.size(), kPathBytesMax));
  if (const auto file = FileAt(path); file.ok())
    return HintExplanation{true, ExplainedHintsOf(*Find(*file))};
  if (path.empty() || path[0] != '/') return FileAt(path).status();
  Hints hints = DecodedHints(*Find(kRootFile));
  FileId at = kRootFile;
  bool missing = false;
  std::string here;
  for (size_t begin = 1; begin < path.size();) {
    const size_t limit = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, limit - begin);
    begin = limit + 1;
    if (name.empty() || name == ".") continue;
    if (const auto failure = CheckName(name)) return InvalidArgumentError(failure->message);
    if (!missing && !FindDirectory(at)) return FileAt(path).status();
    const auto child = missing || name == ".." ? std::nullopt : ChildOf(at, name);
    if (name == "..") return FileAt(path).status();
    const std::string origin = missing ? here : std::to_string(at.value);
    here += fmt::format("/{}", name);
    if (child) {
      at = *child;
      hints = DecodedHints(*Find(at));
      continue;
    }
    hints = InheritedHints(hints, origin);
    Overlay(hints, rules_.For(here));
    // A directory that does not exist yet has no id: its group is shown as that of 0.
    if (begin >= path.size()) SettleGroup(hints, missing ? FileId(0) : at);
    missing = true;
  }
  HintExplanation explanation{false, Explain(hints, Defaults())};
  NoteCopies(explanation.hints, std::nullopt);
  NameOrigins(explanation.hints);
  return explanation;
}

// ---- rules

void ManagerCore::State::AnswerAdmin(Status status, uint64_t rule, bool settled) {
  effects_.admin_reply = AdminReply{std::move(status), rule, settled};
}

void ManagerCore::State::Handle(const AddHintRule& command) {
  if (grace_end_) return AnswerAdmin(StillRestarting());
  auto rule = HintRules::Check(command.glob, command.hints);
  if (!rule.ok()) return AnswerAdmin(rule.status());
  rule->owner = command.asker;
  const HintRule* known = rules_.FindByGlob(rule->glob, rule->owner);
  if (!known) {
    const Status room = rules_.CheckRoomFor(*rule);
    if (!room.ok()) return AnswerAdmin(room);
    if (quotas_.is_refused()) return AnswerAdmin(ResourceExhaustedError(store_pressure_.refusal));
  }
  if (!known || known->hints != rule->hints) {
    // Never reuse a replaced rule's id: a client may still want to remove that rule.
    rule->id = counters_.next_rule_id++;
    effects_.writes.Put(CountersKey(), Encode(counters_));
    effects_.writes.Put(RuleKey(rule->id), Encode(RuleRecord{rule->glob, rule->hints}));
    if (rule->owner) effects_.writes.Put(RuleOwnerKey(rule->id), Encode(OwnerRecord{*rule->owner}));
    if (known) RemoveRule(*known);
    rules_.Add(*rule);
  } else {
    rule->id = known->id;
  }
  AnswerAdmin(OkStatus(), rule->id, RecallDelegationsUnder(rule->id));
}

void ManagerCore::State::Handle(const RemoveHintRule& command) {
  if (grace_end_) return AnswerAdmin(StillRestarting());
  const HintRule* const rule = rules_.Find(command.id);
  if (!rule) return AnswerAdmin(NotFoundError(fmt::format("there is no rule {}", command.id)));
  if (command.asker && rule->owner != command.asker) {
    return AnswerAdmin(PermissionDeniedError(
        fmt::format("rule {} does not belong to user {}", command.id, *command.asker)));
  }
  RemoveRule(*rule);
  AnswerAdmin(OkStatus(), command.id);
}

void ManagerCore::State::RemoveRule(const HintRule& rule) {
  effects_.writes.Delete(RuleKey(rule.id));
  if (rule.owner) effects_.writes.Delete(RuleOwnerKey(rule.id));
  rules_.Remove(rule.id);
}

Status ManagerCore::State::StillRestarting() const {
  return AbortedError("the manager was restarted and waits for its mounts: try again in a moment");
}

void ManagerCore::State::RecallRuledDelegations(FileId within) {
  if (rules_.empty()) return;
  const Directory* top = FindDirectory(within);
  const bool alone = top && top->subdirectories == 0;
  std::vector<FileId> ruled;
  for (const auto& [directory, delegation] : delegations_) {
    const bool concerned = directory == within || (!alone && IsWithin(directory, within));
    if (concerned && rules_.MaySettleIn(PathOf(directory))) ruled.push_back(directory);
  }
  for (const FileId directory : ruled) RecallDelegation(directory);
}

bool ManagerCore::State::RecallDelegationsUnder(uint64_t rule) {
  std::vector<FileId> ruled;
  for (const auto& [directory, delegation] : delegations_) {
    if (rules_.MaySettleIn(rule, PathOf(directory))) ruled.push_back(directory);
  }
  for (const FileId directory : ruled) RecallDelegation(directory);
  return ruled.empty();
}

void ManagerCore::State::Handle(const SetFileHint& command) {
  if (grace_end_) return AnswerAdmin(StillRestarting());
  if (command.path.size() > kPathBytesMax)
    return AnswerAdmin(InvalidArgumentError(fmt::format(
        "a path of {} bytes exceeds the maximum of {}", command.path.size(), kPathBytesMax)));
  FileId deepest = kRootFile;
  const auto file = FileAt(command.path, &deepest);
  if (file.ok() && command.asker && Find(*file)->uid != *command.asker) {
    return AnswerAdmin(PermissionDeniedError(
        fmt::format("'{}' does not belong to user {}", command.path, *command.asker)));
  }
  // A mount may have made unreported files there, and may make more.
  const FileId directory = file.ok() ? *file : deepest;
  if (delegations_.contains(directory)) {
    RecallDelegation(directory);
    return AnswerAdmin(AbortedError(fmt::format(
        "a mount is still making files in {}/: try again in a moment", PathOf(directory))));
  }
  if (!file.ok()) return AnswerAdmin(file.status());
  if (ClassifyAttribute("user.mosa." + command.name.substr(0, kPathBytesMax)).kind ==
      AttributeKind::kReadOnly)
    return AnswerAdmin(
        PermissionDeniedError(fmt::format("attribute '{}' is read-only", command.name)));
  Inode& inode = *Find(*file);
  if (inode.type != FileType::kRegular && inode.type != FileType::kDirectory)
    return AnswerAdmin(
        InvalidArgumentError(fmt::format("'{}' is neither a file nor a directory", command.path)));
  const Reply reply = SetHint(*file, inode, {AttributeKind::kHint, command.name, false},
                              {.file = *file, .name = {}, .value = command.value});
  const auto* failure = std::get_if<Failure>(&reply);
  AnswerAdmin(failure ? Status(failure->code, failure->message) : OkStatus());
}

// ---- locations of files

std::vector<FileLocation> ManagerCore::State::ListLocations(const std::vector<std::string>& paths,
                                                            bool with_chunks) const {
  std::vector<FileLocation> locations;
  locations.reserve(paths.size());
  size_t bytes = 0;
  for (const std::string& path : paths) {
    FileLocation& location = locations.emplace_back();
    FileId file;
    const auto too_long = [](std::string message) {
      return Refuse(StatusCode::kResourceExhausted, ErrorReason::kArgumentTooBig,
                    std::move(message));
    };
    if (bytes >= kLocationBytesMax) {
      location.failure =
          too_long("the reply has reached its maximum length: ask for fewer files at once");
      continue;
    }
    location.failure = FindRegular(path, file);
    if (location.failure) {
      bytes += location.failure->message.size();
      continue;
    }
    const Inode& inode = *Find(file);
    location.size_bytes = inode.size_bytes;
    location.file = file;
    location.data_version = inode.data_version;
    location.nodes = NodeNamesOf(inode);
    for (const std::string& name : location.nodes) bytes += name.size();
    if (!with_chunks) continue;
    auto chunks = ChunkLocationsOf(inode);
    // Computing a list that is too long costs as much as a long one.
    bytes += chunks.ok() ? chunks->size() : kAttributeValueBytesMax;
    if (chunks.ok()) {
      location.chunks = *std::move(chunks);
    } else {
      location.failure = too_long(MessageOf(chunks.status()));
    }
  }
  return locations;
}

// ---- groups

std::string_view ManagerCore::State::GroupOf(const Inode& inode) const {
  if (!inode.bytes || inode.bytes->segments.empty()) return {};
  return GroupIn(HintsOf(inode).placement);
}

// Counts the files of each group of a freshly loaded image. A group without files is dropped.
void ManagerCore::State::CountGroups() {
  std::map<uint32_t, std::string> group_of_hints;
  for (const auto& [file, inode] : inodes_) {
    if (!inode->bytes || inode->bytes->segments.empty()) continue;
    const auto [known, is_new] = group_of_hints.try_emplace(inode->hints);
    if (is_new) known->second = GroupOf(*inode);
    groups_.Join(known->second);
  }
  groups_.DropEmpty();
}

}  // namespace mosa::manager
