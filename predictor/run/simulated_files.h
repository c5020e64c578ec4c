// Internal to predictor/run: what a simulated mount knows of files: its right to their bytes, their
// attributes, and which of their bytes it has read ahead or its kernel keeps.
//
// Runs on one loop.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_FILES_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_FILES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "client-sai/core/block_index.h"
#include "client-sai/core/name_epoch.h"
#include "client-sai/core/rules.h"
#include "client-sai/core/shared_names.h"
#include "predictor/des/waiting.h"
#include "predictor/run/mount_part.h"
#include "predictor/run/page_cache.h"

namespace mosa::predict {

// When something was asked for: what is recalled later is not known from the answer.
struct SimulatedMark {
  uint64_t recalls = 0;
  Time at;
};

struct SimulatedFile {
  // Up to date: `access`, and `attributes`. The latter also of directories.
  bool right_known = false, attributes_known = false;
  Time shown_until;  // Those of a shared directory may be shown until then.
  DataAccess access;
  Attributes attributes;
  bool manager_counts_open = false;
  bool counts_readers = false;  // The manager wants to hear of each task that has read it.
  uint32_t handles = 0;
  uint32_t writers = 0;   // Handles open for writing.
  bool unsealed = false;  // The own node's object was written past its daemon.
  bool pinned = false;    // The kernel writes the object directly.
  // The pages and bytes that have room on each node, as far as this mount knows. It knows all of it
  // for `room_version` of the data.
  IntervalSet pages;
  std::map<NodeId, uint64_t> allocated;
  std::optional<uint64_t> room_version;
  // What a close has to tell the manager: that there is something; and where the bytes written end.
  bool must_commit = false;
  std::optional<uint64_t> written_end;
  std::optional<MakeRequest> unsent;  // A deferred creation that the manager does not know yet.
  FileId made_in;                     // Its directory.
};

// Pages that were requested, or a block that is fetched ahead.
class SimulatedBlock {
 public:
  SimulatedBlock(des::EventLoop& loop, ByteRange range) : come(loop), range_(range) {}
  ByteRange range() const { return range_; }
  bool done = false;
  des::Signal come;

 private:
  const ByteRange range_;
};
using SimulatedBlockPtr = std::shared_ptr<SimulatedBlock>;

class SimulatedFiles : private MountPart {
 public:
  explicit SimulatedFiles(const MountPart& mount)
      : MountPart(mount), pages_(machines_.host(machine_).page_cache_bytes), changed_(loop_) {}

  // The file, of which nothing is known at first.
  SimulatedFile& At(FileId file) { return files_[file]; }
  // True if the mount can answer a lookup that finds the file by itself. FileId{}: absent.
  bool MayAnswer(FileId file) const;
  // True if this host's node holds the whole file.
  bool HoldsAllHere(const Layout& layout) const;

  // An answer of the manager is stale if its file was recalled after the mark at which it was asked
  // for.
  SimulatedMark mark() const { return {recalls_, loop_.now()}; }
  void NoteRecall(FileId file) {
    last_recalls_[file] = ++recalls_;
    changed_.Give();
  }
  bool RecalledSince(SimulatedMark mark, FileId file) const {
    const auto last = last_recalls_.find(file);
    return last != last_recalls_.end() && last->second > mark.recalls;
  }
  void NoteAttributes(FileId file, const Attributes& attributes, SimulatedMark mark);
  // The manager knows the new file now.
  void NoteSent(FileId file, const MakeReply& made, SimulatedMark mark);

  // Tells the manager of a file that only this mount knows.
  des::Activity<Outcome<Done>> EnsureMade(FileId file);
  // The right to read or write the file's bytes, from what is known or from the manager.
  des::Activity<Outcome<Done>> EnsureRight(FileId file, bool write, bool with_attributes,
                                           const std::string& task);
  // A file may have changed: it was recalled, or this mount has told the manager of what it wrote.
  des::Signal& changed() { return changed_; }
  // A handle of the file has ended: with the last, the mount forgets what room it has.
  void EndHandle(FileId file);

  sai::BlockIndex<SimulatedBlockPtr>& blocks() { return blocks_; }
  PageCache& pages() { return pages_; }
  sai::NameEpoch& name_epoch() { return name_epoch_; }

 private:
  std::map<FileId, SimulatedFile> files_;
  std::map<FileId, uint64_t> last_recalls_;  // Numbers, by file.
  uint64_t recalls_ = 0;
  sai::BlockIndex<SimulatedBlockPtr> blocks_{sai::kReadCacheBytesMax};
  PageCache pages_;
  des::Signal changed_;
  sai::NameEpoch name_epoch_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_FILES_H_
