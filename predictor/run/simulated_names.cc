#include "predictor/run/simulated_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mosa::predict {
namespace {

// All programs are one user's.
constexpr uint32_t kUser = 0;

// Removes the first name from `path` and returns it.
std::string_view TakeName(std::string_view& path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  const std::string_view name = path.substr(0, path.find('/'));
  path.remove_prefix(name.size());
  while (path.starts_with('/')) path.remove_prefix(1);
  return name;
}

}  // namespace

bool SimulatedNames::IsStillSeen(const Directory::Name& name) {
  const SimulatedFile& file = files_.At(name.file);
  return file.unsent || (file.attributes_known && !files_.RecalledSince(*name.seen, name.file));
}

uint64_t SimulatedNames::TellKernel(Directory& directory) {
  const sai::NameEpoch& epoch = files_.name_epoch();
  if (directory.shared.is_shared() || !epoch.MayKeep(loop_.now())) return 0;
  return directory.told_in = epoch.number();
}

des::Activity<sai::Outcome<FileId>> SimulatedNames::Lookup(FileId parent, std::string_view name) {
  Directory& directory = directories_[parent];
  if (const auto kept = directory.names.find(name);
      kept != directory.names.end() && kept->second.told_in == files_.name_epoch().number())
    co_return kept->second.file;
  const Timed timed(machines_.residence(), Daemon::kMount, machine_, "fuse.lookup");
  co_await machines_.MountWait(machine_);
  co_await Work(platform_.client.call);
  const uint64_t told_in = TellKernel(directory);
  auto known = directory.names.find(name);
  if (known != directory.names.end() && known->second.seen && !IsStillSeen(known->second))
    directory.names.erase(std::exchange(known, directory.names.end()));
  if (known != directory.names.end() && files_.MayAnswer(known->second.file)) {
    known->second.told_in = known->second.seen ? 0 : told_in;
    co_return known->second.file;
  }
  if (known == directory.names.end() && (directory.complete || directory.shared.IsFree(name)))
    co_return FileId{};
  const SimulatedMark mark = files_.mark();
  LookupRequest lookup{parent, std::string(name)};
  if (MayMakeUnasked(directory)) lookup.reserve_for = kUser;
  Request request = std::move(lookup);
  const Outcome<EntryReply> reply = co_await Ask<EntryReply>(std::move(request));
  const bool absent = !reply.ok() && reply.failure().reason == ErrorReason::kNoEntry;
  if (!reply.ok() && !absent) co_return reply.failure();
  const FileId found = absent ? FileId{} : reply->entry.file;
  if (found != FileId{}) {
    const Attributes& attributes = reply->entry.attributes;
    if (attributes.type == FileType::kDirectory &&
        files_.At(found).attributes.change_time == Time{})
      files_.name_epoch().NoteForeignChange(attributes.change_time);
    files_.NoteAttributes(found, attributes, mark);
  }
  if (!absent && reply->shared_parent) {
    NoteDirectory(parent, *reply->shared_parent, mark);
    if (found != FileId{} && !reply->entry.attributes.shared)
      directory.names.insert_or_assign(std::string(name), Directory::Name{found, 0, mark});
    else if (reply->reserved && !files_.RecalledSince(mark, parent))
      directory.shared.Reserve(name, kUser, 0);
    co_return found;
  }
  const auto made = directory.names.find(name);
  const bool is_unsent =
      made != directory.names.end() && files_.At(made->second.file).unsent.has_value();
  if (!files_.RecalledSince(mark, parent) && !is_unsent)
    directory.names.insert_or_assign(std::string(name), Directory::Name{found, told_in});
  co_return found;
}

des::Activity<sai::Outcome<SimulatedNames::Place>> SimulatedNames::PlaceOf(const std::string& path,
                                                                           bool make_directories) {
  std::string_view rest = path;
  Place place{kRootFile, TakeName(rest)};
  while (!rest.empty()) {
    Outcome<FileId> found = co_await Lookup(place.parent, place.name);
    if (found.ok() && *found == FileId{} && make_directories)
      found = co_await MakeChildDirectory(place.parent, place.name);
    if (!found.ok()) co_return found.failure();
    if (*found == FileId{})
      co_return Failure{
          StatusCode::kNotFound, ErrorReason::kNoEntry,
          fmt::format("there is no directory '{}' on the path to '{}'", place.name, path)};
    place.parent = *found;
    place.name = TakeName(rest);
  }
  co_return place;
}

