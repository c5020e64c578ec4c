#include "manager/core/hint_commands.h"

#include <fmt/format.h>

#include <algorithm>

namespace mosa::manager {

Result<HintExplanation> HintCommands::ExplainHints(std::string_view path) const {
  if (path.size() > kPathBytesMax)
    return InvalidArgumentError(
        fmt::format("a path of {} bytes exceeds the maximum of {}", path.size(), kPathBytesMax));
  if (const auto file = files_.FileAt(path); file.ok())
    return HintExplanation{true, hints_.ExplainedHintsOf(*files_.Find(*file))};
  if (path.empty() || path[0] != '/') return files_.FileAt(path).status();
  Hints hints = hints_.DecodedHints(*files_.Find(kRootFile));
  FileId at = kRootFile;
  bool missing = false;
  std::string here;
  for (size_t begin = 1; begin < path.size();) {
    const size_t limit = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, limit - begin);
    begin = limit + 1;
    if (name.empty() || name == ".") continue;
    if (const auto failure = files_.CheckName(name)) return InvalidArgumentError(failure->message);
    if (!missing && !files_.FindDirectory(at)) return files_.FileAt(path).status();
    const auto child = missing || name == ".." ? std::nullopt : files_.ChildOf(at, name);
    if (name == "..") return files_.FileAt(path).status();
    const std::string origin = missing ? here : std::to_string(at.value);
    here += fmt::format("/{}", name);
    if (child) {
      at = *child;
      hints = hints_.DecodedHints(*files_.Find(at));
      continue;
    }
    hints = InheritedHints(hints, origin);
    Overlay(hints, rules_.For(here));
    // A directory that does not exist yet has no id: its group is shown as that of 0.
    if (begin >= path.size()) SettleGroup(hints, missing ? FileId(0) : at);
    missing = true;
  }
  HintExplanation explanation{false, Explain(hints, hints_.Defaults())};
  hints_.NoteAutoCopies(explanation.hints, std::nullopt);
  hints_.NameOrigins(explanation.hints);
  return explanation;
}

void HintCommands::Handle(const AddHintRule& command) {
  if (cluster_.grace_end) return step_.AnswerAdmin(cluster_.StillRestarting());
  auto rule = HintRules::Check(command.glob, command.hints);
  if (!rule.ok()) return step_.AnswerAdmin(rule.status());
  rule->owner = command.asker;
  const HintRule* known = rules_.FindByGlob(rule->glob, rule->owner);
  if (!known) {
    const Status room = rules_.CheckRoomFor(*rule);
    if (!room.ok()) return step_.AnswerAdmin(room);
    if (quotas_.is_refused())
      return step_.AnswerAdmin(ResourceExhaustedError(cluster_.store_pressure.refusal));
  }
  if (!known || known->hints != rule->hints) {
    // Never reuse a replaced rule's id: a client may still want to remove that rule.
    rule->id = cluster_.counters.next_rule_id++;
    step_.effects.writes.Put(CountersKey(), Encode(cluster_.counters));
    step_.effects.writes.Put(RuleKey(rule->id), Encode(RuleRecord{rule->glob, rule->hints}));
    if (rule->owner)
      step_.effects.writes.Put(RuleOwnerKey(rule->id), Encode(OwnerRecord{*rule->owner}));
    if (known) RemoveRule(*known);
    rules_.Add(*rule);
  } else {
    rule->id = known->id;
  }
  step_.AnswerAdmin(OkStatus(), rule->id, delegations_.RecallUnder(rule->id));
}

void HintCommands::Handle(const RemoveHintRule& command) {
  if (cluster_.grace_end) return step_.AnswerAdmin(cluster_.StillRestarting());
  const HintRule* const rule = rules_.Find(command.id);
  if (!rule)
    return step_.AnswerAdmin(NotFoundError(fmt::format("there is no rule {}", command.id)));
  if (command.asker && rule->owner != command.asker) {
    return step_.AnswerAdmin(PermissionDeniedError(
        fmt::format("rule {} does not belong to user {}", command.id, *command.asker)));
  }
  RemoveRule(*rule);
  step_.AnswerAdmin(OkStatus(), command.id);
}

void HintCommands::RemoveRule(const HintRule& rule) {
  step_.effects.writes.Delete(RuleKey(rule.id));
  if (rule.owner) step_.effects.writes.Delete(RuleOwnerKey(rule.id));
  rules_.Remove(rule.id);
}

void HintCommands::Handle(const SetFileHint& command) {
  if (cluster_.grace_end) return step_.AnswerAdmin(cluster_.StillRestarting());
  if (command.path.size() > kPathBytesMax)
    return step_.AnswerAdmin(InvalidArgumentError(fmt::format(
        "a path of {} bytes exceeds the maximum of {}", command.path.size(), kPathBytesMax)));
  FileId deepest = kRootFile;
  const auto file = files_.FileAt(command.path, &deepest);
  if (file.ok() && command.asker && files_.Find(*file)->uid != *command.asker) {
    return step_.AnswerAdmin(PermissionDeniedError(
        fmt::format("'{}' does not belong to user {}", command.path, *command.asker)));
  }
  // A mount may have made unreported files there, and may make more.
  const FileId directory = file.ok() ? *file : deepest;
  if (delegations_.IsHeld(directory)) {
    delegations_.RecallToAnswer(directory);
    return step_.AnswerAdmin(AbortedError(fmt::format(
        "a mount is still making files in {}/: try again in a moment", files_.PathOf(directory))));
  }
  if (!file.ok()) return step_.AnswerAdmin(file.status());
  if (ClassifyAttribute("user.mosa." + command.name.substr(0, kPathBytesMax)).kind ==
      AttributeKind::kReadOnly)
    return step_.AnswerAdmin(
        PermissionDeniedError(fmt::format("attribute '{}' is read-only", command.name)));
  Inode& inode = *files_.Find(*file);
  if (inode.type != FileType::kRegular && inode.type != FileType::kDirectory)
    return step_.AnswerAdmin(
        InvalidArgumentError(fmt::format("'{}' is neither a file nor a directory", command.path)));
  const Reply reply = xattrs_.SetHint(*file, inode, {AttributeKind::kHint, command.name, false},
                                      {.file = *file, .name = {}, .value = command.value});
  const auto* failure = std::get_if<Failure>(&reply);
  step_.AnswerAdmin(failure ? Status(failure->code, failure->message) : OkStatus());
}

// A mount with a delegation reports a file as made before the manager knows of it.
// Programs must now learn of the limit at once, so all delegations end.
void HintCommands::Handle(const SetStorePressure& command) {
  const bool was_refused = quotas_.is_refused();
  cluster_.store_pressure = command;
  if (command.refusal.empty()) {
    if (was_refused) step_.effects.log.push_back("there is free space for metadata again");
    return quotas_.AllowGrowth();
  }
  quotas_.RefuseGrowth(command.refusal);
  if (was_refused) return;
  step_.effects.log.push_back("accepting only requests that free space: " + command.refusal);
  delegations_.RecallAll();
}

}  // namespace mosa::manager
