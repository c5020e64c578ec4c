#include "predictor/run/simulated_writes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client-sai/core/copy_wait.h"
#include "client-sai/core/rules.h"
#include "client-sai/core/stream.h"
#include "client-sai/core/write_buffer.h"

namespace mosa::predict {
namespace {

// Bytes on the wire of a write's acknowledgement, and of a question about an object's size.
constexpr uint64_t kWrittenBytes = 100;
constexpr uint64_t kStatBytes = 140;

// Whether the file's bytes at `offset` are its first on `node`, if it is written from its
// beginning.
bool MakesObject(const Layout& layout, NodeId node, uint64_t offset) {
  const Segment& segment = layout.SegmentAt(offset);
  const uint64_t chunk = offset / layout.chunk_bytes - segment.begin / layout.chunk_bytes;
  if (chunk >= segment.width || (offset != segment.begin && offset % layout.chunk_bytes != 0))
    return false;
  for (const Segment& before : layout.segments) {
    if (before.begin == segment.begin) break;
    if (std::ranges::find(before.nodes, node) != before.nodes.end()) return false;
  }
  return true;
}

}  // namespace

const FullStore* SimulatedWrites::FullOf(const std::string& task) const {
  const auto found = full_.find(task);
  return found == full_.end() ? nullptr : &found->second;
}

void SimulatedWrites::NoteFull(const Writing& writing, const Outcome<Done>& written) {
  if (!written.ok() && written.failure().reason == ErrorReason::kNoSpace)
    full_.insert_or_assign(writing.task, writing.writer.lacking);
}

Failure SimulatedWrites::NoSpace(Writer& writer, const std::vector<NodeId>& nodes,
                                 const std::string& why) {
  std::vector<std::string>& names = writer.lacking.nodes;
  names.clear();
  for (const NodeId node : nodes) names.push_back(manager_.NameOf(node));
  const bool is_one = nodes.size() == 1;
  return {StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
          fmt::format("{} {} {} full: '{}' ({} B) does not fit{}{}", is_one ? "node" : "nodes",
                      fmt::join(names, ", "), is_one ? "is" : "are", writer.path, writer.range.end,
                      why.empty() ? "" : ": ", why)};
}

des::Activity<std::shared_ptr<SimulatedWrites::Writing>> SimulatedWrites::WritingOf(
    FileId file, const std::string& path, ByteRange range, Content before,
    const std::string& task) {
  SimulatedFile& state = files_.At(file);
  auto writing = std::make_shared<Writing>(loop_, file, state, path, range, before, task);
  ++state.handles;
  ++state.writers;
  const Layout& layout = state.access.layout;
  const bool is_here = layout.bound() && layout.OnOneNode() && files_.HoldsAllHere(layout);
  Writer& writer = writing->writer;
  writer.is_stream = sai::OpensAsStream(state.attributes.stream, /*write=*/true);
  writer.published = loop_.now() - sai::kPublishAfter;
  writer.keeps_pages =
      !writer.is_stream && sai::KeepsWrittenPages(before == Content::kReplaced, is_here);
  writer.by_kernel = co_await MayWriteByKernel(writer);
  co_return writing;
}

des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::WritePart(Writing& writing,
                                                                  uint64_t bytes) {
  Writer& writer = writing.writer;
  while (bytes > 0 && writing.written.ok() && !writer.range.empty()) {
    if (writing.at == writer.range.end) writing.at = writer.range.begin;
    const ByteRange range{writing.at, std::min(writing.at + bytes, writer.range.end)};
    writing.at = range.end;
    writing.is_whole = writing.is_whole || range.end == writer.range.end;
    bytes -= range.size();
    if (writer.by_kernel) {
      co_await machines_.Objects(machine_, range.size());
      co_await Work(platform_.client.passthrough_write, range.size());
      writer.state.unsealed = true;
      continue;
    }
    if (writer.is_stream)
      writing.written = co_await WriteStream(writing, range);
    else
      writing.written = co_await WriteRange(writer, range);
  }
  NoteFull(writing, writing.written);
  co_return writing.written;
}

des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::WriteStream(Writing& writing,
                                                                    ByteRange range) {
  Writer& writer = writing.writer;
  co_await writing.io.Take();
  Outcome<Done> written = writing.written;  // It may have failed meanwhile.
  for (uint64_t at = range.begin; at < range.end && written.ok();) {
    const uint64_t end = std::min(range.end, at + (sai::kPublishBytes - writer.unpublished_bytes));
    written = co_await WriteRange(writer, {at, end});
    writer.unpublished_bytes += end - at;
    at = end;
    const bool is_due = writer.unpublished_bytes >= sai::kPublishBytes ||
                        loop_.now() - writer.published >= sai::kPublishAfter;
    if (written.ok() && is_due) written = co_await Publish(writer);
  }
  if (writer.unpublished_bytes > 0 && !std::exchange(writing.publishes_later, true))
    des::Spawn(loop_, PublishLater(writing.shared_from_this()));
  writing.io.Return();
  co_return written;
}

des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::Publish(Writer& writer) {
  writer.published = loop_.now();
  writer.unpublished_bytes = 0;
  SendOpenExtent(writer);
  while (writer.sending.under_way() > 0) co_await writer.sending.changed().Wait();
  if (writer.full) co_return NoSpace(writer, {*writer.full});
  const Outcome<Done> committed = co_await Commit(writer, /*closes=*/false);
  files_.changed().Give();
  co_return committed;
}

des::Activity<void> SimulatedWrites::PublishLater(std::shared_ptr<Writing> writing) {
  co_await loop_.Sleep(sai::kPublishAfter);
  writing->publishes_later = false;
  if (writing->is_closed) co_return;
  co_await writing->io.Take();
  if (!writing->is_closed && writing->written.ok() && writing->writer.unpublished_bytes > 0)
    writing->written = co_await Publish(writing->writer);
  writing->io.Return();
}

void SimulatedWrites::EndStream(Writer& writer) {
  SimulatedFile& state = writer.state;
  if (!writer.is_stream) return;
  files_.changed().Give();
  if (state.writers > 1) return;
  if (std::exchange(state.manager_counts_open, false))
    manager_.Send(id_, {ReleaseRequest{writer.file}});
  state.attributes_known = false;
}

des::Activity<uint64_t> SimulatedWrites::SendAll(Writing& writing) {
  Writer& writer = writing.writer;
  SendOpenExtent(writer);
  while (writer.sending.under_way() > 0) co_await writer.sending.changed().Wait();
  co_return writing.is_whole ? writer.range.end : writing.at;
}

des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::CloseWrite(Writing& writing) {
  Writer& writer = writing.writer;
  // What fails is in writing.written.
  if (!writing.is_whole)
    static_cast<void>(co_await WritePart(writing, writer.range.end - writing.at));
  const Timed timed(machines_.residence(), Daemon::kMount, machine_, "fuse.flush");
  writing.is_closed = true;
  if (writer.is_stream) co_await writing.io.Take();  // Nobody takes it any more.
  Outcome<Done> written = writing.written;
  if (writer.by_kernel) written = co_await SettleKernelWrites(writer);
  SendOpenExtent(writer);
  while (writer.sending.under_way() > 0) co_await writer.sending.changed().Wait();
  if (writer.full) written = NoSpace(writer, {*writer.full});
  co_await machines_.MountWait(machine_);
  co_await Work(platform_.client.call);
  if (written.ok()) written = co_await Commit(writer, /*closes=*/true);
  if (written.ok() && writer.keeps_pages && writer.state.access.layout.bound())
    files_.pages().Put(writer.file, writer.state.attributes.data_version,
                       writer.state.attributes.size_bytes);
  NoteFull(writing, written);
  EndStream(writer);
  Leave(writer);
  if (written.ok() && !writer.is_stream) co_await AwaitCopies(writer);
  files_.EndHandle(writer.file);  // The kernel releases it after the close.
  co_return written;
}

des::Activity<void> SimulatedWrites::AbandonWrite(Writing& writing) {
  Writer& writer = writing.writer;
  writing.is_closed = true;
  if (writer.is_stream) co_await writing.io.Take();
  const uint64_t unsent = std::exchange(writer.open_extent, {}).size();
  writer.buffered_bytes -= unsent;
  buffered_bytes_ -= unsent;
  if (unsent > 0) buffer_freed_.Give();
  while (writer.sending.under_way() > 0) co_await writer.sending.changed().Wait();
  if (writer.by_kernel) {
    if (!writing.is_whole) writer.range.end = writing.at;
    static_cast<void>(co_await SettleKernelWrites(writer));  // Nobody is told of a lack of room.
  }
  EndStream(writer);
  Leave(writer);
  files_.EndHandle(writer.file);
  co_await machines_.MountWait(machine_);
  co_await Work(platform_.client.call);
}

des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::OpenForWriting(FileId file,
                                                                       const std::string& task,
                                                                       Content before) {
  const Timed timed(machines_.residence(), Daemon::kMount, machine_, "fuse.open");
  co_await machines_.MountWait(machine_);
  co_await Work(platform_.client.call);
  SimulatedFile& state = files_.At(file);
  // The manager counts writers: it has to hear of each.
  if (!state.unsent && !state.manager_counts_open) state.right_known = false;
  const Outcome<Done> opened = co_await files_.EnsureRight(file, true, true, task);
  if (!opened.ok() || before == Content::kKept) co_return opened;
  co_return co_await Cut(file);
}

// To nothing.
des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::Cut(FileId file) {
  SimulatedFile& state = files_.At(file);
  if (state.unsent) {  // Nobody else knows it.
    state.written_end.reset();
    co_return Done{};
  }
  SetAttributesRequest cut;
  const bool in_objects = state.access.layout.bound() && !state.access.is_inline;
  if (in_objects && state.attributes.size_bytes > 0) {
    cut.generation = state.access.generation;
    des::Group others(loop_);
    const std::vector<NodeId> nodes = state.access.layout.Nodes();
    for (size_t i = 1; i < nodes.size(); ++i) {
      others.Begin();
      des::Spawn(loop_, AskBeside(Access::kCut, nodes[i], file, others));
    }
    co_await AskNode(Access::kCut, nodes.front(), file);
    while (others.under_way() > 0) co_await others.changed().Wait();
    manager_.Cut(file);
    state.must_commit = true;
  }
  cut.file = file;
  cut.size_bytes = 0;
  cut.modify_time_now = true;
  const SimulatedMark mark = files_.mark();
  Request request = cut;
  const Outcome<AttributesReply> reply = co_await Ask<AttributesReply>(std::move(request));
  if (!reply.ok()) co_return reply.failure();
  files_.NoteAttributes(file, reply->attributes, mark);
  state.right_known = reply->access && !files_.RecalledSince(mark, file);
  if (reply->access) state.access = *reply->access;
  state.pages.Clear();
  state.allocated.clear();
  state.room_version = reply->attributes.data_version;
  files_.blocks().DropFile(file);
  co_return Done{};
}

// The kernel may write the object directly if it is a plain file of this host. Room for the
// beginning is reserved; the rest is taken when the file is closed.
des::Activity<bool> SimulatedWrites::MayWriteByKernel(Writer& writer) {
  const Layout& layout = writer.state.access.layout;
  const DataAccess& right = writer.state.access;
  if (platform_.client.passthrough && !writer.is_stream && writer.state.right_known &&
      layout.bound() && layout.OnOneNode() && !right.copied_eagerly && right.close_copies <= 1 &&
      IsLocal(layout.segments.front().nodes.front())) {
    const NodeId node = layout.segments.front().nodes.front();
    if (co_await grants_.Reserve(node, sai::kPassthroughRoomBytes)) {
      if (manager_.StoredOn(node, writer.file) == 0) co_await Work(platform_.node.make);
      writer.state.pinned = true;
      co_return true;
    }
  }
  co_return false;
}

des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::WriteRange(Writer& writer,
                                                                   ByteRange whole) {
  const uint64_t step = platform_.client.fuse_write_bytes;
  for (uint64_t at = whole.begin; at < whole.end; at += step) {
    const ByteRange range{at, std::min(at + step, whole.end)};
    const Outcome<Done> right = co_await files_.EnsureRight(writer.file, true, false, kNoTask);
    if (!right.ok()) co_return right.failure();
    NoteWritten(writer, range.end);
    const Timed timed(machines_.residence(), Daemon::kMount, machine_, "fuse.write");
    NoteKernel(Access::kWrite, range);
    co_await machines_.MountWait(machine_);
    co_await Work(platform_.client.fuse_write, range.size());
    const DataAccess& access = writer.state.access;
    if (!access.layout.bound() && range.end <= access.inline_bytes_max) continue;
    ByteRange store = range;
    if (!access.layout.bound()) {
      const Outcome<Done> bound = co_await EnsureBound(writer, range.end);
      if (!bound.ok()) co_return bound.failure();
      store.begin = writer.range.begin;  // Bytes that were inline go first.
    }
    const Outcome<Done> written = co_await WriteBound(writer, store);
    if (!written.ok()) co_return written.failure();
  }
  co_return Done{};
}

des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::SettleKernelWrites(Writer& writer) {
  const NodeId node = writer.state.access.layout.segments.front().nodes.front();
  SimulatedFile& state = writer.state;
  const ByteRange pages = WidenToPages(writer.range);
  const uint64_t used = manager_.TakeFresh(writer.file, pages);
  bool has_room = true;
  if (used > sai::kPassthroughRoomBytes) {
    has_room = co_await grants_.Take(node, used - sai::kPassthroughRoomBytes);
  }
  grants_.Settle(node, std::min(used, sai::kPassthroughRoomBytes), sai::kPassthroughRoomBytes);
  if (!has_room || !manager_.Store(node, writer.file, used)) co_return NoSpace(writer, {node});
  state.allocated[node] = RoundUpToPage(manager_.StoredOn(node, writer.file));
  NoteWritten(writer, writer.range.end);
  co_return Done{};
}

des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::EnsureBound(Writer& writer,
                                                                    uint64_t first_bytes) {
  SimulatedFile& state = writer.state;
  if (state.unsent) {  // One envelope makes the file and asks where its bytes go.
    const SimulatedMark mark = files_.mark();
    std::vector<Request> requests;
    requests.emplace_back(*std::exchange(state.unsent, std::nullopt));
    requests.emplace_back(BindRequest{writer.file, first_bytes});
    const std::vector<Reply> replies = co_await manager_.Call(id_, std::move(requests));
    const Outcome<MakeReply> made = ReplyAs<MakeReply>(replies, 0);
    if (!made.ok()) co_return made.failure();
    files_.NoteSent(writer.file, *made, mark);
    const Outcome<BindReply> bound = ReplyAs<BindReply>(replies, 1);
    if (bound.ok()) state.access = bound->access;
  }
  if (state.access.layout.bound()) co_return Done{};
  for (sai::BindRetries retries(loop_.now());;) {
    const SimulatedMark mark = files_.mark();
    Request request = BindRequest{writer.file, first_bytes};
    const Outcome<BindReply> bound = co_await Ask<BindReply>(std::move(request));
    if (bound.ok()) {
      state.access = bound->access;
      state.right_known = !files_.RecalledSince(mark, writer.file);
      co_return Done{};
    }
    const std::optional<Duration> delay = retries.DelayAfter(bound.failure(), loop_.now());
    if (!delay) co_return bound.failure();
    co_await loop_.Sleep(*delay);
  }
}

des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::WriteBound(Writer& writer,
                                                                   ByteRange range) {
  while (!range.empty()) {
    const Piece piece = FirstPiece(writer.state.access.layout, range, sai::kPieceBytesMax);
    const std::optional<NodeId> full = co_await TakeRoom(writer, piece);
    if (full) {
      const Outcome<Done> spilled = co_await Spill(writer, piece.range, *full);
      if (!spilled.ok()) co_return spilled.failure();
      continue;
    }
    writer.refusing.clear();
    writer.refusals = 0;
    range.begin = piece.range.end;
    const bool all_local = std::all_of(piece.nodes.begin(), piece.nodes.end(),
                                       [this](NodeId node) { return IsLocal(node); });
    if (!all_local) {
      co_await BufferPiece(writer, piece.range);
      continue;
    }
    const uint64_t fresh_bytes = manager_.TakeFresh(writer.file, piece.range);
    if (fresh_bytes > 0 &&
        MakesObject(writer.state.access.layout, piece.nodes.front(), piece.range.begin)) {
      co_await machines_.NodeWait(machine_);  // It hands out the object's descriptor.
      co_await Work(platform_.node.make);
    }
    co_await machines_.Objects(machine_, piece.range.size());
    co_await Work(platform_.client.local_write, piece.range.size());
    writer.state.unsealed = true;
    for (const NodeId node : piece.nodes)
      if (!manager_.Store(node, writer.file, fresh_bytes)) co_return NoSpace(writer, {node});
  }
  co_return Done{};
}

// Takes room on every node that stores a copy. Returns a node that has none; then none is taken
// anywhere.
des::Activity<std::optional<NodeId>> SimulatedWrites::TakeRoom(Writer& writer, const Piece& piece) {
  const ByteRange pages = WidenToPages(piece.range);
  const uint64_t bytes = writer.state.pages.MissingBytes(pages);
  for (size_t i = 0; i < piece.nodes.size(); ++i) {
    bool taken = grants_.TakeHeld(piece.nodes[i], bytes);
    if (!taken) taken = co_await grants_.Take(piece.nodes[i], bytes);
    if (taken) continue;
    for (size_t before = 0; before < i; ++before) grants_.PutBack(piece.nodes[before], bytes);
    co_return piece.nodes[i];
  }
  for (const NodeId node : piece.nodes) writer.state.allocated[node] += bytes;
  writer.state.pages.Add(pages);
  writer.pages_end = std::max(writer.pages_end, pages.end);
  co_return std::nullopt;
}

// Adds a piece to the write buffer, which is limited per file and per mount. Complete extents are
// sent.
des::Activity<void> SimulatedWrites::BufferPiece(Writer& writer, ByteRange range) {
  const ClientPlatform& limits = platform_.client;
  const uint64_t chunk_bytes = writer.state.access.layout.chunk_bytes;
  while (!range.empty()) {
    const uint64_t boundary = sai::WriteBuffer::BoundaryAfter(range.begin, chunk_bytes);
    const uint64_t end = std::min(range.end, boundary);
    const uint64_t bytes = end - range.begin;
    while (writer.buffered_bytes > 0 &&
           (writer.buffered_bytes + bytes > limits.write_behind_file_bytes_max ||
            buffered_bytes_ + bytes > limits.write_behind_bytes_max)) {
      SendOpenExtent(writer);
      co_await buffer_freed_.Wait();
    }
    writer.buffered_bytes += bytes;
    buffered_bytes_ += bytes;
    if (writer.open_extent.end != range.begin) SendOpenExtent(writer);
    if (writer.open_extent.empty()) writer.open_extent = {range.begin, range.begin};
    writer.open_extent.end = end;
    if (end == boundary) SendOpenExtent(writer);
    range.begin = end;
  }
}

void SimulatedWrites::SendOpenExtent(Writer& writer) {
  if (writer.open_extent.empty()) return;
  writer.sending.Begin();
  const ByteRange extent = std::exchange(writer.open_extent, {});
  des::Spawn(loop_, SendExtent(writer, extent));
}

des::Activity<void> SimulatedWrites::SendExtent(Writer& writer, ByteRange extent) {
  co_await io_threads_.Take();
  const std::vector<Piece> pieces = SplitRange(writer.state.access.layout, extent);
  for (const Piece& piece : pieces) {
    const uint64_t fresh_bytes = manager_.TakeFresh(writer.file, piece.range);
    for (const NodeId node : piece.nodes) {
      const bool makes =
          fresh_bytes > 0 && MakesObject(writer.state.access.layout, node, piece.range.begin);
      const bool stored = co_await StoreOn(node, writer.file, piece.range, fresh_bytes, makes);
      if (!stored) writer.full = node;
    }
  }
  io_threads_.Return();
  writer.buffered_bytes -= extent.size();
  buffered_bytes_ -= extent.size();
  writer.sending.End();
  buffer_freed_.GiveLast();
}

des::Activity<bool> SimulatedWrites::StoreOn(NodeId node, FileId file, ByteRange range,
                                             uint64_t fresh_bytes, bool makes) {
  NoteNode(Access::kWrite, node, file, range);
  const uint64_t bytes = range.size();
  const MachineIndex there = manager_.MachineOf(node);
  SimulatedResidence& residence = machines_.residence();
  const Timed timed(residence, Daemon::kMount, machine_, "node.write", there);
  co_await machines_.Work(machine_, platform_.client.send.Call());
  const Time sent = loop_.now();
  const Duration storing =
      platform_.node.write.Of(bytes) + (makes ? platform_.node.make.Call() : Duration());
  const Duration stretched = machines_.Stretched(there, storing);
  co_await machines_.Transfer(machine_, there, bytes, platform_.client.send.OfBytes(bytes),
                              storing);
  co_await machines_.NodeWait(there);
  const Time came = loop_.now();
  co_await machines_.Objects(there, bytes);
  residence.Add(Daemon::kStorage, there, "write.object", loop_.now() - came + stretched);
  residence.Add(Daemon::kStorage, there, "write", loop_.now() - sent, machine_);
  const bool stored = manager_.Store(node, file, fresh_bytes);
  co_await loop_.Sleep(machines_.SendMessage(there, machine_, kWrittenBytes));
  co_return stored;
}

void SimulatedWrites::NoteWritten(Writer& writer, uint64_t end) {
  SimulatedFile& state = writer.state;
  state.must_commit = true;
  state.written_end = std::max(state.written_end.value_or(0), end);
}

void SimulatedWrites::Leave(Writer& writer) {
  SimulatedFile& state = writer.state;
  --state.writers;
  state.pinned = false;
  if (state.writers > 0 || !state.unsealed) return;
  state.unsealed = false;
  sealing_.Begin();
  des::Spawn(loop_, Seal(writer.file));
}

// A node computes checksums at once for bytes that pass through its daemon. An object that was
// written directly is read again completely when its last writer has left, one object at a time.
// Nobody waits for that. The platform has no figure for it: it costs as much as reading the object.
des::Activity<void> SimulatedWrites::Seal(FileId file) {
  co_await sealer_.Take();
  uint64_t bytes = 0;
  for (const NodeId node : files_.At(file).access.layout.Nodes())
    if (IsLocal(node)) bytes += manager_.StoredOn(node, file);
  const ClientPlatform& client = platform_.client;
  if (bytes > 0)
    co_await Work(client.passthrough ? client.passthrough_read : client.local_read, bytes);
  sealer_.Return();
  sealing_.End();
}

des::Activity<void> SimulatedWrites::AwaitSealed() {
  while (sealing_.under_way() > 0) co_await sealing_.changed().Wait();
}

des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::Commit(Writer& writer, bool closes) {
  SimulatedFile& state = writer.state;
  const bool is_last = closes && state.writers == 1 && !writer.is_stream;
  if (!std::exchange(state.must_commit, false)) {
    if (is_last && std::exchange(state.manager_counts_open, false))
      manager_.Send(id_, {ReleaseRequest{writer.file}});
    co_return Done{};
  }
  // All that this mount has written, whoever did.
  const std::optional<uint64_t> written_end = std::exchange(state.written_end, std::nullopt);
  const bool wrote = written_end.has_value();
  const bool is_inline = wrote && !state.access.layout.bound();
  CommitRequest commit;
  commit.file = writer.file;
  commit.size_bytes = written_end.value_or(0);
  commit.size_is_exact = is_inline;
  commit.modify_time = loop_.now();
  commit.last_close = is_last;
  commit.data_changed = wrote;
  commit.generation = state.access.generation;
  if (!state.unsent) commit.based_on_version = state.attributes.data_version;
  if (is_inline) {
    commit.size_bytes = std::max(commit.size_bytes, state.attributes.size_bytes);
    commit.inline_data = std::string(commit.size_bytes, '\0');
  }
  if (state.access.layout.bound()) commit.nodes = co_await NodeBytesOf(writer.file);
  std::vector<Request> requests;
  const bool makes = state.unsent.has_value();
  if (makes) requests.emplace_back(*std::exchange(state.unsent, std::nullopt));
  requests.emplace_back(std::move(commit));
  const uint64_t version_before = state.attributes.data_version;
  const SimulatedMark mark = files_.mark();
  const std::vector<Reply> replies = co_await manager_.Call(id_, std::move(requests));
  const Outcome<AttributesReply> reply = ReplyAs<AttributesReply>(replies, makes ? 1 : 0);
  if (!reply.ok()) co_return reply.failure();
  if (makes) files_.NoteSent(writer.file, std::get<MakeReply>(replies.front()), mark);
  const uint64_t version = reply->attributes.data_version;
  if (version == version_before + (wrote ? 1 : 0) && state.room_version == version_before)
    state.room_version = version;
  files_.NoteAttributes(writer.file, reply->attributes, mark);
  if (is_last) state.manager_counts_open = false;
  if (wrote) state.access.empty_nodes.clear();
  // Keep inline bytes, too: the next open of the file here finds them.
  if (is_inline) {
    state.access.is_inline = true;
    state.access.inline_valid_bytes = reply->attributes.size_bytes;
  }
  if (files_.RecalledSince(mark, writer.file)) state.right_known = false;
  co_return Done{};
}

des::Activity<std::vector<CommitRequest::NodeBytes>> SimulatedWrites::NodeBytesOf(FileId file) {
  SimulatedFile& state = files_.At(file);
  const bool is_known = state.room_version == state.attributes.data_version;
  std::vector<CommitRequest::NodeBytes> all;
  for (const NodeId node : state.access.layout.Nodes()) {
    CommitRequest::NodeBytes of{node, state.allocated[node], 0};
    if (!is_known) {
      co_await AskNode(Access::kStat, node, file);
      of.allocated_bytes = RoundUpToPage(manager_.StoredOn(node, file));
      // Room was taken there, but nothing stored: the manager's figure stays valid.
      if (of.allocated_bytes == 0 && std::ranges::count(state.access.empty_nodes, node) == 0)
        continue;
    }
    of.consumed_bytes = grants_.TakeUnreported(node);
    all.push_back(of);
  }
  co_return all;
}

des::Activity<void> SimulatedWrites::AskNode(Access what, NodeId node, FileId file) {
  if (IsLocal(node)) co_return;
  NoteNode(what, node, file, {});
  const MachineIndex there = manager_.MachineOf(node);
  co_await loop_.Sleep(machines_.SendMessage(machine_, there, kStatBytes));
  co_await machines_.NodeWait(there);
  co_await machines_.Work(there, platform_.node.read.Of(0));
  co_await loop_.Sleep(machines_.SendMessage(there, machine_, kWrittenBytes));
}

des::Activity<void> SimulatedWrites::AskBeside(Access what, NodeId node, FileId file,
                                               des::Group& group) {
  co_await AskNode(what, node, file);
  group.End();
}

des::Activity<void> SimulatedWrites::AwaitCopies(const Writer& writer) {
  const DataAccess& access = writer.state.access;
  if (access.close_copies <= 1 || !access.layout.bound()) co_return;
  AwaitCopiesRequest await;
  await.file = writer.file;
  await.data_version = writer.state.attributes.data_version;
  await.copies = access.close_copies;
  sai::CopyWait wait(loop_.now(), kWaitMax);
  while (true) {
    Request request = await;
    const Outcome<AwaitCopiesReply> reply = co_await Ask<AwaitCopiesReply>(std::move(request));
    if (!reply.ok() || wait.EndsWith(*reply, loop_.now())) co_return;
  }
}

}  // namespace mosa::predict