des::Activity<sai::Outcome<FileId>> SimulatedNames::NewFileId() {
  if (file_ids_.count == 0) {
    Request request = FileIdRangeRequest{};
    const Outcome<FileIdRangeReply> range = co_await Ask<FileIdRangeReply>(std::move(request));
    if (!range.ok()) co_return range.failure();
    file_ids_ = *range;
  }
  --file_ids_.count;
  co_return FileId{file_ids_.first.value++};
}

bool SimulatedNames::MayMakeUnasked(const Directory& directory) const {
  return directory.inline_bytes_max > 0 && directory.hints_generation == hints_generation_;
}

void SimulatedNames::NoteDirectory(FileId directory, const Attributes& attributes,
                                   SimulatedMark mark) {
  files_.NoteAttributes(directory, attributes, mark);
  directories_[directory].shared.Note(attributes.shared);
}

void SimulatedNames::NoteMade(FileId parent, std::string_view name, const MakeReply& reply,
                              SimulatedMark mark, Directory::Name known, uint64_t hints_before) {
  files_.NoteAttributes(reply.entry.file, reply.entry.attributes, mark);
  NoteDirectory(parent, reply.parent_attributes, mark);
  if (reply.entry.attributes.type == FileType::kDirectory) {
    Directory& made = directories_[reply.entry.file];
    made.delegated = made.complete = reply.delegated;
    made.inline_bytes_max = reply.access ? reply.access->inline_bytes_max : 0;
    made.hints_generation = hints_before;
  }
  Directory& directory = directories_[parent];
  directory.shared.End(name, 0);
  const bool recalled = files_.RecalledSince(mark, parent);
  if (recalled || reply.parent_attributes.shared) {
    directory.names.erase(std::string(name));
  } else {
    directory.names.insert_or_assign(std::string(name), known);
  }
  if (recalled || reply.entry.attributes.type == FileType::kDirectory) return;
  directory.delegated = reply.delegated;
  const bool unbound = reply.access && !reply.access->layout.bound();
  directory.inline_bytes_max = unbound ? reply.access->inline_bytes_max : 0;
  directory.hints_generation = hints_before;
}

des::Activity<sai::Outcome<FileId>> SimulatedNames::MakeChildDirectory(FileId parent,
                                                                       std::string_view name) {
  const Outcome<FileId> id = co_await NewFileId();
  if (!id.ok()) co_return id.failure();
  co_await machines_.MountWait(machine_);
  co_await Work(platform_.client.call);
  MakeRequest make;
  make.parent = parent;
  make.name = name;
  make.file = *id;
  make.type = FileType::kDirectory;
  make.permissions = 0755;
  make.now = loop_.now();
  const uint64_t told_in = TellKernel(directories_[parent]);
  const uint64_t hints_before = hints_generation_;
  const SimulatedMark mark = files_.mark();
  Request request = make;
  const Outcome<MakeReply> reply = co_await Ask<MakeReply>(std::move(request));
  if (!reply.ok() && reply.failure().reason == ErrorReason::kExists) {
    directories_[parent].names.erase(make.name);
    co_return co_await Lookup(parent, name);
  }
  if (!reply.ok()) co_return reply.failure();
  NoteMade(parent, name, *reply, mark, {reply->entry.file, told_in}, hints_before);
  co_return reply->entry.file;
}

