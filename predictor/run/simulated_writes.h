// Internal to predictor/run: writes through a simulated mount: by the kernel, inline, to the own
// node, or buffered and sent to others; and what follows at the close.
//
// Runs on one loop. Paths and task names must outlive the close of what was opened.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_WRITES_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_WRITES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "predictor/des/waiting.h"
#include "predictor/run/mount_part.h"
#include "predictor/run/simulated_files.h"
#include "predictor/run/simulated_grants.h"

namespace mosa::predict {

// Why a write found no room.
struct FullStore {
  // Nodes that refused the bytes; empty: no node had room for the file's beginning.
  std::vector<std::string> nodes;
  std::string path;
};

class SimulatedWrites : private MountPart {
 public:
  // What happens to the file's bytes when it is opened for writing. kReplaced: it is truncated, or
  // created if it does not exist. kKept: it must exist.
  enum class Content : uint8_t { kReplaced, kKept };
  struct Writer;
  // A file that a program has open for writing.
  struct Writing;

  // `files` must outlive this.
  SimulatedWrites(const MountPart& mount, SimulatedFiles& files)
      : MountPart(mount),
        files_(files),
        grants_(loop_, manager_, id_),
        buffer_freed_(loop_),
        io_threads_(loop_, platform_.client.io_threads),
        sealer_(loop_, 1),
        sealing_(loop_) {}

  // Opens a file that exists.
  des::Activity<Outcome<Done>> OpenForWriting(FileId file, const std::string& task, Content before);
  // For a file that was opened or created. `range` covers all bytes that will be written.
  des::Activity<std::shared_ptr<Writing>> WritingOf(FileId file, const std::string& path,
                                                    ByteRange range, Content before,
                                                    const std::string& task);
  // Writes that many further bytes; after the range's last byte it continues at its first.
  des::Activity<Outcome<Done>> WritePart(Writing& writing, uint64_t bytes);
  // Sends what is buffered, and returns where the written bytes end.
  des::Activity<uint64_t> SendAll(Writing& writing);
  // Writes the rest of the range first.
  des::Activity<Outcome<Done>> CloseWrite(Writing& writing);
  // Ends without writing more, and leaves the file as it is. Returns when all data in flight has
  // arrived.
  des::Activity<void> AbandonWrite(Writing& writing);
  // Waits until the own node has sealed what was written past its daemon: see Seal().
  des::Activity<void> AwaitSealed();

  // Why the last write of `task` that failed for lack of room did so; null if none did.
  const FullStore* FullOf(const std::string& task) const;
  SimulatedGrants& grants() { return grants_; }

 private:
  des::Activity<Outcome<Done>> Cut(FileId file);
  des::Activity<bool> MayWriteByKernel(Writer& writer);
  des::Activity<Outcome<Done>> WriteRange(Writer& writer, ByteRange whole);
  des::Activity<Outcome<Done>> SettleKernelWrites(Writer& writer);
  des::Activity<Outcome<Done>> EnsureBound(Writer& writer, uint64_t first_bytes);
  des::Activity<Outcome<Done>> WriteBound(Writer& writer, ByteRange range);
  des::Activity<std::optional<NodeId>> TakeRoom(Writer& writer, const Piece& piece);
  des::Activity<void> BufferPiece(Writer& writer, ByteRange range);
  void SendOpenExtent(Writer& writer);
  des::Activity<void> SendExtent(Writer& writer, ByteRange extent);
  // `makes`: these are the file's first bytes on the node.
  des::Activity<bool> StoreOn(NodeId node, FileId file, ByteRange range, uint64_t fresh_bytes,
                              bool makes);
  // There are bytes up to `end` to tell the manager of.
  static void NoteWritten(Writer& writer, uint64_t end);
  // Streams: tells the manager of what was written, at once if it is enough, else a while later.
  des::Activity<Outcome<Done>> WriteStream(Writing& writing, ByteRange range);
  des::Activity<Outcome<Done>> Publish(Writer& writer);
  des::Activity<void> PublishLater(std::shared_ptr<Writing> writing);
  // The last writer of a stream has gone.
  void EndStream(Writer& writer);
  void Leave(Writer& writer);
  des::Activity<void> Seal(FileId file);
  des::Activity<Outcome<Done>> Commit(Writer& writer, bool closes);
  // What the file's objects occupy, for a commit. Asks nodes for what is not known here.
  des::Activity<std::vector<CommitRequest::NodeBytes>> NodeBytesOf(FileId file);
  // A short question to the node of another host, and its answer.
  des::Activity<void> AskNode(Access what, NodeId node, FileId file);
  des::Activity<void> AskBeside(Access what, NodeId node, FileId file, des::Group& group);
  des::Activity<void> AwaitCopies(const Writer& writer);
  // `why`: the manager's reason, if any.
  Failure NoSpace(Writer& writer, const std::vector<NodeId>& nodes, const std::string& why = "");
  void NoteFull(const Writing& writing, const Outcome<Done>& written);
  // ---- continuing on other nodes when one is full (simulated_spill.cc)
  des::Activity<Outcome<Done>> Spill(Writer& writer, ByteRange range, NodeId full);
  des::Activity<Outcome<Done>> GoOnElsewhere(Writer& writer, ByteRange range);

  SimulatedFiles& files_;
  SimulatedGrants grants_;
  uint64_t buffered_bytes_ = 0;
  std::map<std::string, FullStore> full_;  // By task.
  des::Signal buffer_freed_;
  des::Slots io_threads_;
  des::Slots sealer_;   // The own node's sealer, which has one thread.
  des::Group sealing_;  // Objects that wait for it or are being sealed.
};

// One file that is being written, from open to close.
struct SimulatedWrites::Writer {
  Writer(des::EventLoop& loop, FileId id, SimulatedFile& f, const std::string& p, ByteRange r,
         Content b)
      : file(id), state(f), path(p), range(r), before(b), sending(loop), lacking{{}, p} {}
  const FileId file;
  SimulatedFile& state;
  const std::string& path;
  ByteRange range;
  const Content before;
  bool by_kernel = false;
  bool keeps_pages = false;  // The kernel keeps what is written.
  // Bytes of a stream that readers have not been told of, and when they were last told.
  bool is_stream = false;
  uint64_t unpublished_bytes = 0;
  Time published;
  uint64_t pages_end = 0;       // Pages below this have room.
  ByteRange open_extent;        // Buffered and not sent yet.
  uint64_t buffered_bytes = 0;  // Includes data being sent.
  des::Group sending;
  std::optional<NodeId> full;  // A node that had no room for sent data.
  // Since bytes were last accepted: the nodes without room, and how often none had any.
  std::set<NodeId> refusing;
  size_t refusals = 0;
  uint32_t overtaken = 0;  // How often other mounts were faster, in a row.
  FullStore lacking;       // Set if the write fails for lack of room.
};

struct SimulatedWrites::Writing : std::enable_shared_from_this<Writing> {
  Writing(des::EventLoop& loop, FileId id, SimulatedFile& f, const std::string& path,
          ByteRange range, Content before, const std::string& t)
      : writer(loop, id, f, path, range, before), task(t), at(range.begin), io(loop, 1) {}
  Writer writer;
  const std::string& task;
  uint64_t at;
  des::Slots io;  // Whoever writes a stream or publishes what was written.
  bool is_closed = false;
  bool publishes_later = false;
  bool is_whole = false;           // Every byte was written at least once.
  Outcome<Done> written = Done{};  // A failure is permanent: nothing more is written.
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_WRITES_H_
