// SimulatedClient: one mount of a simulated cluster, as its programs and the runner use it. It
// sends the manager the requests of a real mount, splits and orders bytes by the same rules
// (client-sai/core), and moves sizes instead of bytes.
//
// Programs read whole files or parts of them. They write each file, or one part of it, from
// beginning to end; other write orders are not modelled. When a node is full, a newly written file
// continues on the nodes that the manager chooses. If none has room, the write fails and that is
// the prediction. Two abilities of a real mount are missing: continuing an existing file's part on
// another node, and surviving the death of a node or of the manager.
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

#include "client-sai/core/block_index.h"
#include "client-sai/core/kept_names.h"
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

// The bytes that reading a file has moved.
struct BytesRead {
  uint64_t local = 0;   // From this host's node, or from the manager (inline).
  uint64_t remote = 0;  // From other hosts.
  uint64_t cached = 0;  // From the kernel's page cache.
};

// What the runner learns about a file.
struct FileLook {
  uint64_t size_bytes = 0;
  std::map<MachineIndex, uint64_t> bytes_by_machine;
};

// Why a write found no room.
struct FullStore {
  // Nodes that refused the bytes; empty: no node had room for the file's beginning.
  std::vector<std::string> nodes;
  std::string path;
};

// Runs on one loop; activities of one client may overlap. Paths and task names must outlive the
// call, or the close of what the call opened.
class SimulatedClient {
 public:
  template <typename T>
  using Outcome = sai::Outcome<T>;
  using Done = sai::Done;

  // All arguments must outlive this.
  SimulatedClient(des::EventLoop& loop, const Platform& platform, Machines& machines,
                  SimulatedManager& manager, ClientId id, MachineIndex on);

  MachineIndex machine() const { return machine_; }
  // Why the last write of `task` that failed for lack of room did so; null if none did.
  const FullStore* FullOf(const std::string& task) const;

  // ---- what programs do
  // Reads all of a file, or only `part` of it.
  des::Activity<Outcome<BytesRead>> ReadFile(const std::string& path, const std::string& task,
                                             std::optional<ByteRange> part = std::nullopt);
  des::Activity<Outcome<Done>> WriteFile(const std::string& path, uint64_t size_bytes,
                                         const std::string& task);
  // Overwrites part of an existing file and keeps the rest.
  des::Activity<Outcome<Done>> UpdateFile(const std::string& path, ByteRange part,
                                          const std::string& task);
  // The same in several parts, from open to close. Nothing is read from an empty file.
  struct Reading;
  struct Writing;
  des::Activity<Outcome<std::shared_ptr<Reading>>> OpenToRead(const std::string& path,
                                                              const std::string& task);
  des::Activity<void> ReadPart(Reading& reading, ByteRange range);
  des::Activity<BytesRead> CloseRead(Reading& reading);
  // What happens to the file's bytes when it is opened for writing. kReplaced: it is truncated, or
  // created if it does not exist. kKept: it must exist.
  enum class Content : uint8_t { kReplaced, kKept };
  // `range` covers all bytes that will be written.
  des::Activity<Outcome<std::shared_ptr<Writing>>> OpenToWrite(const std::string& path,
                                                               ByteRange range, Content before,
                                                               const std::string& task);
  // Writes that many further bytes; after the range's last byte it continues at its first.
  des::Activity<Outcome<Done>> WritePart(Writing& writing, uint64_t bytes);
  // Opens what was written so far for reading, through the same open. Close it before writing more.
  des::Activity<std::shared_ptr<Reading>> ReadBack(Writing& writing);
  // Writes the rest of the range first.
  des::Activity<Outcome<Done>> CloseWrite(Writing& writing);
  // Ends without writing more, and leaves the file as it is. Returns when all data in flight has
  // arrived.
  des::Activity<void> AbandonWrite(Writing& writing);
  // Removes the name, and with it the file's hints. Succeeds if there is none.
  des::Activity<Outcome<Done>> Remove(const std::string& path);
  // Waits until the own node has sealed what was written past its daemon: see Seal().
  des::Activity<void> AwaitSealed();
  // ---- what the runner does
  // Makes the directory and its missing ancestors, and sets hints on it.
  des::Activity<Outcome<Done>> MakeDirectory(const std::string& path, const HintMap& hints);
  // Makes the parent directory and, if there are hints, an empty file that carries them.
  des::Activity<Outcome<Done>> PrepareOutput(const std::string& path, const HintMap& hints);
  des::Activity<Outcome<FileLook>> Look(const std::string& path);
  // Returns the host whose node holds the byte by the file's layout; nothing if the file is not
  // bound.
  std::optional<MachineIndex> HolderOf(const std::string& path, uint64_t offset) const;

