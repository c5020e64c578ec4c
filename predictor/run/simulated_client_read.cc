// How a program's reads are answered by a simulated mount.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "client-sai/core/rules.h"
#include "client-sai/core/write_buffer.h"
#include "common/base/hash.h"
#include "predictor/run/ask.h"
#include "predictor/run/simulated_client.h"

namespace mosa::predict {
namespace {

// As of the SAI's reader and its block cache.
constexpr uint64_t kWindowBytesPerNode = 8 << 20;
constexpr uint64_t kFetchesAtOnce = 4;
// As the mount tells the kernel.
constexpr uint64_t kKernelWindowBytes = 2 << 20;
constexpr uint64_t kBlockBytesMax = 1 << 20;
constexpr uint64_t kReadCacheBytesMax = uint64_t{48} << 20;
// A capability that ends sooner is not used any more.
constexpr Duration kCapabilityMargin = Seconds(30);
// What asks for a piece.
constexpr uint64_t kRequestBytes = 128;

uint64_t LaneOf(const Layout& layout, uint64_t offset) {
  if (layout.chunk_bytes >= kBlockBytesMax) return layout.PositionAt(offset);
  return offset / kBlockBytesMax % layout.segments.front().width;
}

}  // namespace

// One file that is being read, from its open to its close.
struct SimulatedClient::Reader {
  Reader(des::EventLoop& loop, FileId id, const DataAccess& a, uint64_t size, ByteRange r)
      : file(id), layout(a.layout), size_bytes(size), range(r) {
    const uint32_t width = layout.segments.front().width;
    const auto at_once = static_cast<uint32_t>(std::max<uint64_t>(1, kFetchesAtOnce / width));
    for (uint32_t i = 0; i < width; ++i)
      lanes.push_back(std::make_unique<des::Slots>(loop, at_once));
  }
  const FileId file;
  const Layout layout;
  const uint64_t size_bytes;
  const ByteRange range;
  BytesRead read;
  sai::ReadAhead read_ahead;
  uint64_t blocks_end = 0;                            // Blocks below have been made.
  std::map<uint64_t, std::shared_ptr<Block>> blocks;  // By their begin.
  std::vector<std::unique_ptr<des::Slots>> lanes;     // One per node beside each other.
};

des::Activity<sai::Outcome<BytesRead>> SimulatedClient::ReadFile(const std::string& path,
                                                                 const std::string& task,
                                                                 std::optional<ByteRange> part) {
  const Outcome<Place> place = co_await PlaceOf(path, false);
  if (!place.ok()) co_return place.failure();
  const Outcome<FileId> id = co_await Lookup(place->parent, place->name);
  if (!id.ok()) co_return id.failure();
  if (*id == FileId{})
    co_return Failure{StatusCode::kNotFound, ErrorReason::kNoEntry,
                      fmt::format("'{}' is not there", path)};
  const Outcome<Done> opened = co_await OpenForReading(*id, task);
  if (!opened.ok()) co_return opened.failure();
  File& file = files_[*id];
  const uint64_t size = file.attributes.size_bytes;
  const uint64_t version = file.attributes.data_version;
  const ByteRange range = part.value_or(ByteRange{0, size});
  BytesRead read;
  if (size == 0) co_return read;
  const bool by_kernel =
      platform_.client.passthrough && !file.access.is_inline && HoldsAllHere(file.access.layout);
  if (by_kernel) {
    co_await ReadByKernel(file, range, read);
  } else if (pages_.Has(*id, version)) {
    co_await Work(platform_.client.page_cache_read, range.size());
    read.cached = range.size();
  } else if (!file.access.layout.bound() || file.access.is_inline) {
    co_await Work(platform_.client.fuse_read, range.size());
    read.local = range.size();
    if (range.size() == size) pages_.Put(*id, version, size);
  } else {
    const auto reader = std::make_shared<Reader>(loop_, *id, file.access, size, range);
    ++file.handles;
    ++streams_;
    co_await ReadStream(reader);
    --streams_;
    --file.handles;
    read = reader->read;
    if (range.size() == size) pages_.Put(*id, version, size);
  }
  co_await Work(platform_.client.call);
  co_return read;
}

des::Activity<sai::Outcome<sai::Done>> SimulatedClient::OpenForReading(FileId file,
                                                                       const std::string& task) {
  co_await Work(platform_.client.call);
  File& state = files_[file];
  const bool expires =
      state.access.layout.bound() && loop_.now() + kCapabilityMargin >= state.access.expires;
  if (state.fresh && !expires) co_return Done{};
  const uint64_t recalls = recalls_[file];
  OpenRequest open;
  open.file = file;
  open.task = task;
  Request request = open;
  const Outcome<OpenReply> reply = co_await Ask<OpenReply>(std::move(request));
  if (!reply.ok()) co_return reply.failure();
  state.access = reply->access;
  state.attributes = reply->attributes;
  state.fresh = recalls == recalls_[file];
  co_return Done{};
}

// A plain file of this host.
des::Activity<void> SimulatedClient::ReadByKernel(File& file, ByteRange range, BytesRead& read) {
  read.local = range.size();
  ++file.handles;
  co_await Work(platform_.client.passthrough_read, range.size());
  --file.handles;
}

// The kernel asks the mount for pages ahead of the program: a window at its first read, and the
// next one whenever the program comes to the middle of the first or the begin of the last. What it
// has asked for when the program stops before the file's end comes for nobody.
des::Activity<void> SimulatedClient::ReadStream(std::shared_ptr<Reader> reader) {
  const uint64_t step = platform_.client.fuse_read_bytes;
  uint64_t asked_end = reader->range.begin;
  uint64_t mark = reader->range.begin;  // Where the program sets the next window off.
  std::deque<std::shared_ptr<Block>> asked;
  for (uint64_t at = reader->range.begin; at < reader->range.end; at += step) {
    const uint64_t end = std::min(at + step, reader->range.end);
    while (mark < end && asked_end < reader->size_bytes) {
      const bool first = asked_end == reader->range.begin;
      mark = first ? asked_end + kKernelWindowBytes / 2 : asked_end;
      const uint64_t window_end = std::min(asked_end + kKernelWindowBytes, reader->size_bytes);
      while (asked_end < window_end) {
        const ByteRange range{asked_end, std::min(asked_end + step, window_end)};
        asked.push_back(std::make_shared<Block>(loop_, range));
        des::Spawn(loop_, ReadPages(reader, asked.back()));
        asked_end = range.end;
      }
    }
    while (!asked.empty() && asked.front()->range.begin < end) {
      const std::shared_ptr<Block> pages = asked.front();
      while (!pages->done) co_await pages->come.Wait();
      if (pages->range.end > end) break;
      asked.pop_front();
    }
  }
}

// One request of the kernel.
des::Activity<void> SimulatedClient::ReadPages(std::shared_ptr<Reader> stream,
                                               std::shared_ptr<Block> pages) {
  Reader& reader = *stream;
  const ByteRange range = pages->range;
  const uint64_t width = reader.layout.segments.front().width;
  const uint64_t share =
      std::max(kBlockBytesMax, kReadCacheBytesMax / std::max<uint64_t>(1, streams_));
  const uint64_t window =
      std::min({width * kWindowBytesPerNode, platform_.client.read_ahead_bytes_max, share});
  const Piece first = FirstPiece(reader.layout, range);
  const bool own_piece =
      first.range.end == range.end && std::any_of(first.nodes.begin(), first.nodes.end(),
                                                  [this](NodeId node) { return IsLocal(node); });
  if (HoldsAllHere(reader.layout) || own_piece) {
    // By the object's descriptor, ahead of nothing.
    co_await Work(platform_.client.local_read, range.size());
    reader.read.local += range.size();
  } else {
    const ByteRange ahead = reader.read_ahead.OnRead(range, reader.size_bytes, window);
    if (!ahead.empty()) FetchAhead(stream, ahead);
    co_await ReadRange(reader, range);
  }
  co_await Work(platform_.client.fuse_read, range.size());
  pages->done = true;
  pages->come.Give();
}

// From the blocks that were or are fetched ahead; what no block has is fetched now.
des::Activity<void> SimulatedClient::ReadRange(Reader& reader, ByteRange range) {
  while (!range.empty()) {
    auto next = reader.blocks.upper_bound(range.begin);
    if (next != reader.blocks.begin() && std::prev(next)->second->range.end > range.begin) {
      const std::shared_ptr<Block> block = std::prev(next)->second;
      while (!block->done) co_await block->come.Wait();
      range.begin = std::min(range.end, block->range.end);
      if (range.begin == block->range.end) reader.blocks.erase(block->range.begin);
      continue;
    }
    const uint64_t end = next == reader.blocks.end() ? range.end : std::min(range.end, next->first);
    const std::vector<Piece> pieces =
        SplitRange(reader.layout, {range.begin, end}, sai::kExtentBytesMax);
    des::Group group(loop_);
    for (size_t i = 1; i < pieces.size(); ++i) {
      group.Begin();
      des::Spawn(loop_, FetchBeside(reader, pieces[i], group));
    }
    co_await FetchPiece(reader, pieces.front());
    while (group.under_way() > 0) co_await group.changed().Wait();
    range.begin = end;
  }
}

// What was fetched for nobody, since the reader ends before the file does, still comes.
void SimulatedClient::FetchAhead(const std::shared_ptr<Reader>& stream, ByteRange range) {
  Reader& reader = *stream;
  uint64_t at = std::max(range.begin, reader.blocks_end);
  while (at < range.end) {
    const uint64_t end = std::min(range.end, (at / kBlockBytesMax + 1) * kBlockBytesMax);
    auto& block = reader.blocks[at];
    block = std::make_shared<Block>(loop_, ByteRange{at, end});
    des::Spawn(loop_, FetchBlock(stream, block));
    at = end;
  }
  reader.blocks_end = std::max(reader.blocks_end, at);
}

des::Activity<void> SimulatedClient::FetchBlock(std::shared_ptr<Reader> stream,
                                                std::shared_ptr<Block> its) {
  Reader& reader = *stream;
  Block& block = *its;
  des::Slots& lane = *reader.lanes[LaneOf(reader.layout, block.range.begin)];
  co_await lane.Take();
  co_await fetch_threads_.Take();
  const std::vector<Piece> pieces = SplitRange(reader.layout, block.range, sai::kExtentBytesMax);
  for (const Piece& piece : pieces) co_await FetchPiece(reader, piece);
  fetch_threads_.Return();
  lane.Return();
  block.done = true;
  block.come.Give();
}

des::Activity<void> SimulatedClient::FetchBeside(Reader& reader, Piece piece, des::Group& group) {
  co_await FetchPiece(reader, piece);
  group.End();
}

des::Activity<void> SimulatedClient::FetchPiece(Reader& reader, const Piece& piece) {
  std::vector<sai::CopyChoice> copies;
  for (const NodeId each : piece.nodes)
    if (each != kNoNode) copies.push_back({each, IsLocal(each), true});
  // Other clients begin with other copies, and a stream goes through all of them.
  const uint64_t stretch =
      piece.range.begin / std::max(reader.layout.chunk_bytes, sai::kSpreadBytesMin);
  const uint64_t seed = Mix64(id_.value ^ Mix64(reader.file.value ^ Mix64(stretch)));
  const NodeId node = sai::OrderCopies(copies, seed).front();
  const uint64_t bytes = piece.range.size();
  if (IsLocal(node)) {
    reader.read.local += bytes;
    co_await Work(platform_.client.local_read, bytes);
    co_return;
  }
  reader.read.remote += bytes;
  const MachineIndex there = manager_.MachineOf(node);
  co_await loop_.Sleep(machines_.MessageDelay(machine_, there, kRequestBytes));
  co_await machines_.Work(there, platform_.node.read.Of(bytes));
  co_await machines_.Transfer(there, machine_, bytes);
  co_await Work(platform_.client.receive, bytes);
}

}  // namespace mosa::predict
