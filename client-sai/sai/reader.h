// Reader: what programs read: inline content, local objects by descriptor, and other objects by
// prefetching. A read is of one layout: if that is recalled meanwhile, it is repeated.
//
// Thread-safe. Read and Seek block within the thread's WaitBudget. Borrows the constructor's
// arguments.
#ifndef MOSA_CLIENT_SAI_SAI_READER_H_
#define MOSA_CLIENT_SAI_SAI_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client-sai/api/node_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/executor.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/node_objects.h"
#include "client-sai/sai/node_states.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/stream_waits.h"
#include "client-sai/sai/write_behind.h"
#include "client-sai/sai/writer.h"
#include "common/base/sync.h"
#include "common/model/ranges.h"

namespace mosa::sai {

class Reader {
 public:
  // `reads` runs what is fetched ahead.
  Reader(const FilesystemOptions& options, NodeApi& nodes, HandleTable& handles, Lease& lease,
         NodeStates& node_states, AttributeCache& attributes, AccessRights& rights,
         NodeObjects& objects, WriteBehind& write_behind, Writer& writer, BlockCache& blocks,
         Executor& reads, Stats& stats)
      : options_(options),
        nodes_(nodes),
        handles_(handles),
        lease_(lease),
        node_states_(node_states),
        attributes_(attributes),
        rights_(rights),
        objects_(objects),
        write_behind_(write_behind),
        writer_(writer),
        blocks_(blocks),
        stats_(stats),
        fetch_lanes_(reads),
        stream_waits_(rights) {}

  Outcome<ReadResult> Read(HandleId handle, uint64_t offset, size_t size_bytes);
  Outcome<uint64_t> Seek(HandleId handle, uint64_t offset, SeekKind kind);
  // A fingerprint of a file's content: 16 hexadecimal digits, the same wherever its bytes lie. It
  // tells changes, but not forgeries.
  Outcome<std::string> Checksum(const InodePtr& inode);
  StreamWaits& stream_waits() { return stream_waits_; }
  // The kernel could not read what a ReadResult maps.
  void OnUnreadableMapping(HandleId handle);

 private:
  // Identifies the layout and session of a read. If they were recalled meanwhile, the manager may
  // have had objects dropped, which then read as zeroes.
  struct LayoutMark {
    uint64_t recalls = 0;
    uint64_t era = 0;
    uint64_t incarnations = 0;
    bool operator==(const LayoutMark&) const = default;
  };
  LayoutMark MarkLayout(Inode& inode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Runs `read` until it completes under one layout.
  template <typename Value>
  Outcome<Value> ByOneLayout(Inode& inode, const std::function<Outcome<Value>()>& read);

  Outcome<ReadResult> ReadOnce(OpenFile& handle, uint64_t offset, size_t size_bytes);
  Outcome<ReadResult> AtEndOf(const OpenFile& handle, StreamState stream, uint64_t offset);
  AccessPtr AfterOwnWrites(Inode& inode, ByteRange range, AccessPtr access);
  Outcome<ReadResult> ReadBound(OpenFile& handle, const AccessPtr& access, ByteRange range,
                                uint64_t file_bytes);
  std::optional<ReadResult> ReadByDescriptor(OpenFile& handle, const DataAccess& access,
                                             ByteRange range);
  void FetchAhead(const InodePtr& inode, const AccessPtr& access, ByteRange range);

  Outcome<std::string> ChecksumOnce(const InodePtr& inode);
  Outcome<uint64_t> SeekOnce(Inode& inode, uint64_t offset, SeekKind kind);
  Outcome<uint64_t> SeekData(Inode& inode, const DataAccess& access, ByteRange range);
  Outcome<uint64_t> SeekHole(Inode& inode, const DataAccess& access, ByteRange range);

  const FilesystemOptions& options_;
  NodeApi& nodes_;
  HandleTable& handles_;
  Lease& lease_;
  NodeStates& node_states_;
  AttributeCache& attributes_;
  AccessRights& rights_;
  NodeObjects& objects_;
  WriteBehind& write_behind_;
  Writer& writer_;
  BlockCache& blocks_;
  Stats& stats_;
  Lanes fetch_lanes_;  // What `reads` runs, by file and node.
  StreamWaits stream_waits_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_READER_H_
