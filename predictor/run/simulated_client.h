// SimulatedClient: one mount of a simulated cluster, as its programs and the runner use it. It asks
// the manager what a real one asks, splits and orders bytes by the same rules (client-sai/core),
// and moves sizes instead of bytes.
//
// Programs read whole files or parts of them, and write each file, or one part of it, from its
// beginning to its end: in what order they write is not modelled. A file that is written anew goes
// on at other nodes when one is full, where the manager says; when none has room the write fails,
// and that is the prediction. What a real mount does besides and this one does not: let a part of
// a file that is there go on elsewhere, and go on when a node or the manager dies.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_CLIENT_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client-sai/core/outcome.h"
#include "client-sai/core/read_ahead.h"
#include "common/model/ranges.h"
#include "predictor/des/activity.h"
#include "predictor/des/waiting.h"
#include "predictor/run/machines.h"
#include "predictor/run/page_cache.h"
#include "predictor/run/simulated_grants.h"
#include "predictor/run/simulated_manager.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// What reading a file has moved.
struct BytesRead {
  uint64_t local = 0;   // From this host's node, or kept by the manager.
  uint64_t remote = 0;  // From other hosts.
  uint64_t cached = 0;  // The kernel had them.
};

// What the runner sees of a file.
struct FileLook {
  uint64_t size_bytes = 0;
  std::map<MachineIndex, uint64_t> bytes_by_machine;
};

// Why a write found no room.
struct FullStore {
  std::vector<std::string> nodes;  // That refused its bytes; none: there was none for its begin.
  std::string path;
};

// One loop; activities of one client may overlap. Paths and tasks outlive the
// calls; of what is opened, its close.
class SimulatedClient {
 public:
  template <typename T>
  using Outcome = sai::Outcome<T>;
  using Done = sai::Done;

  // All outlive this.
  SimulatedClient(des::EventLoop& loop, const Platform& platform, Machines& machines,
                  SimulatedManager& manager, ClientId id, MachineIndex on);

  MachineIndex machine() const { return machine_; }
  // Why the last write of `task` that failed for want of room did; null if none did.
  const FullStore* FullOf(const std::string& task) const;

  // ---- what programs do
  // All of a file, or only `part` of it.
  des::Activity<Outcome<BytesRead>> ReadFile(const std::string& path, const std::string& task,
                                             std::optional<ByteRange> part = std::nullopt);
  des::Activity<Outcome<Done>> WriteFile(const std::string& path, uint64_t size_bytes,
                                         const std::string& task);
  // Part of a file that is there, and stays as it is besides.
  des::Activity<Outcome<Done>> UpdateFile(const std::string& path, ByteRange part,
                                          const std::string& task);
  // The same in parts, from an open to a close. Nothing is read of an empty file.
  struct Reading;
  struct Writing;
  des::Activity<Outcome<std::shared_ptr<Reading>>> OpenToRead(const std::string& path,
                                                              const std::string& task);
  des::Activity<void> ReadPart(Reading& reading, ByteRange range);
  des::Activity<BytesRead> CloseRead(Reading& reading);
  // What becomes of the bytes that the file has when it is opened to be written. kReplaced: they
  // are cut off, and a file that is not there is made. kKept: it is there.
  enum class Content : uint8_t { kReplaced, kKept };
  // `range` is all that will be written.
  des::Activity<Outcome<std::shared_ptr<Writing>>> OpenToWrite(const std::string& path,
                                                               ByteRange range, Content before,
                                                               const std::string& task);
  // So many bytes more; behind the range's last one it goes on at its first.
  des::Activity<Outcome<Done>> WritePart(Writing& writing, uint64_t bytes);
  // To read what was written so far, through the same open; closed before more is written.
  des::Activity<std::shared_ptr<Reading>> ReadBack(Writing& writing);
  // What was not written yet is written now.
  des::Activity<Outcome<Done>> CloseWrite(Writing& writing);
  // Nothing more is written, and the file stays as it is; returns when what was sent has arrived.
  des::Activity<void> AbandonWrite(Writing& writing);
  // The name is gone, and with it the file's hints; nothing, if it is not there.
  des::Activity<Outcome<Done>> Remove(const std::string& path);
  // Returns when the own node has sealed what was written past it: see Seal().
  des::Activity<void> AwaitSealed();
  // ---- what the runner does
  // Makes the directory and those above it that are not there, and sets hints on it.
  des::Activity<Outcome<Done>> MakeDirectory(const std::string& path, const HintMap& hints);
  // The parent directory, and an empty file that carries the hints, if there are any.
  des::Activity<Outcome<Done>> PrepareOutput(const std::string& path, const HintMap& hints);
  des::Activity<Outcome<FileLook>> Look(const std::string& path);
  // Whose storage node has the byte, as its layout says; nothing if that is not settled.
  std::optional<MachineIndex> HolderOf(const std::string& path, uint64_t offset) const;