 private:
  struct Directory {
    bool delegated = false;
    bool complete = false;  // All its names are known.
    uint64_t inline_bytes_max = 0;
    uint64_t hints_generation = 0;  // `inline_bytes_max` is of this one.
    struct Name {
      FileId file;           // 0: known to be absent.
      uint64_t told_in = 0;  // The epoch in which the kernel was told it; 0: it may not keep it.
    };
    std::map<std::string, Name, std::less<>> names;
    sai::KeptNames kept;  // By the kernel.
  };
  struct File {
    // Up to date: `access`, and `attributes`. The latter also of directories.
    bool right_known = false, attributes_known = false;
    DataAccess access;
    Attributes attributes;
    bool manager_counts_open = false;
    uint32_t handles = 0;
    uint32_t writers = 0;   // Handles open for writing.
    bool unsealed = false;  // The own node's object was written past its daemon.
    bool pinned = false;    // The kernel writes the object directly.
    // The pages and bytes that have room on each node, as far as this mount knows. It knows all of
    // it for `room_version` of the data.
    IntervalSet pages;
    std::map<NodeId, uint64_t> allocated;
    std::optional<uint64_t> room_version;
    bool must_commit = false;           // There is something to tell the manager at a close.
    std::optional<MakeRequest> unsent;  // A deferred creation that the manager does not know yet.
  };
  struct Place {
    FileId parent;
    std::string_view name;
  };
  struct Block {
    Block(des::EventLoop& loop, ByteRange range) : come(loop), range_(range) {}
    ByteRange range() const { return range_; }
    bool done = false;
    des::Signal come;

   private:
    ByteRange range_;
  };
  using BlockPtr = std::shared_ptr<Block>;
  struct Reader;
  struct Writer;
  static inline const std::string kNoTask;
  using Timed = SimulatedResidence::Timed;

  template <typename T>
  des::Activity<Outcome<T>> Ask(Request request);
  // The right to read or write the file's bytes, from what is known or from the manager.
  des::Activity<Outcome<Done>> EnsureRight(FileId file, bool write, bool with_attributes,
                                           const std::string& task);
  auto Work(const Cost& cost, uint64_t bytes = 0) {
    return machines_.Work(machine_, cost.Of(bytes));
  }
  bool IsLocal(NodeId node) const {
    return node != kNoNode && manager_.MachineOf(node) == machine_;
  }
  void NoteKernel(Access access, ByteRange range) const {
    if (Observer* const observer = manager_.observer()) observer->OnKernel(id_, access, range);
  }
  void NoteNode(Access access, NodeId node, FileId file, ByteRange range) const {
    if (Observer* const observer = manager_.observer())
      observer->OnNode(id_, access, node, file, range);
  }
  // This host's node, if it holds the whole file.
  bool HoldsAllHere(const Layout& layout) const;

  // ---- names (simulated_client.cc)
  des::Activity<Outcome<FileId>> Lookup(FileId parent, std::string_view name);
  des::Activity<Outcome<Place>> PlaceOf(const std::string& path, bool make_directories);
  des::Activity<Outcome<FileId>> MakeChildDirectory(FileId parent, std::string_view name);
  des::Activity<Outcome<Done>> SetHints(FileId file, const HintMap& hints);
  des::Activity<Outcome<FileId>> NewFileId();
  des::Activity<Outcome<FileId>> Create(FileId parent, std::string_view name,
                                        const std::string& task);
  bool MayDefer(const Directory& directory) const;
  bool MayAnswer(FileId file) const;
  // The epoch in which the kernel may keep the directory's names; 0: it may not.
  uint64_t TellKernel(Directory& directory);
  void NoteAttributes(FileId file, const Attributes& attributes, uint64_t mark);
  void NoteMade(FileId parent, std::string_view name, const MakeReply& reply, uint64_t mark,
                Directory::Name known, uint64_t hints_before);
  void NoteSent(FileId file, const MakeReply& made, uint64_t mark);
  des::Activity<Outcome<Done>> EnsureMade(FileId file);
  void OnPush(const Push& push);
  des::Activity<void> Confirm(RecallPush recall);
  des::Activity<void> Upkeep();

