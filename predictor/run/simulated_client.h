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

#include "client-sai/core/outcome.h"
#include "common/model/ranges.h"
#include "predictor/des/activity.h"
#include "predictor/run/machines.h"
#include "predictor/run/mount_part.h"
#include "predictor/run/simulated_files.h"
#include "predictor/run/simulated_manager.h"
#include "predictor/run/simulated_names.h"
#include "predictor/run/simulated_reads.h"
#include "predictor/run/simulated_writes.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// What the runner learns about a file.
struct FileLook {
  uint64_t size_bytes = 0;
  std::map<MachineIndex, uint64_t> bytes_by_machine;
};

// Runs on one loop; activities of one client may overlap. Paths and task names must outlive the
// call, or the close of what the call opened.
class SimulatedClient : private MountPart {
 public:
  template <typename T>
  using Outcome = sai::Outcome<T>;
  using Done = sai::Done;
  using Reading = SimulatedReads::Reading;
  using Writing = SimulatedWrites::Writing;
  using Content = SimulatedWrites::Content;

  // All arguments must outlive this.
  SimulatedClient(des::EventLoop& loop, const Platform& platform, Machines& machines,
                  SimulatedManager& manager, ClientId id, MachineIndex on);

  MachineIndex machine() const { return machine_; }
  // Why the last write of `task` that failed for lack of room did so; null if none did.
  const FullStore* FullOf(const std::string& task) const { return writes_.FullOf(task); }

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
  des::Activity<Outcome<std::shared_ptr<Reading>>> OpenToRead(const std::string& path,
                                                              const std::string& task);
  des::Activity<void> ReadPart(Reading& reading, ByteRange range) {
    return reads_.ReadPart(reading, range);
  }
  des::Activity<BytesRead> CloseRead(Reading& reading) { return reads_.CloseRead(reading); }
  // `range` covers all bytes that will be written.
  des::Activity<Outcome<std::shared_ptr<Writing>>> OpenToWrite(const std::string& path,
                                                               ByteRange range, Content before,
                                                               const std::string& task);
  // Writes that many further bytes; after the range's last byte it continues at its first.
  des::Activity<Outcome<Done>> WritePart(Writing& writing, uint64_t bytes) {
    return writes_.WritePart(writing, bytes);
  }
  // Opens what was written so far for reading, through the same open. Close it before writing more.
  des::Activity<std::shared_ptr<Reading>> ReadBack(Writing& writing);
  // Writes the rest of the range first.
  des::Activity<Outcome<Done>> CloseWrite(Writing& writing) { return writes_.CloseWrite(writing); }
  // Ends without writing more, and leaves the file as it is. Returns when all data in flight has
  // arrived.
  des::Activity<void> AbandonWrite(Writing& writing) { return writes_.AbandonWrite(writing); }
  // Removes the name, and with it the file's hints. Succeeds if there is none.
  des::Activity<Outcome<Done>> Remove(const std::string& path) { return names_.Remove(path); }
  // Waits until the own node has sealed what was written past its daemon: see Seal().
  des::Activity<void> AwaitSealed() { return writes_.AwaitSealed(); }
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
  des::Activity<Outcome<Done>> WriteAll(const std::string& path, ByteRange range, Content before,
                                        const std::string& task);
  des::Activity<Outcome<FileId>> FileToWrite(const std::string& path, Content before,
                                             const std::string& task);
  // FileId{}: there is none.
  des::Activity<Outcome<FileId>> Find(const std::string& path);
  des::Activity<Outcome<Done>> SetHints(const std::string& path, const HintMap& hints);
  void OnPush(const Push& push);
  des::Activity<void> Confirm(RecallPush recall);
  des::Activity<void> Upkeep();

  SimulatedFiles files_;
  SimulatedReads reads_;
  SimulatedWrites writes_;
  SimulatedNames names_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_CLIENT_H_