 private:
  struct Directory {
    bool delegated = false;
    bool complete = false;  // All its names are known.
    uint64_t inline_bytes_max = 0;
    std::map<std::string, FileId, std::less<>> names;  // 0: known to be absent.
  };
  struct File {
    bool fresh = false;  // `access` and `attributes` are what the manager has.
    DataAccess access;
    Attributes attributes;
    bool manager_counts_open = false;
    uint32_t handles = 0;
    uint32_t writers = 0;               // How many handles write.
    bool unsealed = false;              // The own node's object was written, not by its daemon.
    bool pinned = false;                // The kernel writes the object.
    std::optional<MakeRequest> unsent;  // Not known to the manager yet.
  };
  struct Place {
    FileId parent;
    std::string_view name;
  };
  struct Block {
    explicit Block(des::EventLoop& loop, ByteRange r) : range(r), come(loop) {}
    ByteRange range;
    bool done = false;
    des::Signal come;
  };
  struct Reader;
  struct Writer;
  using Timed = SimulatedResidence::Timed;

  template <typename T>
  des::Activity<Outcome<T>> Ask(Request request);
  auto Work(const Cost& cost, uint64_t bytes = 0) {
    return machines_.Work(machine_, cost.Of(bytes));
  }
  bool IsLocal(NodeId node) const {
    return node != kNoNode && manager_.MachineOf(node) == machine_;
  }
  // The node of this host, if it holds the whole file.
  bool HoldsAllHere(const Layout& layout) const;

  // ---- names (simulated_client.cc)
  des::Activity<Outcome<FileId>> Lookup(FileId parent, std::string_view name);
  des::Activity<Outcome<Place>> PlaceOf(const std::string& path, bool make_directories);
  des::Activity<Outcome<FileId>> MakeChildDirectory(FileId parent, std::string_view name);
  des::Activity<Outcome<Done>> SetHints(FileId file, const HintMap& hints);
  des::Activity<Outcome<FileId>> NewFileId();
  des::Activity<Outcome<FileId>> Create(FileId parent, std::string_view name,
                                        const std::string& task, bool defer);
  void NoteMade(FileId parent, std::string_view name, const MakeReply& reply);
  void OnPush(const Push& push);
  des::Activity<void> Confirm(RecallPush recall);
  des::Activity<void> Upkeep();