  // ---- writing (simulated_client_write.cc)
  des::Activity<Outcome<Done>> WriteAll(const std::string& path, ByteRange range, Content before,
                                        const std::string& task);
  des::Activity<Outcome<FileId>> FileToWrite(const std::string& path, Content before,
                                             const std::string& task);
  des::Activity<Outcome<Done>> OpenForWriting(FileId file, const std::string& task, Content before);
  des::Activity<Outcome<Done>> Cut(FileId file);
  des::Activity<bool> MayWriteByKernel(Writer& writer);
  des::Activity<Outcome<Done>> WriteRange(Writer& writer, ByteRange whole);
  des::Activity<Outcome<Done>> SettleKernelWrites(Writer& writer);
  des::Activity<Outcome<Done>> EnsureBound(Writer& writer, uint64_t first_bytes);
  des::Activity<Outcome<Done>> WriteBound(Writer& writer, ByteRange range);
  des::Activity<std::optional<NodeId>> TakeRoom(Writer& writer, const Piece& piece);
  des::Activity<void> BufferPiece(Writer& writer, ByteRange range);
  void SendOpenExtent(Writer& writer);
  // Bytes below `fresh_from` already have room.
  des::Activity<void> SendExtent(Writer& writer, ByteRange extent, uint64_t fresh_from);
  // `makes`: these are the file's first bytes on the node.
  des::Activity<bool> StoreOn(NodeId node, FileId file, ByteRange range, uint64_t fresh_bytes,
                              bool makes);
  // A handle of the file has ended: with the last, the mount forgets what room it has.
  void EndHandle(FileId file);
  void Leave(Writer& writer);
  des::Activity<void> Seal(FileId file);
  des::Activity<Outcome<Done>> Commit(Writer& writer);
  // What the file's objects occupy, for a commit. Asks nodes for what is not known here.
  des::Activity<std::vector<CommitRequest::NodeBytes>> NodeBytesOf(FileId file);
  // A short question to the node of another host, and its answer.
  des::Activity<void> AskNode(Access what, NodeId node, FileId file);
  des::Activity<void> AwaitCopies(const Writer& writer);
  // `why`: the manager's reason, if any.
  Failure NoSpace(Writer& writer, const std::vector<NodeId>& nodes, const std::string& why = "");
  void NoteFull(const Writing& writing, const Outcome<Done>& written);
  // ---- continuing on other nodes when one is full (simulated_spill.cc)
  des::Activity<Outcome<Done>> Spill(Writer& writer, ByteRange range, NodeId full);
  des::Activity<Outcome<Done>> GoOnElsewhere(Writer& writer, ByteRange range);

  // ---- reading (simulated_client_read.cc)
  des::Activity<Outcome<Done>> OpenForReading(FileId file, const std::string& task);
  std::shared_ptr<Reading> ReadingOf(FileId id, uint64_t size_bytes, bool is_back);
  bool HasPages(Reading& reading, ByteRange range) const;
  des::Activity<void> ReadStream(std::shared_ptr<Reader> stream, ByteRange part);
  des::Activity<void> AwaitPages(Reader& reader, uint64_t end);
  BlockPtr NewBlock(ByteRange range);
  // Requests pages up to the file's end.
  void AskForPages(const std::shared_ptr<Reader>& stream, ByteRange range);
  des::Activity<void> ReadPages(std::shared_ptr<Reader> stream, BlockPtr pages);
  des::Activity<void> ReadRange(Reader& reader, ByteRange range);
  void FetchAhead(const std::shared_ptr<Reader>& stream, ByteRange range);
  des::Activity<void> FetchBlock(std::shared_ptr<Reader> stream, BlockPtr its);
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
  // A reply is stale if its file was recalled since it was asked for.
  bool RecalledSince(uint64_t mark, FileId file) const {
    const auto last = last_recalls_.find(file);
    return last != last_recalls_.end() && last->second > mark;
  }
  std::map<FileId, uint64_t> last_recalls_;  // Numbers, by file.
  uint64_t recalls_ = 0;
  uint64_t hints_generation_ = 0;  // Raised by each hint that is set here.
  uint64_t buffered_bytes_ = 0;
  sai::BlockIndex<BlockPtr> blocks_{sai::kReadCacheBytesMax};
  std::map<std::string, FullStore> full_;  // By task.
  des::Signal buffer_freed_;
  des::Slots io_threads_;
  des::Slots fetch_threads_;
  des::Slots sealer_;   // The own node's sealer, which has one thread.
  des::Group sealing_;  // Objects that wait for it or are being sealed.
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_CLIENT_H_