des::Activity<sai::Outcome<FileId>> SimulatedNames::Create(FileId parent, std::string_view name,
                                                           const std::string& task) {
  const Outcome<FileId> id = co_await NewFileId();
  if (!id.ok()) co_return id.failure();
  const Timed timed(machines_.residence(), Daemon::kMount, machine_, "fuse.create");
  co_await machines_.MountWait(machine_);
  co_await Work(platform_.client.call);
  MakeRequest make;
  make.parent = parent;
  make.name = name;
  make.file = *id;
  make.permissions = 0644;
  make.task = task;
  make.now = loop_.now();
  make.open = true;
  files_.At(*id).made_in = parent;
  Directory& directory = directories_[parent];
  const uint64_t told_in = TellKernel(directory);
  const bool unasked =
      MayMakeUnasked(directory) && (directory.delegated || directory.shared.Take(make.name, kUser));
  if (unasked) {
    directory.names.insert_or_assign(make.name, directory.delegated
                                                    ? Directory::Name{*id, told_in}
                                                    : Directory::Name{*id, 0, files_.mark()});
    SimulatedFile& file = files_.At(*id);
    file.right_known = file.attributes_known = true;
    file.access.may_write = file.must_commit = true;
    file.access.inline_bytes_max = directory.inline_bytes_max;
    file.room_version = file.attributes.data_version;
    file.unsent = std::move(make);
    co_return *id;
  }
  make.bind = true;
  const uint64_t hints_before = hints_generation_;
  const SimulatedMark mark = files_.mark();
  Request request = make;
  const Outcome<MakeReply> reply = co_await Ask<MakeReply>(std::move(request));
  if (!reply.ok()) co_return reply.failure();
  NoteMade(parent, name, *reply, mark, {*id, told_in}, hints_before);
  files_.NoteSent(*id, *reply, mark);
  files_.At(*id).must_commit = true;
  files_.At(*id).room_version = reply->entry.attributes.data_version;
  co_return *id;
}

des::Activity<sai::Outcome<sai::Done>> SimulatedNames::Remove(const std::string& path) {
  const Outcome<Place> place = co_await PlaceOf(path, false);
  if (!place.ok()) co_return place.failure();
  const Outcome<FileId> there = co_await Lookup(place->parent, place->name);
  if (!there.ok()) co_return there.failure();
  if (*there == FileId{}) co_return Done{};
  co_await machines_.MountWait(machine_);
  co_await Work(platform_.client.call);
  std::vector<Request> requests;
  if (auto& unsent = files_.At(*there).unsent) requests.emplace_back(*std::exchange(unsent, {}));
  RemoveRequest remove;
  remove.parent = place->parent;
  remove.name = place->name;
  remove.holds_open = files_.At(*there).handles > 0;
  requests.emplace_back(remove);
  const size_t last = requests.size() - 1;
  const SimulatedMark mark = files_.mark();
  const std::vector<Reply> replies = co_await manager_.Call(id_, std::move(requests));
  const Outcome<RemoveReply> removed = ReplyAs<RemoveReply>(replies, last);
  if (!removed.ok()) co_return removed.failure();
  Directory& directory = directories_[place->parent];
  NoteDirectory(place->parent, removed->parent_attributes, mark);
  directory.shared.End(place->name, 0);
  if (files_.RecalledSince(mark, place->parent) || removed->parent_attributes.shared)
    directory.names.erase(std::string(place->name));
  else  // The kernel has to ask for the name again.
    directory.names.insert_or_assign(std::string(place->name), Directory::Name{});
  co_return Done{};
}

std::vector<FileId> SimulatedNames::EndDelegation(FileId id) {
  Directory& directory = directories_[id];
  directory.delegated = false;
  std::vector<FileId> unsent;
  for (const auto& [name, known] : directory.names)
    if (known.file != FileId{} && files_.At(known.file).unsent) unsent.push_back(known.file);
  return unsent;
}

std::vector<FileId> SimulatedNames::Forget(FileId id) {
  std::vector<FileId> unsent = EndDelegation(id);
  Directory& directory = directories_[id];
  sai::NameEpoch& epoch = files_.name_epoch();
  epoch.NoteForeignChange(loop_.now());
  if (directory.told_in == epoch.number()) {
    epoch.BeginForChange();
    // Files that are open would keep their pages; they are not told apart here.
    files_.pages().Clear();
  }
  directory.complete = false;
  directory.shared.Clear();
  // The unsent ones are found here until the manager knows them.
  std::erase_if(directory.names, [&](const auto& name) {
    return !name.second.seen && std::ranges::count(unsent, name.second.file) == 0;
  });
  return unsent;
}

void SimulatedNames::ForgetSent(FileId directory, const std::vector<FileId>& sent) {
  std::erase_if(directories_[directory].names, [&](const auto& name) {
    return !name.second.seen && std::ranges::count(sent, name.second.file) > 0;
  });
}

}  // namespace mosa::predict