  // ---- writing (simulated_client_write.cc)
  des::Activity<Outcome<Done>> WriteAll(const std::string& path, ByteRange range, Content before,
                                        const std::string& task);
  des::Activity<Outcome<FileId>> FileToWrite(const std::string& path, Content before,
                                             const std::string& task);
  des::Activity<Outcome<Done>> OpenForWriting(FileId file, const std::string& task, Content before);
  des::Activity<bool> MayWriteByKernel(Writer& writer);
  des::Activity<Outcome<Done>> WriteRange(Writer& writer, ByteRange whole);
  des::Activity<Outcome<Done>> SettleKernelWrites(Writer& writer);
  des::Activity<Outcome<Done>> EnsureBound(Writer& writer, uint64_t first_bytes);
  des::Activity<Outcome<Done>> WriteBound(Writer& writer, ByteRange range);
  des::Activity<std::optional<NodeId>> TakeRoom(Writer& writer, const Piece& piece);
  des::Activity<void> BufferPiece(Writer& writer, ByteRange range);
  void SendOpenExtent(Writer& writer);
  // Bytes from `fresh_from` on take room.
  des::Activity<void> SendExtent(Writer& writer, ByteRange extent, uint64_t fresh_from);
  // `makes`: they are the first of the file that the node gets.
  des::Activity<bool> StoreOn(NodeId node, FileId file, uint64_t bytes, uint64_t fresh_bytes,
                              bool makes);
  void Leave(Writer& writer);
  des::Activity<void> Seal(FileId file);
  des::Activity<Outcome<Done>> Commit(Writer& writer);
  des::Activity<void> AskNodes(const DataAccess& access);
  des::Activity<void> AwaitCopies(const Writer& writer);
  // `why`: what the manager says besides, if anything.
  Failure NoSpace(Writer& writer, const std::vector<NodeId>& nodes, const std::string& why = "");
  void NoteFull(const Writing& writing, const Outcome<Done>& written);
  // ---- where writes go on when a node is full (simulated_spill.cc)
  des::Activity<Outcome<Done>> Spill(Writer& writer, ByteRange range, NodeId full);
  des::Activity<Outcome<Done>> GoOnElsewhere(Writer& writer, ByteRange range);

  // ---- reading (simulated_client_read.cc)
  des::Activity<Outcome<Done>> OpenForReading(FileId file, const std::string& task);
  std::shared_ptr<Reading> ReadingOf(FileId id, uint64_t size_bytes, bool is_back);
  bool HasPages(Reading& reading, ByteRange range) const;
  des::Activity<void> ReadStream(std::shared_ptr<Reader> stream, ByteRange part);
  des::Activity<void> AwaitPages(Reader& reader, uint64_t end);
  std::shared_ptr<Block> NewBlock(ByteRange range);
  // Beyond the file's end there are none.
  void AskForPages(const std::shared_ptr<Reader>& stream, ByteRange range);
  des::Activity<void> ReadPages(std::shared_ptr<Reader> stream, std::shared_ptr<Block> pages);
  des::Activity<void> ReadRange(Reader& reader, ByteRange range);
  void FetchAhead(const std::shared_ptr<Reader>& stream, ByteRange range);
  des::Activity<void> FetchBlock(std::shared_ptr<Reader> stream, std::shared_ptr<Block> its);
  des::Activity<void> FetchPiece(Reader& reader, const Piece& piece);
  NodeId CopyToRead(const Reader& reader, const Piece& piece) const;
  des::Activity<void> FetchBeside(Reader& reader, Piece piece, des::Group& group);

  des::EventLoop& loop_;
  const Platform& platform_;
  Machines& machines_;
  SimulatedManager& manager_;
  const ClientId id_;
  const MachineIndex machine_;
  SimulatedGrants grants_;
  PageCache pages_;
  FileIdRangeReply file_ids_;
  std::map<FileId, Directory> directories_;
  std::map<FileId, File> files_;
  std::map<FileId, uint64_t> recalls_;  // How often each was recalled: what came meanwhile is old.
  uint64_t buffered_bytes_ = 0;
  uint64_t streams_ = 0;                   // Files that are read from other hosts now.
  std::map<std::string, FullStore> full_;  // By task.
  des::Signal buffer_freed_;
  des::Slots io_threads_;
  des::Slots fetch_threads_;
  des::Slots sealer_;   // The own node's, which has one thread for that.
  des::Group sealing_;  // And what waits for it.
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_CLIENT_H_
