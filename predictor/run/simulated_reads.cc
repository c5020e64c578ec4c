#include "predictor/run/simulated_reads.h"

#include <algorithm>
#include <utility>

#include "client-sai/core/rules.h"
#include "client-sai/core/stream.h"
#include "client-sai/core/write_buffer.h"

namespace mosa::predict {
namespace {

// How many bytes a node answers with, so that checksums can be compared: the range widened to whole
// blocks and cut at the end of its object. If chunks are not a multiple of a block, the object has
// the whole block only if it also holds a later chunk of the file.
uint64_t WholeBlocks(const Layout& layout, ByteRange range, uint64_t file_bytes) {
  const uint64_t begin = range.begin / kChecksumBlockBytes * kChecksumBlockBytes;
  uint64_t end = (range.end + kChecksumBlockBytes - 1) / kChecksumBlockBytes * kChecksumBlockBytes;
  const uint64_t width = layout.segments.front().width;
  const uint64_t chunk = (range.end - 1) / layout.chunk_bytes;
  const bool goes_on = width == 1 || (chunk + width) * layout.chunk_bytes < file_bytes;
  if (!goes_on) end = std::min(end, (chunk + 1) * layout.chunk_bytes);
  return std::min(end, file_bytes) - begin;
}

}  // namespace

// One file that is being read, from open to close.
struct SimulatedReads::Reader {
  Reader(des::EventLoop& loop, FileId id, const DataAccess& a, bool all_here, uint64_t size)
      : file(id), layout(a.layout), is_here(all_here), size_bytes(size) {
    const uint32_t width = layout.segments.front().width;
    // A short file does not reach all nodes of its stripe.
    const uint64_t pieces = size / std::min(layout.chunk_bytes, sai::kBlockBytesMax) + 1;
    lanes = std::vector(std::min<uint64_t>(width, pieces),
                        des::Slots(loop, sai::FetchesPerLane(layout)));
  }
  const FileId file;
  const Layout layout;
  const bool is_here;  // This host's node has all of it.
  const uint64_t size_bytes;
  BytesRead read;
  // Reads are a program's calls; else they are the kernel's requests from a trace.
  bool by_program = false;
  uint64_t program_at = 0;  // How far the program has read.
  // The read-ahead of a mount that root has made.
  KernelReadAhead kernel{sai::kKernelReadAheadBytes};
  std::deque<BlockPtr> asked;  // Requested pages that the program may still reach.
  sai::ReadAhead read_ahead;
  uint32_t pages_under_way = 0;  // The kernel's requests in progress.
  bool is_closed = false;
  std::vector<des::Slots> lanes;  // One per node that is read in parallel.
};

void SimulatedReads::ReadByProgram(Reading& reading) {
  if (reading.reader) reading.reader->by_program = true;
}

des::Activity<sai::Outcome<sai::Done>> SimulatedReads::OpenForReading(FileId file,
                                                                      const std::string& task) {
  const Timed timed(machines_.residence(), Daemon::kMount, machine_, "fuse.open");
  co_await machines_.MountWait(machine_);
  co_await Work(platform_.client.call);
  co_return co_await files_.EnsureRight(file, false, true, task);
}

std::shared_ptr<SimulatedReads::Reading> SimulatedReads::ReadingOf(FileId id, uint64_t size_bytes,
                                                                   bool is_back) {
  SimulatedFile& file = files_.At(id);
  auto reading = std::make_shared<Reading>();
  reading->id = id;
  reading->is_back = is_back;
  reading->is_stream = !is_back && sai::OpensAsStream(file.attributes.stream, /*write=*/false);
  ++file.handles;
  SetSource(*reading, size_bytes);
  return reading;
}

void SimulatedReads::SetSource(Reading& reading, uint64_t size_bytes) {
  const SimulatedFile& file = files_.At(reading.id);
  // What it has asked for goes on without it.
  if (const auto before = std::exchange(reading.reader, nullptr)) reading.read += before->read;
  reading.size_bytes = size_bytes;
  reading.version = file.attributes.data_version;
  if (size_bytes == 0) return;
  const bool is_here = files_.HoldsAllHere(file.access.layout);
  const bool by_daemon = reading.is_stream;
  if (platform_.client.passthrough && !file.access.is_inline && is_here && !by_daemon) {
    reading.by = Reading::By::kKernel;
  } else if (!reading.is_back && !by_daemon && files_.pages().Has(reading.id, reading.version)) {
    reading.by = Reading::By::kPages;
  } else if (!file.access.layout.bound() || file.access.is_inline) {
    reading.by = Reading::By::kManager;
  } else {
    reading.by = Reading::By::kNodes;
    reading.reader = std::make_shared<Reader>(loop_, reading.id, file.access, is_here, size_bytes);
  }
}

des::Activity<void> SimulatedReads::ReadPart(Reading& reading, ByteRange range) {
  if (!reading.is_stream) co_return co_await ReadWhatIsThere(reading, range);
  while (!range.empty()) {
    const uint64_t size_bytes = co_await AwaitMore(reading.id, range.begin);
    if (size_bytes <= range.begin) co_return;
    if (size_bytes != reading.size_bytes) SetSource(reading, size_bytes);
    const uint64_t end = std::min(range.end, size_bytes);
    co_await ReadWhatIsThere(reading, {range.begin, end});
    range.begin = end;
  }
}

des::Activity<uint64_t> SimulatedReads::AwaitMore(FileId file, uint64_t offset) {
  const SimulatedFile& state = files_.At(file);
  for (;;) {
    const Outcome<Done> right = co_await files_.EnsureRight(file, false, true, kNoTask);
    const uint64_t size_bytes = state.attributes.size_bytes;
    const bool waits = sai::ReadAtEnd(state.attributes.stream) == sai::AtEnd::kWaits;
    if (!right.ok() || size_bytes > offset || !waits) co_return size_bytes;
    if (state.attributes_known) co_await files_.changed().Wait();
  }
}

des::Activity<void> SimulatedReads::ReadWhatIsThere(Reading& reading, ByteRange range) {
  const uint64_t wanted = range.size();
  range.end = std::min(range.end, reading.size_bytes);
  // Writes are assumed to start at the file's beginning, but a read back may lie elsewhere: move it
  // to what is written.
  if (reading.is_back) range.begin = range.end - std::min(wanted, range.end);
  if (range.begin >= range.end) co_return;
  const uint64_t bytes = range.size();
  reading.asked_bytes += bytes;
  if (reading.by == Reading::By::kNodes && HasPages(reading, range)) {
    co_await Work(platform_.client.page_cache_read, bytes);
    reading.reader->read.cached += bytes;
    co_return;
  }
  switch (reading.by) {
    case Reading::By::kKernel:  // A plain file of this host.
      co_await machines_.Objects(machine_, bytes);
      co_await Work(platform_.client.passthrough_read, bytes);
      reading.read.local += bytes;
      break;
    case Reading::By::kPages:
      co_await Work(platform_.client.page_cache_read, bytes);
      reading.read.cached += bytes;
      break;
    case Reading::By::kManager:
      NoteKernel(Access::kRead, range);
      co_await Work(platform_.client.fuse_read, bytes);
      reading.read.local += bytes;
      break;
    case Reading::By::kNodes:
      co_await ReadStream(reading.reader, range);
      break;
    case Reading::By::kNothing:
      break;
  }
}

// Returns whether the whole range was read before through this open, and remembers that it is read
// now. A file that a program opens again is likewise read from the kernel's pages.
bool SimulatedReads::HasPages(Reading& reading, ByteRange range) const {
  const uint64_t cache_bytes = machines_.host(machine_).page_cache_bytes;
  if (reading.is_back || reading.is_stream || reading.size_bytes > cache_bytes) return false;
  if (range.end <= reading.held_end) return true;
  if (range.begin <= reading.held_end) reading.held_end = range.end;
  return false;
}

des::Activity<BytesRead> SimulatedReads::CloseRead(Reading& reading) {
  const bool has_reader = reading.reader != nullptr;
  if (has_reader) {
    reading.read += reading.reader->read;
    reading.reader->is_closed = true;
  }
  // The kernel releases a file when it is closed and the last request for its pages is answered.
  if (!has_reader || reading.reader->pages_under_way == 0) files_.EndHandle(reading.id);
  if (reading.task != nullptr) manager_.Send(id_, {ReleaseRequest{reading.id, *reading.task}});
  if (reading.is_back || reading.is_stream) co_return reading.read;
  // Partial reads are not tracked by range: enough bytes in total count as the whole file.
  const bool is_whole = reading.asked_bytes >= reading.size_bytes;
  if (is_whole && (reading.by == Reading::By::kNodes || reading.by == Reading::By::kManager))
    files_.pages().Put(reading.id, reading.version, reading.size_bytes);
  const Timed timed(machines_.residence(), Daemon::kMount, machine_, "fuse.flush");
  co_await machines_.MountWait(machine_);
  co_await Work(platform_.client.call);
  co_return reading.read;
}

// Reads in calls of at most one request's length. The kernel answers them from its pages and
// requests those that it wants from the mount (KernelReadAhead). Pages that are still in flight
// when the program stops or goes elsewhere arrive unused. A read in a trace is a request that the
// kernel really made. One at a file's beginning that is no longer than a request therefore has no
// read-ahead either.
des::Activity<void> SimulatedReads::ReadStream(std::shared_ptr<Reader> stream, ByteRange part) {
  Reader& reader = *stream;
  const uint64_t step = platform_.client.fuse_read_bytes;
  const bool is_first = reader.kernel.asked_end() == 0;
  const bool goes_elsewhere =
      part.begin < reader.program_at || part.begin > reader.kernel.asked_end();
  if (goes_elsewhere) reader.asked.clear();
  if (goes_elsewhere || (is_first && !reader.by_program)) {
    if (part.size() <= step && !reader.by_program)
      AskForPages(stream, reader.kernel.AskAlone(part));
    else if (!is_first)
      reader.kernel.Forget();
  }
  for (uint64_t at = part.begin; at < part.end; at += step) {
    const uint64_t end = std::min(at + step, part.end);
    for (reader.program_at = at; reader.program_at < end;) {
      AskForPages(stream, reader.kernel.ComeTo({reader.program_at, end}));
      const uint64_t until = std::min(end, reader.kernel.NextQuestion(reader.program_at));
      co_await AwaitPages(reader, until);
      reader.program_at = until;
    }
    reader.kernel.HasRead(end);
  }
}

// Drops pages that the program has passed, and waits for those up to `end`.
des::Activity<void> SimulatedReads::AwaitPages(Reader& reader, uint64_t end) {
  while (!reader.asked.empty() && reader.asked.front()->range().end <= reader.program_at)
    reader.asked.pop_front();
  while (!reader.asked.empty() && reader.asked.front()->range().begin < end) {
    const BlockPtr pages = reader.asked.front();
    while (!pages->done) co_await pages->come.Wait();
    if (pages->range().end > end) break;
    reader.asked.pop_front();
  }
}

SimulatedReads::BlockPtr SimulatedReads::NewBlock(ByteRange range) {
  return std::allocate_shared<Block>(des::PoolAllocator<Block>(), loop_, range);
}

void SimulatedReads::AskForPages(const std::shared_ptr<Reader>& stream, ByteRange range) {
  const uint64_t step = platform_.client.fuse_read_bytes;
  range.end = std::min(range.end, stream->size_bytes);
  for (uint64_t at = range.begin; at < range.end; at += step) {
    const ByteRange pages{at, std::min(at + step, range.end)};
    stream->asked.push_back(NewBlock(pages));
    des::Spawn(loop_, ReadPages(stream, stream->asked.back()));
  }
}

// One request of the kernel.
des::Activity<void> SimulatedReads::ReadPages(std::shared_ptr<Reader> stream, BlockPtr pages) {
  const Timed timed(machines_.residence(), Daemon::kMount, machine_, "fuse.read");
  Reader& reader = *stream;
  ++reader.pages_under_way;
  const ByteRange range = pages->range();
  NoteKernel(Access::kRead, range);
  const uint64_t window = sai::ReadWindow(reader.layout, platform_.client.read_ahead_bytes_max,
                                          files_.blocks().ShareBytes());
  const auto is_own_piece = [&] {
    const Piece first = FirstPiece(reader.layout, range);
    return first.range.end == range.end &&
           std::any_of(first.nodes.begin(), first.nodes.end(),
                       [this](NodeId node) { return IsLocal(node); });
  };
  if (reader.is_here || is_own_piece()) {
    // Read through the object's descriptor, for which the node is asked once, without read-ahead.
    if (reader.read.local == 0) co_await machines_.NodeWait(machine_);
    co_await machines_.Objects(machine_, range.size());
    co_await Work(platform_.client.local_read, range.size());
    reader.read.local += range.size();
  } else {
    // What is read ahead would be out of date at once while this mount writes the file.
    ByteRange ahead;
    if (files_.At(reader.file).writers == 0)
      ahead = reader.read_ahead.OnRead(range, reader.size_bytes, window);
    if (!ahead.empty()) FetchAhead(stream, ahead);
    co_await ReadRange(reader, range);
  }
  co_await machines_.MountWait(machine_);
  co_await Work(platform_.client.fuse_read, range.size());
  pages->done = true;
  if (--reader.pages_under_way == 0 && reader.is_closed) files_.EndHandle(reader.file);
  pages->come.GiveLast();
}

// Reads from blocks that were or are being fetched ahead; fetches now what no block covers.
des::Activity<void> SimulatedReads::ReadRange(Reader& reader, ByteRange range) {
  while (!range.empty()) {
    const sai::BlockIndex<BlockPtr>::Step step = files_.blocks().Next(reader.file, range);
    range.begin = step.range.end;
    if (step.block) {
      while (!step.block->done) co_await step.block->come.Wait();
      continue;
    }
    const std::vector<Piece> pieces = SplitRange(reader.layout, step.range, sai::kExtentBytesMax);
    des::Group group(loop_);
    for (size_t i = 1; i < pieces.size(); ++i) {
      group.Begin();
      des::Spawn(loop_, FetchBeside(reader, pieces[i], group));
    }
    co_await FetchPiece(reader, pieces.front());
    while (group.under_way() > 0) co_await group.changed().Wait();
  }
}

// Fetches continue even if the reader ends before the file does.
void SimulatedReads::FetchAhead(const std::shared_ptr<Reader>& stream, ByteRange range) {
  const auto make = [this](ByteRange of) { return NewBlock(of); };
  for (BlockPtr& block : files_.blocks().Add(stream->file, range, make))
    des::Spawn(loop_, FetchBlock(stream, std::move(block)));
}

des::Activity<void> SimulatedReads::FetchBlock(std::shared_ptr<Reader> stream, BlockPtr its) {
  Reader& reader = *stream;
  Block& block = *its;
  // A file that continued on other nodes may have a wider stripe there.
  const uint64_t own_lane = sai::LaneOf(reader.layout, block.range().begin) % reader.lanes.size();
  des::Slots& lane = reader.lanes[own_lane];
  co_await lane.Take();
  co_await fetch_threads_.Take();
  // If the file was closed meanwhile, fetch only if somebody already waits for the block.
  const bool is_wanted = its.use_count() > 1;
  for (ByteRange left = block.range(); is_wanted && !left.empty();) {
    const Piece piece = FirstPiece(reader.layout, left, sai::kExtentBytesMax);
    co_await FetchPiece(reader, piece);
    left.begin = piece.range.end;
  }
  fetch_threads_.Return();
  lane.Return();
  block.done = true;
  block.come.GiveLast();
}

des::Activity<void> SimulatedReads::FetchBeside(Reader& reader, Piece piece, des::Group& group) {
  co_await FetchPiece(reader, piece);
  group.End();
}

NodeId SimulatedReads::CopyToRead(const Reader& reader, const Piece& piece) const {
  if (piece.nodes.size() == 1) return piece.nodes.front();
  std::vector<sai::CopyChoice> copies;
  for (const NodeId each : piece.nodes)
    if (each != kNoNode) copies.push_back({each, IsLocal(each), true});
  return sai::OrderCopies(copies, sai::CopySeed(id_, reader.file, reader.layout, piece.range.begin))
      .front();
}

des::Activity<void> SimulatedReads::FetchPiece(Reader& reader, const Piece& piece) {
  const NodeId node = CopyToRead(reader, piece);
  const uint64_t bytes = piece.range.size();
  if (IsLocal(node)) {
    if (reader.read.local == 0) co_await machines_.NodeWait(machine_);
    reader.read.local += bytes;
    co_await machines_.Objects(machine_, bytes);
    co_await Work(platform_.client.local_read, bytes);
    co_return;
  }
  NoteNode(Access::kRead, node, reader.file, piece.range);
  reader.read.remote += bytes;
  const uint64_t sent_bytes = WholeBlocks(reader.layout, piece.range, reader.size_bytes);
  const MachineIndex there = manager_.MachineOf(node);
  const Timed timed(machines_.residence(), Daemon::kMount, machine_, "node.read", there);
  co_await loop_.Sleep(machines_.SendMessage(machine_, there, kNodeRequestBytes));
  const Time came = loop_.now();
  co_await machines_.NodeWait(there);
  co_await machines_.Objects(there, sent_bytes);
  co_await machines_.Work(there, platform_.node.read.Call());
  co_await machines_.Transfer(there, machine_, sent_bytes, platform_.node.read.OfBytes(sent_bytes),
                              platform_.client.receive.Of(sent_bytes));
  machines_.residence().Add(Daemon::kStorage, there, "read", loop_.now() - came, machine_);
}

}  // namespace mosa::predict
