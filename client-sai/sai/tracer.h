// The trace of a mount while it runs (common/model/trace.h is the file's form).
//
// Threads that serve requests put what happened into rings of their own; one thread of the
// tracer's writes it. Nobody waits for that thread: what comes faster than it writes is dropped and
// counted, and a file that cannot be written any more ends the trace, not the mount.
#ifndef MOSA_CLIENT_SAI_SAI_TRACER_H_
#define MOSA_CLIENT_SAI_SAI_TRACER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/task_names.h"
#include "client-sai/sai/trace_ring.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/trace.h"

namespace mosa::sai {

enum class TraceLevel : uint8_t { kOff, kLight, kFull };

// A TraceRecord without its text; times are monotonic.
struct TraceEvent {
  TraceKind kind = TraceKind::kOpen;
  uint8_t flags = 0;
  FileId file;
  uint64_t handle = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  Time start;
  Time end;  // Note() says now if it is not set.
  FileId parent;
  FileId target;
  uint32_t pid = 0;
  uint64_t process_start = 0;
};

// Owned by the program; borrows the Filesystem, which it outlives, and the clock. Start and Stop
// may be called from any thread, and wait for the tracer's thread; the rest is for threads that
// serve requests, and waits for nobody.
class Tracer {
 public:
  struct Options {
    std::string directory;  // The file is made there, named after the host.
    std::string host;
    std::string mount_point;
    bool light = false;
  };

  // `filesystem` may hand files to kernels while there is no full trace.
  Tracer(Filesystem& filesystem, KernelNotifier& notifier, const Clock& clock);
  ~Tracer();  // Calls Stop.
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Everything that is opened from here on is traced. AlreadyExists: the file is there;
  // FailedPrecondition: a trace is under way, or the file cannot be made.
  Status Start(const Options& options);
  // Returns when the file is whole. FailedPrecondition: there is no trace.
  Status Stop();
  // The same where it does not matter whether there is one.
  Status StopIfOn() { return on() ? Stop() : OkStatus(); }
  // JSON: "tracing" or not, "file", "light", "records", "dropped", "bytes", "end" of the last one.
  std::string StatusJson() const;

  // What the last Start or Stop was refused for, or nothing: "refused" of StatusJson().
  void NoteRefusal(const Status& refusal);

  TraceLevel level() const { return level_.load(std::memory_order_relaxed); }
  bool on() const { return level() != TraceLevel::kOff; }
  bool full() const { return level() == TraceLevel::kFull; }
  Time Now() const { return clock_.Monotonic(); }
  void Note(TraceEvent event, std::string_view text = {});
  // An open, create or flush by process `pid`, which must not have ended yet.
  struct Process {
    uint64_t start = 0;
    std::string text;  // As in the record.
  };
  Process ProcessOf(uint32_t pid);
  void CountStat() { stats_.fetch_add(1, std::memory_order_relaxed); }
  void CountLookup() { lookups_.fetch_add(1, std::memory_order_relaxed); }

 private:
  using Ring = TraceRing<TraceEvent>;
  struct NewRing {
    std::shared_ptr<Ring> ring;
    NewRing* next = nullptr;
  };
  struct OwnRing;

  Ring& RingOfThread();
  void Run();
  // Moves what is in the rings into the block.
  void Drain();
  void AddRecord(const TraceEvent& event, std::string text, Duration to_manager_time);
  void AddKnownNames();
  bool IsNewName(FileId file, FileId parent, std::string_view name);
  void WriteBlock();
  void Fail(const std::string& why);
  void WriteFoot(std::string_view reason);

  Filesystem& filesystem_;
  KernelNotifier& notifier_;
  const Clock& clock_;
  TaskNames tasks_;
  std::atomic<TraceLevel> level_ = TraceLevel::kOff;
  std::atomic<NewRing*> new_rings_ = nullptr;  // A stack; the writer takes it whole.
  std::atomic<uint64_t> stats_ = 0;
  std::atomic<uint64_t> lookups_ = 0;

  std::mutex control_mutex_;  // Held by Start and Stop from begin to end.
  std::thread writer_;        // Guarded by control_mutex_.

  mutable std::mutex mutex_;  // Held briefly; after control_mutex_.
  std::condition_variable wake_;
  bool ending_ = false;  // Guarded by mutex_, as what follows.
  std::string path_;
  bool light_ = false;
  std::string refused_;
  TraceFoot foot_;  // As far as it is written.

  // Of the writer's thread, and of Start before it and Stop after it.
  UniqueFd file_;
  TraceBlock block_;
  std::vector<std::shared_ptr<Ring>> rings_;
  std::unordered_map<uint64_t, uint64_t> names_;  // By file, a hash of its last name.
  Time begun_;                                    // Monotonic.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_TRACER_H_
