#include "predictor/run/simulated_client.h"

#include <fmt/format.h>

#include <algorithm>

#include "predictor/run/ask.h"
#include "predictor/run/held_bytes.h"

namespace mosa::predict {
namespace {

constexpr Duration kUpkeepEvery = Seconds(1);

// Removes the first name from `path` and returns it.
std::string_view TakeName(std::string_view& path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  const std::string_view name = path.substr(0, path.find('/'));
  path.remove_prefix(name.size());
  while (path.starts_with('/')) path.remove_prefix(1);
  return name;
}

// Splits "h1,h2".
std::vector<std::string> SplitNames(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    if (!name.empty()) names.emplace_back(name);
    text.remove_prefix(std::min(name.size() + 1, text.size()));
  }
  return names;
}

}  // namespace

SimulatedClient::SimulatedClient(des::EventLoop& loop, const Platform& platform, Machines& machines,
                                 SimulatedManager& manager, ClientId id, MachineIndex on)
    : loop_(loop),
      platform_(platform),
      machines_(machines),
      manager_(manager),
      id_(id),
      machine_(on),
      grants_(loop, manager, id),
      pages_(machines.host(on).page_cache_bytes),
      buffer_freed_(loop),
      io_threads_(loop, platform.client.io_threads),
      fetch_threads_(loop, platform.client.fetch_threads),
      sealer_(loop, 1),
      sealing_(loop) {
  const SessionReady ready = manager_.AddClient(id, on, [this](const Push& push) { OnPush(push); });
  file_ids_ = ready.file_ids;
  des::Spawn(loop_, Upkeep());
}

des::Activity<void> SimulatedClient::Upkeep() {
  for (;;) {
    co_await loop_.Sleep(kUpkeepEvery);
    grants_.GiveBackIdle();
  }
}

bool SimulatedClient::HoldsAllHere(const Layout& layout) const {
  if (!layout.bound()) return false;
  const std::vector<NodeId>& nodes = layout.segments.front().nodes;
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](NodeId node) { return IsLocal(node) && layout.HoldsAll(node); });
}

// ---- names

bool SimulatedClient::MayAnswer(FileId file) const {
  if (file == FileId{}) return true;
  const auto known = files_.find(file);
  return known != files_.end() && (known->second.unsent || known->second.attributes_known);
}

uint64_t SimulatedClient::TellKernel(Directory& directory) {
  return directory.kept.Tell(pages_.epoch(), loop_.now()) ? pages_.epoch() : 0;
}

void SimulatedClient::NoteAttributes(FileId file, const Attributes& attributes, uint64_t mark) {
  File& state = files_[file];
  state.attributes = attributes;
  state.attributes_known = !RecalledSince(mark, file);
}

des::Activity<sai::Outcome<FileId>> SimulatedClient::Lookup(FileId parent, std::string_view name) {
  Directory& directory = directories_[parent];
  if (const auto kept = directory.names.find(name);
      kept != directory.names.end() && kept->second.told_in == pages_.epoch())
    co_return kept->second.file;
  const Timed timed(machines_.residence(), Daemon::kMount, machine_, "fuse.lookup");
  co_await Work(platform_.client.call);
  const uint64_t told_in = TellKernel(directory);
  const auto known = directory.names.find(name);
  if (known != directory.names.end() && MayAnswer(known->second.file)) {
    known->second.told_in = told_in;
    co_return known->second.file;
  }
  if (known == directory.names.end() && directory.complete) co_return FileId{};
  const uint64_t mark = recalls_;
  Request request = LookupRequest{parent, std::string(name)};
  const Outcome<EntryReply> reply = co_await Ask<EntryReply>(std::move(request));
  const bool absent = !reply.ok() && reply.failure().reason == ErrorReason::kNoEntry;
  if (!reply.ok() && !absent) co_return reply.failure();
  const FileId found = absent ? FileId{} : reply->entry.file;
  if (!absent) NoteAttributes(found, reply->entry.attributes, mark);
  if (!RecalledSince(mark, parent))
    directory.names.insert_or_assign(std::string(name), Directory::Name{found, told_in});
  co_return found;
}

