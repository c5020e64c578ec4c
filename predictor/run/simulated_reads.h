// Internal to predictor/run: reads through a simulated mount: by the kernel, from its pages, from
// the manager, or from the nodes with read-ahead.
//
// Runs on one loop.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_READS_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_READS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "client-sai/core/read_ahead.h"
#include "predictor/des/waiting.h"
#include "predictor/run/kernel_read_ahead.h"
#include "predictor/run/mount_part.h"
#include "predictor/run/simulated_files.h"

namespace mosa::predict {

// The bytes that reading a file has moved.
struct BytesRead {
  uint64_t local = 0;   // From this host's node, or from the manager (inline).
  uint64_t remote = 0;  // From other hosts.
  uint64_t cached = 0;  // From the kernel's page cache.
  BytesRead& operator+=(const BytesRead& other) {
    local += other.local;
    remote += other.remote;
    cached += other.cached;
    return *this;
  }
};

class SimulatedReads : private MountPart {
 public:
  // One file that is read from nodes, from open to close.
  struct Reader;
  // A file that a program has open for reading.
  struct Reading {
    enum class By : uint8_t { kNothing, kKernel, kPages, kManager, kNodes };
    By by = By::kNothing;
    FileId id;
    uint64_t version = 0;
    uint64_t size_bytes = 0;
    uint64_t asked_bytes = 0;
    uint64_t held_end = 0;   // Bytes below this were read and are in the kernel's pages.
    bool is_back = false;    // Through an open for writing.
    bool is_stream = false;  // Opened while it could still grow.
    BytesRead read;
    const std::string* task = nullptr;  // The manager is told that it has read the file.
    std::shared_ptr<Reader> reader;     // For kNodes. Fetches that outlive the reading share it.
  };

  // `files` must outlive this.
  SimulatedReads(const MountPart& mount, SimulatedFiles& files)
      : MountPart(mount), files_(files), fetch_threads_(loop_, platform_.client.fetch_threads) {}

  des::Activity<Outcome<Done>> OpenForReading(FileId file, const std::string& task);
  std::shared_ptr<Reading> ReadingOf(FileId id, uint64_t size_bytes, bool is_back);
  // Reads are a program's calls from now on; else they are the kernel's requests from a trace.
  static void ReadByProgram(Reading& reading);
  // In a stream it waits for bytes that are yet to be written, until the stream has ended.
  des::Activity<void> ReadPart(Reading& reading, ByteRange range);
  des::Activity<BytesRead> CloseRead(Reading& reading);

 private:
  using Block = SimulatedBlock;
  using BlockPtr = SimulatedBlockPtr;

  // How the bytes of a file of this size are read from now on.
  void SetSource(Reading& reading, uint64_t size_bytes);
  des::Activity<void> ReadWhatIsThere(Reading& reading, ByteRange range);
  // Waits until the stream is longer than `offset` or has ended, and returns its size then.
  des::Activity<uint64_t> AwaitMore(FileId file, uint64_t offset);
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

  SimulatedFiles& files_;
  des::Slots fetch_threads_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_READS_H_
