// rename(2): replace, refuse to replace, or exchange.
#include <fmt/format.h>

#include "manager/core/state.h"

namespace mosa::manager {
namespace {

Failure Invalid(std::string message) {
  return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid, std::move(message));
}

}  // namespace

Failure AnotherFile(std::string_view name, FileId found, FileId meant) {
  const auto text = [](FileId file) {
    return file.value == 0 ? std::string("nothing") : fmt::format("file {}", file.value);
  };
  return Refuse(
      StatusCode::kAborted, ErrorReason::kStale,
      fmt::format("'{}' is now {}, not {}: look it up again", name, text(found), text(meant)));
}

// Returns true if `directory` is `ancestor` or lies below it.
bool ManagerCore::State::IsWithin(FileId directory, FileId ancestor) const {
  while (true) {
    if (directory == ancestor) return true;
    if (directory == kRootFile) return false;
    const Directory* above = FindDirectory(directory);
    if (!above) return false;
    directory = above->parent;
  }
}

std::optional<Failure> ManagerCore::State::CheckRename(const RenameRequest& request, FileId moved,
                                                       std::optional<FileId> target) const {
  const bool moves_directory = Find(moved)->type == FileType::kDirectory;
  if (target && request.no_replace)
    return Refuse(StatusCode::kAlreadyExists, ErrorReason::kExists,
                  fmt::format("'{}' exists and must not be replaced", request.new_name));
  if (moves_directory && IsWithin(request.new_parent, moved))
    return Invalid(fmt::format("directory '{}' cannot be moved below itself", request.old_name));
  if (!target) return std::nullopt;
  const bool onto_directory = Find(*target)->type == FileType::kDirectory;
  if (onto_directory && !moves_directory)
    return Refuse(
        StatusCode::kFailedPrecondition, ErrorReason::kIsDirectory,
        fmt::format("'{}' is a directory, but '{}' is not", request.new_name, request.old_name));
  if (!onto_directory && moves_directory)
    return Refuse(
        StatusCode::kFailedPrecondition, ErrorReason::kNotDirectory,
        fmt::format("'{}' is not a directory, but '{}' is", request.new_name, request.old_name));
  if (onto_directory && !FindDirectory(*target)->entries.empty())
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kNotEmpty,
                  fmt::format("directory '{}' has {} entries", request.new_name,
                              FindDirectory(*target)->entries.size()));
  return std::nullopt;
}

std::optional<Failure> ManagerCore::State::CheckExchange(const RenameRequest& request, FileId moved,
                                                         FileId target) const {
  const bool cycle = (FindDirectory(moved) && IsWithin(request.new_parent, moved)) ||
                     (FindDirectory(target) && IsWithin(request.old_parent, target));
  if (!cycle) return std::nullopt;
  return Invalid(fmt::format("'{}' and '{}' cannot be exchanged: one lies below the other",
                             request.old_name, request.new_name));
}

Reply ManagerCore::State::Apply(const RenameRequest& request) {
  for (const FileId parent : {request.old_parent, request.new_parent}) {
    if (auto failure = CheckDirectory(parent)) return *std::move(failure);
  }
  for (const std::string* name : {&request.old_name, &request.new_name}) {
    if (auto failure = CheckName(*name)) return *std::move(failure);
    if (*name == "." || *name == "..")
      return Refuse(StatusCode::kInvalidArgument, ErrorReason::kBusy,
                    fmt::format("'{}' cannot be renamed", *name));
  }
  if (request.no_replace && request.exchange)
    return Invalid("a rename cannot both exchange and refuse to replace");
  const auto moved = ChildOf(request.old_parent, request.old_name);
  const auto target = ChildOf(request.new_parent, request.new_name);
  if (!moved || (request.exchange && !target) || orphans_.contains(request.new_parent))
    return Refuse(
        StatusCode::kNotFound, ErrorReason::kNoEntry,
        fmt::format("there is no '{}' to rename{}", moved ? request.new_name : request.old_name,
                    request.exchange ? ", and both must exist to be exchanged" : ""));
  if (request.moved.value != 0 && *moved != request.moved)
    return AnotherFile(request.old_name, *moved, request.moved);
  if (request.replaced && target.value_or(FileId{}) != *request.replaced)
    return AnotherFile(request.new_name, target.value_or(FileId{}), *request.replaced);
  if (request.exchange) {
    if (*moved != *target) {
      if (auto failure = CheckExchange(request, *moved, *target)) return *std::move(failure);
      Exchange(request, *moved, *target);
    }
    return RenameReply{*moved, *target, Find(*target)->link_count};
  }
  // Both are names of one file: nothing changes. The reply shows that by naming the file twice.
  if (moved == target && !request.no_replace)
    return RenameReply{*moved, *moved, Find(*moved)->link_count};
  if (auto failure = CheckRename(request, *moved, target)) return *std::move(failure);
  if (target && IsDelegatedElsewhere(actor(), *target))
    return Refuse(StatusCode::kUnavailable, ErrorReason::kBusy,
                  fmt::format("directory '{}' is delegated; try again", request.new_name));

  RenameReply reply;
  reply.moved = *moved;
  if (target) {
    EraseEntry(request.new_parent, request.new_name);
    reply.replaced = *target;
    const bool directory = Find(*target)->type == FileType::kDirectory;
    reply.replaced_links_left = Unlink(*target, request.holds_open, actor().start.client);
    // A program of the same mount may have looked up the old file and be about to open it; its
    // kernel repeats the lookup only once.
    if (!directory && reply.replaced_links_left == 0) Linger(*target);
  }
  EraseEntry(request.old_parent, request.old_name);
  AddEntry(request.new_parent, request.new_name, *moved);
  RenamedTo(*moved, request.new_parent, request.new_name);
  TouchBothParents(request);
  return reply;
}

void ManagerCore::State::Exchange(const RenameRequest& request, FileId moved, FileId target) {
  EraseEntry(request.old_parent, request.old_name);
  EraseEntry(request.new_parent, request.new_name);
  AddEntry(request.old_parent, request.old_name, target);
  AddEntry(request.new_parent, request.new_name, moved);
  RenamedTo(target, request.old_parent, request.old_name);
  RenamedTo(moved, request.new_parent, request.new_name);
  TouchBothParents(request);
}

// The client, and its kernel, keep what both names refer to now.
void ManagerCore::State::TouchBothParents(const RenameRequest& request) {
  for (const FileId parent : {request.old_parent, request.new_parent}) {
    TouchDirectory(parent, now_);
    interests_.Add(actor(), parent, *Find(parent));
  }
}

void ManagerCore::State::RenamedTo(FileId file, FileId parent, const std::string& name) {
  Find(file)->change_time = now_;
  Touch(file);
  ForgetStaged(file);  // The staged copy has another name.
  // Rules may match files made below its new path.
  if (FindDirectory(file)) RecallRuledDelegations(file);
  if (const auto found = uncommitted_.find(file); found != uncommitted_.end()) {
    found->second.parent = parent;
    found->second.name = name;
  }
}

}  // namespace mosa::manager
