// Records the trace of a running mount (common/model/trace.h describes the file).
//
// Threads that serve requests put events into rings of their own; the tracer's thread writes them.
// Nobody waits for that thread. Events that come faster than it writes are dropped and counted. If
// the file cannot be written any more, the trace ends, but not the mount.
#ifndef MOSA_CLIENT_SAI_TRACE_TRACER_H_
#define MOSA_CLIENT_SAI_TRACE_TRACER_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "client-sai/trace/task_names.h"
#include "client-sai/trace/trace_output.h"
#include "client-sai/trace/traced_mount.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/model/trace.h"
#include "common/observe/thread_rings.h"

namespace mosa::sai {

enum class TraceLevel : uint8_t { kOff, kLight, kFull };

// A TraceRecord without its text. Times are monotonic.
struct TraceEvent {
  TraceKind kind = TraceKind::kOpen;
  uint8_t flags = 0;
  FileId file;
  uint64_t handle = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  Time start;
  Time end;  // If unset, Note() uses the current time.
  FileId parent;
  FileId target;
  uint32_t pid = 0;
  uint64_t process_start = 0;
};

// Owned by the program. Borrows the clock and the mount, which outlives it. Threads that serve
// requests may call everything except EndWithin. Start waits a bounded time for the trace's
// directory; nothing else blocks. No callback is waited for, because the directory may need one to
// respond.
class Tracer {
 public:
  using Options = TraceOptions;

  Tracer(TracedMount& mount, const Clock& clock);
  ~Tracer();  // Stops, and blocks until the file is complete.
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Traces everything opened from now on. AlreadyExists if the file exists. FailedPrecondition if a
  // trace is in progress, or the file cannot be created in time. InvalidArgument if the file would
  // lie on the mount itself.
  Status Start(const Options& options);
  // Stops tracing; StatusJson() tells when the file is complete. FailedPrecondition if there is no
  // trace.
  Status Stop();
  // Stops, and waits up to `wait_max` for the file. False: the file is still being written, so this
  // object and the mount must live until the process exits.
  bool EndWithin(Duration wait_max);
  // JSON with "tracing", "ending" (the file of the stopped trace is still being written), "file",
  // "light", "records", "dropped", "bytes", and "end" of the last trace.
  std::string StatusJson() const;

  // Records why the last Start or Stop was refused, or nothing: "refused" in StatusJson().
  void NoteRefusal(const Status& refusal);

  // Held while a request is served whose event is noted after its reply. Once it has the reply, the
  // caller may end the trace before the event is noted.
  class Use {
   public:
    explicit Use(Tracer& tracer) : tracer_(tracer.on() ? &tracer : nullptr) {
      if (tracer_ != nullptr) ++tracer_->uses_;
    }
    ~Use() {
      if (tracer_ != nullptr) --tracer_->uses_;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Tracer* const tracer_;
  };

  TraceLevel level() const { return level_.load(); }
  bool on() const { return level() != TraceLevel::kOff; }
  bool full() const { return level() == TraceLevel::kFull; }
  // True if the kernel must also ask for cached bytes of a file, so that each read is seen.
  bool cold() const { return full() && cold_.load(); }
  Time Now() const { return clock_.Monotonic(); }
  void Note(TraceEvent event, std::string_view text = {});
  // The process of thread `pid`, for an open, create, flush or unlink. The thread must not have
  // ended.
  struct Process {
    uint32_t pid = 0;  // Shared by all its threads.
    uint64_t start = 0;
    std::string text;  // As in the record.
  };
  Process ProcessOf(uint32_t pid);
  // Prepares the record of an open by thread `pid`, as far as it is known before the reply. The
  // thread waits for the reply, so its process still exists. `flags` are those of open(2).
  struct OpenRecord {
    TraceEvent event;
    std::string text;
  };
  OpenRecord RecordOfOpen(TraceKind kind, uint32_t pid, int flags);
  void CountStat() { output_.CountStat(); }
  void CountLookup() { output_.CountLookup(); }

 private:
  void TurnOff();
  void Run(const Options& options);
  // Reports to Start; false if there is nothing to write.
  bool Open(const Options& options);
  void WriteUntilEnd();
  // Moves the contents of the rings to the output.
  void Drain();
  void AddRecord(const TraceEvent& event, std::string text, Duration to_manager_time);
  void AwaitUses();
  void AddKnownNames();

  TracedMount& mount_;
  const Clock& clock_;
  TaskNames tasks_;
  std::atomic<TraceLevel> level_ = TraceLevel::kOff;
  std::atomic<bool> cold_ = false;
  ThreadRings<TraceEvent, size_t{1} << 19> rings_;  // Drained by the writer.
  std::atomic<uint64_t> uses_ = 0;
  TraceOutput output_;

  SystemMutex control_mutex_;  // Held by Start, Stop and EndWithin.
  std::thread writer_ ABSL_GUARDED_BY(control_mutex_);

  // Held briefly; taken after control_mutex_, and before the lock of output_, so that StatusJson()
  // reads both as of one moment.
  mutable SystemMutex mutex_;
  SystemCondVar wake_;     // Wakes the writer.
  SystemCondVar changed_;  // Signals `opened_` and `running_`.
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;    // The writer runs.
  bool unstopped_ ABSL_GUARDED_BY(mutex_) = false;  // A Start was not yet followed by a Stop.
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;   // Start no longer waits.
  std::optional<Status> opened_ ABSL_GUARDED_BY(mutex_);
  std::string refused_ ABSL_GUARDED_BY(mutex_);

  Time begun_;  // Monotonic. Used only by the writer thread.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_TRACE_TRACER_H_