des::Activity<sai::Outcome<SimulatedClient::Place>> SimulatedClient::PlaceOf(
    const std::string& path, bool make_directories) {
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

des::Activity<sai::Outcome<FileId>> SimulatedClient::NewFileId() {
  if (file_ids_.count == 0) {
    Request request = FileIdRangeRequest{};
    const Outcome<FileIdRangeReply> range = co_await Ask<FileIdRangeReply>(std::move(request));
    if (!range.ok()) co_return range.failure();
    file_ids_ = *range;
  }
  --file_ids_.count;
  co_return FileId{file_ids_.first.value++};
}

bool SimulatedClient::MayDefer(const Directory& directory) const {
  return directory.delegated && directory.inline_bytes_max > 0 &&
         directory.hints_generation == hints_generation_;
}

void SimulatedClient::NoteMade(FileId parent, std::string_view name, const MakeReply& reply,
                               uint64_t mark, Directory::Name known, uint64_t hints_before) {
  NoteAttributes(reply.entry.file, reply.entry.attributes, mark);
  NoteAttributes(parent, reply.parent_attributes, mark);
  if (reply.entry.attributes.type == FileType::kDirectory) {
    Directory& made = directories_[reply.entry.file];
    made.delegated = made.complete = reply.delegated;
    made.inline_bytes_max = reply.access ? reply.access->inline_bytes_max : 0;
    made.hints_generation = hints_before;
  }
  Directory& directory = directories_[parent];
  if (RecalledSince(mark, parent)) {
    directory.names.erase(std::string(name));
    return;
  }
  directory.names.insert_or_assign(std::string(name), known);
  if (reply.entry.attributes.type == FileType::kDirectory) return;
  directory.delegated = reply.delegated;
  const bool unbound = reply.access && !reply.access->layout.bound();
  directory.inline_bytes_max = unbound ? reply.access->inline_bytes_max : 0;
  directory.hints_generation = hints_before;
}

// Tells the manager of a file that only this mount knows.
des::Activity<sai::Outcome<sai::Done>> SimulatedClient::EnsureMade(FileId file) {
  File& state = files_[file];
  if (!state.unsent) co_return Done{};
  const uint64_t mark = recalls_;
  Request request = *std::exchange(state.unsent, std::nullopt);
  const Outcome<MakeReply> made = co_await Ask<MakeReply>(std::move(request));
  if (!made.ok()) co_return made.failure();
  NoteSent(file, *made, mark);
  co_return Done{};
}

void SimulatedClient::NoteSent(FileId file, const MakeReply& made, uint64_t mark) {
  File& state = files_[file];
  state.manager_counts_open = true;
  NoteAttributes(file, made.entry.attributes, mark);
  if (made.access) state.access = *made.access;
  state.right_known = state.attributes_known;
}

des::Activity<sai::Outcome<FileId>> SimulatedClient::MakeChildDirectory(FileId parent,
                                                                        std::string_view name) {
  const Outcome<FileId> id = co_await NewFileId();
  if (!id.ok()) co_return id.failure();
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
  const uint64_t mark = recalls_;
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

// Creates a file and opens it for writing. A deferred file is known only here until it is bound or
// closed.
des::Activity<sai::Outcome<FileId>> SimulatedClient::Create(FileId parent, std::string_view name,
                                                            const std::string& task) {
  const Outcome<FileId> id = co_await NewFileId();
  if (!id.ok()) co_return id.failure();
  const Timed timed(machines_.residence(), Daemon::kMount, machine_, "fuse.create");
  co_await Work(platform_.client.call);
  MakeRequest make;
  make.parent = parent;
  make.name = name;
  make.file = *id;
  make.permissions = 0644;
  make.task = task;
  make.now = loop_.now();
  make.open = true;
  Directory& directory = directories_[parent];
  const uint64_t told_in = TellKernel(directory);
  if (MayDefer(directory)) {
    directory.names.insert_or_assign(make.name, Directory::Name{*id, told_in});
    File& file = files_[*id];
    file.right_known = file.attributes_known = true;
    file.access.may_write = file.must_commit = true;
    file.access.inline_bytes_max = directory.inline_bytes_max;
    file.room_version = file.attributes.data_version;
    file.unsent = std::move(make);
    co_return *id;
  }
  make.bind = true;
  const uint64_t hints_before = hints_generation_;
  const uint64_t mark = recalls_;
  Request request = make;
  const Outcome<MakeReply> reply = co_await Ask<MakeReply>(std::move(request));
  if (!reply.ok()) co_return reply.failure();
  NoteMade(parent, name, *reply, mark, {*id, told_in}, hints_before);
  NoteSent(*id, *reply, mark);
  files_[*id].must_commit = true;
  files_[*id].room_version = reply->entry.attributes.data_version;
  co_return *id;
}

des::Activity<sai::Outcome<sai::Done>> SimulatedClient::SetHints(FileId file,
                                                                 const HintMap& hints) {
  for (const auto& [name, value] : hints) {
    co_await Work(platform_.client.call);
    SetXattrRequest set;
    set.file = file;
    set.name = "user.mosa." + name;
    set.value = value;
    Request request = set;
    const Outcome<EmptyReply> reply = co_await Ask<EmptyReply>(std::move(request));
    if (!reply.ok()) co_return reply.failure();
    // Cached knowledge of its layout, and of the layout of new files in it or below, is now stale.
    files_[file].right_known = files_[file].attributes_known = false;
    ++hints_generation_;
  }
  co_return Done{};
}

des::Activity<sai::Outcome<sai::Done>> SimulatedClient::MakeDirectory(const std::string& path,
                                                                      const HintMap& hints) {
  const std::string inside = path + "/.";
  const Outcome<Place> place = co_await PlaceOf(inside, true);
  if (!place.ok()) co_return place.failure();
  co_return co_await SetHints(place->parent, hints);
}

des::Activity<sai::Outcome<sai::Done>> SimulatedClient::PrepareOutput(const std::string& path,
                                                                      const HintMap& hints) {
  const Outcome<Place> place = co_await PlaceOf(path, true);
  if (!place.ok()) co_return place.failure();
  // The runner removes an existing output here; in a simulation there is none.
  const Outcome<FileId> there = co_await Lookup(place->parent, place->name);
  if (!there.ok()) co_return there.failure();
  if (hints.empty() || *there != FileId{}) co_return Done{};
  const Outcome<std::shared_ptr<Writing>> made =
      co_await OpenToWrite(path, {}, Content::kReplaced, kNoTask);
  if (!made.ok()) co_return made.failure();
  const Outcome<Done> closed = co_await CloseWrite(**made);
  if (!closed.ok()) co_return closed.failure();
  const Outcome<FileId> file = co_await Lookup(place->parent, place->name);
  if (!file.ok()) co_return file.failure();
  const Outcome<Done> set = co_await SetHints(*file, hints);
  if (!set.ok()) co_return set.failure();
  SetAttributesRequest times;
  times.file = *file;
  times.access_time = times.modify_time = Time{};
  Request request = times;
  const uint64_t mark = recalls_;
  const Outcome<AttributesReply> marked = co_await Ask<AttributesReply>(std::move(request));
  if (!marked.ok()) co_return marked.failure();
  NoteAttributes(*file, marked->attributes, mark);
  co_return Done{};
}

des::Activity<sai::Outcome<sai::Done>> SimulatedClient::Remove(const std::string& path) {
  const Outcome<Place> place = co_await PlaceOf(path, false);
  if (!place.ok()) co_return place.failure();
  const Outcome<FileId> there = co_await Lookup(place->parent, place->name);
  if (!there.ok()) co_return there.failure();
  if (*there == FileId{}) co_return Done{};
  co_await Work(platform_.client.call);
  std::vector<Request> requests;
  if (auto& unsent = files_[*there].unsent) requests.emplace_back(*std::exchange(unsent, {}));
  RemoveRequest remove;
  remove.parent = place->parent;
  remove.name = place->name;
  requests.emplace_back(remove);
  const size_t last = requests.size() - 1;
  const uint64_t mark = recalls_;
  const std::vector<Reply> replies = co_await manager_.Call(id_, std::move(requests));
  const Outcome<RemoveReply> removed = ReplyAs<RemoveReply>(replies, last);
  if (!removed.ok()) co_return removed.failure();
  Directory& directory = directories_[place->parent];
  NoteAttributes(place->parent, removed->parent_attributes, mark);
  if (RecalledSince(mark, place->parent))
    directory.names.erase(std::string(place->name));
  else  // The kernel has to ask for the name again.
    directory.names.insert_or_assign(std::string(place->name), Directory::Name{});
  co_return Done{};
}

des::Activity<sai::Outcome<FileLook>> SimulatedClient::Look(const std::string& path) {
  co_await Work(platform_.runner.look);
  const Outcome<Place> place = co_await PlaceOf(path, false);
  if (!place.ok()) co_return place.failure();
  const Outcome<FileId> file = co_await Lookup(place->parent, place->name);
  if (!file.ok()) co_return file.failure();
  FileLook look;
  const auto status = manager_.core().GetFileStatus("/" + path);
  if (*file == FileId{} || !status.ok())
    co_return Failure{StatusCode::kNotFound, ErrorReason::kNoEntry,
                      fmt::format("'{}' does not exist", path)};
  look.size_bytes = status->entry.attributes.size_bytes;
  if (look.size_bytes == 0) co_return look;
  if (status->is_inline) {
    Request request = GetXattrRequest{*file, "user.mosa.location"};
    const Outcome<GetXattrReply> reply = co_await Ask<GetXattrReply>(std::move(request));
    if (!reply.ok()) co_return reply.failure();
    for (const std::string& node : SplitNames(reply->value))
      if (const auto machine = manager_.MachineNamed(node))
        look.bytes_by_machine[*machine] = look.size_bytes;
    co_return look;
  }
  // The real runner asks for the layout's text. Here the layout is known as a value. Instead of
  // that long text, ask for an attribute that does not exist, which costs the manager as much.
  std::vector<Request> requests;
  requests.emplace_back(GetXattrRequest{*file, "user.layout"});
  const std::vector<Reply> replies = co_await manager_.Call(id_, std::move(requests));
  const ReadableFile readable = manager_.core().ListReadable({"/" + path}).front();
  const Layout& layout = readable.failure ? status->layout : readable.layout;
  for (const auto& [node, bytes, positions] : BytesByNode(layout, look.size_bytes))
    look.bytes_by_machine[manager_.MachineOf(node)] += bytes;
  co_return look;
}

std::optional<MachineIndex> SimulatedClient::HolderOf(const std::string& path,
                                                      uint64_t offset) const {
  const auto status = manager_.core().GetFileStatus("/" + path);
  if (!status.ok() || !status->layout.bound()) return std::nullopt;
  return manager_.MachineOf(FirstPiece(status->layout, {offset, offset + 1}).nodes.front());
}

// ---- unsolicited messages from the manager

void SimulatedClient::OnPush(const Push& push) {
  if (const auto* recall = std::get_if<RecallPush>(&push)) {
    des::Spawn(loop_, Confirm(*recall));
  } else if (const auto* grant = std::get_if<GrantRecallPush>(&push)) {
    grants_.GiveBack(grant->node);
  }
}

des::Activity<void> SimulatedClient::Confirm(RecallPush recall) {
  last_recalls_[recall.file] = ++recalls_;
  File& state = files_[recall.file];
  state.right_known = false;
  if (recall.kind != RecallKind::kAccess) state.attributes_known = false;
  blocks_.DropFile(recall.file);
  std::vector<FileId> unsent;
  if (recall.kind == RecallKind::kEntries) {
    Directory& directory = directories_[recall.file];
    for (const auto& [name, known] : directory.names)
      if (const auto file = files_.find(known.file); file != files_.end() && file->second.unsent)
        unsent.push_back(known.file);
    if (directory.kept.Forget(pages_.epoch(), loop_.now())) pages_.BeginEpoch();
    directory.delegated = directory.complete = false;
    directory.inline_bytes_max = 0;
    directory.names.clear();
  }
  co_await Work(platform_.client.call);
  for (const FileId file : unsent)  // The file's close learns of a failure.
    static_cast<void>(co_await EnsureMade(file));
  RecallDoneRequest done;
  done.recall = recall.recall;
  done.holds_open = state.handles > 0;
  done.pinned = state.pinned;
  done.writes = state.writers > 0;
  if (done.writes) state.manager_counts_open = true;
  manager_.Send(id_, {done});
}

}  // namespace mosa::predict
