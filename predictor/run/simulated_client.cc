#include "predictor/run/simulated_client.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/model/node_bytes.h"

namespace mosa::predict {
namespace {

constexpr Duration kUpkeepEvery = Seconds(1);

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
    : MountPart(loop, platform, machines, manager, id, on),
      files_(*this),
      reads_(*this, files_),
      writes_(*this, files_),
      names_(*this, files_,
             manager.AddClient(id, on, [this](const Push& push) { OnPush(push); }).file_ids) {
  des::Spawn(loop_, Upkeep());
}

des::Activity<void> SimulatedClient::Upkeep() {
  for (;;) {
    co_await loop_.Sleep(kUpkeepEvery);
    writes_.grants().GiveBackIdle();
  }
}

des::Activity<sai::Outcome<FileId>> SimulatedClient::Find(const std::string& path) {
  const Outcome<SimulatedNames::Place> place = co_await names_.PlaceOf(path, false);
  if (!place.ok()) co_return place.failure();
  co_return co_await names_.Lookup(place->parent, place->name);
}

// As the runner does it: the kernel looks the path up for each hint.
des::Activity<sai::Outcome<sai::Done>> SimulatedClient::SetHints(const std::string& path,
                                                                 const HintMap& hints) {
  for (const auto& [name, value] : hints) {
    const Outcome<FileId> file = co_await Find(path);
    if (!file.ok()) co_return file.failure();
    co_await machines_.MountWait(machine_);
    co_await Work(platform_.client.call);
    SetXattrRequest set;
    set.file = *file;
    set.name = "user.mosa." + name;
    set.value = value;
    Request request = set;
    const Outcome<EmptyReply> reply = co_await Ask<EmptyReply>(std::move(request));
    if (!reply.ok()) co_return reply.failure();
    // Cached knowledge of its layout, and of the layout of new files in it or below, is now stale.
    files_.At(*file).right_known = files_.At(*file).attributes_known = false;
    names_.NoteHintsChanged();
  }
  co_return Done{};
}

des::Activity<sai::Outcome<sai::Done>> SimulatedClient::MakeDirectory(const std::string& path,
                                                                      const HintMap& hints) {
  const std::string inside = path + "/.";
  const Outcome<SimulatedNames::Place> place = co_await names_.PlaceOf(inside, true);
  if (!place.ok()) co_return place.failure();
  co_return co_await SetHints(path, hints);
}

des::Activity<sai::Outcome<sai::Done>> SimulatedClient::PrepareOutput(const std::string& path,
                                                                      const HintMap& hints) {
  const Outcome<SimulatedNames::Place> place = co_await names_.PlaceOf(path, true);
  if (!place.ok()) co_return place.failure();
  // The runner removes an existing output here; in a simulation there is none.
  const Outcome<FileId> there = co_await names_.Lookup(place->parent, place->name);
  if (!there.ok()) co_return there.failure();
  if (hints.empty() || *there != FileId{}) co_return Done{};
  const Outcome<std::shared_ptr<Writing>> made =
      co_await OpenToWrite(path, {}, Content::kReplaced, kNoTask);
  if (!made.ok()) co_return made.failure();
  const Outcome<Done> closed = co_await writes_.CloseWrite(**made);
  if (!closed.ok()) co_return closed.failure();
  const Outcome<Done> set = co_await SetHints(path, hints);
  if (!set.ok()) co_return set.failure();
  const Outcome<FileId> file = co_await Find(path);
  if (!file.ok()) co_return file.failure();
  SetAttributesRequest times;
  times.file = *file;
  times.access_time = times.modify_time = Time{};
  Request request = times;
  const SimulatedMark mark = files_.mark();
  const Outcome<AttributesReply> marked = co_await Ask<AttributesReply>(std::move(request));
  if (!marked.ok()) co_return marked.failure();
  files_.NoteAttributes(*file, marked->attributes, mark);
  co_return Done{};
}

des::Activity<sai::Outcome<FileLook>> SimulatedClient::Look(const std::string& path) {
  co_await Work(platform_.runner.look);
  const Outcome<FileId> file = co_await Find(path);
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
    writes_.grants().GiveBack(grant->node);
  }
}

des::Activity<void> SimulatedClient::Confirm(RecallPush recall) {
  files_.NoteRecall(recall.file);
  SimulatedFile& state = files_.At(recall.file);
  state.right_known = false;
  if (recall.kind != RecallKind::kAccess) state.attributes_known = false;
  if (recall.kind != RecallKind::kAccess) files_.blocks().DropFile(recall.file);
  std::vector<FileId> unsent;
  if (recall.kind == RecallKind::kEntries) unsent = names_.Forget(recall.file);
  if (recall.kind == RecallKind::kDelegation) unsent = names_.EndDelegation(recall.file);
  co_await machines_.MountWait(machine_);
  co_await Work(platform_.client.call);
  for (const FileId file : unsent)  // The file's close learns of a failure.
    static_cast<void>(co_await files_.EnsureMade(file));
  if (recall.kind == RecallKind::kEntries) names_.ForgetSent(recall.file, unsent);
  RecallDoneRequest done;
  done.recall = recall.recall;
  done.holds_open = state.handles > 0;
  done.pinned = state.pinned;
  done.writes = state.writers > 0;
  if (done.writes) state.manager_counts_open = true;
  manager_.Send(id_, {done});
}

des::Activity<sai::Outcome<BytesRead>> SimulatedClient::ReadFile(const std::string& path,
                                                                 const std::string& task,
                                                                 std::optional<ByteRange> part) {
  const Outcome<std::shared_ptr<Reading>> opened = co_await OpenToRead(path, task);
  if (!opened.ok()) co_return opened.failure();
  Reading& reading = **opened;
  SimulatedReads::ReadByProgram(reading);
  co_await reads_.ReadPart(reading, part.value_or(ByteRange{0, reading.size_bytes}));
  const BytesRead read = co_await reads_.CloseRead(reading);
  co_return read;
}

des::Activity<sai::Outcome<std::shared_ptr<SimulatedClient::Reading>>> SimulatedClient::OpenToRead(
    const std::string& path, const std::string& task) {
  const Outcome<FileId> id = co_await Find(path);
  if (!id.ok()) co_return id.failure();
  if (*id == FileId{})
    co_return Failure{StatusCode::kNotFound, ErrorReason::kNoEntry,
                      fmt::format("'{}' does not exist", path)};
  const Outcome<Done> opened = co_await reads_.OpenForReading(*id, task);
  if (!opened.ok()) co_return opened.failure();
  std::shared_ptr<Reading> reading =
      reads_.ReadingOf(*id, files_.At(*id).attributes.size_bytes, false);
  if (files_.At(*id).counts_readers) reading->task = &task;
  co_return reading;
}

des::Activity<sai::Outcome<sai::Done>> SimulatedClient::WriteFile(const std::string& path,
                                                                  uint64_t size_bytes,
                                                                  const std::string& task) {
  return WriteAll(path, {0, size_bytes}, Content::kReplaced, task);
}

des::Activity<sai::Outcome<sai::Done>> SimulatedClient::UpdateFile(const std::string& path,
                                                                   ByteRange part,
                                                                   const std::string& task) {
  return WriteAll(path, part, Content::kKept, task);
}

des::Activity<sai::Outcome<sai::Done>> SimulatedClient::WriteAll(const std::string& path,
                                                                 ByteRange range, Content before,
                                                                 const std::string& task) {
  const Outcome<std::shared_ptr<Writing>> opened = co_await OpenToWrite(path, range, before, task);
  if (!opened.ok()) co_return opened.failure();
  const Outcome<Done> written = co_await writes_.CloseWrite(**opened);
  co_return written;
}

des::Activity<sai::Outcome<std::shared_ptr<SimulatedClient::Writing>>> SimulatedClient::OpenToWrite(
    const std::string& path, ByteRange range, Content before, const std::string& task) {
  const Outcome<FileId> file = co_await FileToWrite(path, before, task);
  if (!file.ok()) co_return file.failure();
  co_return co_await writes_.WritingOf(*file, path, range, before, task);
}

des::Activity<std::shared_ptr<SimulatedClient::Reading>> SimulatedClient::ReadBack(
    Writing& writing) {
  const uint64_t end = co_await writes_.SendAll(writing);
  co_return reads_.ReadingOf(writing.writer.file, end, true);
}

des::Activity<sai::Outcome<FileId>> SimulatedClient::FileToWrite(const std::string& path,
                                                                 Content before,
                                                                 const std::string& task) {
  const Outcome<SimulatedNames::Place> place = co_await names_.PlaceOf(path, false);
  if (!place.ok()) co_return place.failure();
  const Outcome<FileId> file = co_await names_.Lookup(place->parent, place->name);
  if (!file.ok()) co_return file.failure();
  if (*file != FileId{}) {
    const Outcome<Done> opened = co_await writes_.OpenForWriting(*file, task, before);
    if (!opened.ok()) co_return opened.failure();
    co_return *file;
  }
  if (before == Content::kKept)
    co_return Failure{StatusCode::kNotFound, ErrorReason::kNoEntry,
                      fmt::format("'{}' does not exist", path)};
  const Outcome<FileId> made = co_await names_.Create(place->parent, place->name, task);
  co_return made;
}

}  // namespace mosa::predict
