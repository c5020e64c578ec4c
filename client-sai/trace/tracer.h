// The trace of a mount while it runs (common/model/trace.h is the file's form).
//
// Threads that serve requests put what happened into rings of their own; one thread of the
// tracer's writes it. Nobody waits for that thread: what comes faster than it writes is dropped and
// counted, and a file that cannot be written any more ends the trace, not the mount.
#ifndef MOSA_CLIENT_SAI_TRACE_TRACER_H_
#define MOSA_CLIENT_SAI_TRACE_TRACER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "client-sai/trace/task_names.h"
#include "client-sai/trace/traced_mount.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/trace.h"
#include "common/observe/thread_rings.h"

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

// Owned by the program; borrows the mount, which outlives it, and the clock. All but EndWithin is
// for threads that serve requests, too: Start waits for the trace's directory, but not for long,
// the rest for nobody. No callback is waited for, as the directory may need one to answer.
class Tracer {
 public:
  struct Options {
    std::string directory;  // The file is made there.
    std::string host;
    std::string mount_point;
    bool light = false;
    bool cold = false;      // Full traces only: no open finds pages of the file kept.
    std::string file = {};  // Its name there; HOST.trace unless one is given.
  };

  Tracer(TracedMount& mount, const Clock& clock);
  ~Tracer();  // Stops, and waits for the file as long as it takes.
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Everything that is opened from here on is traced. AlreadyExists: the file is there;
  // FailedPrecondition: a trace is under way, or the file cannot be made, or not soon enough;
  // InvalidArgument: it would lie on the mount itself.
  Status Start(const Options& options);
  // Nothing more is traced; StatusJson() says when the file is whole. FailedPrecondition: there is
  // no trace.
  Status Stop();
  // Stops, and waits so long for the file. False: it is being written still; then this object and
  // the mount must outlive the process.
  bool EndWithin(Duration wait_max);
  // JSON: "tracing" or not, "ending" while the file of what is traced no more is still written,
  // "file", "light", "records", "dropped", "bytes", "end" of the last one.
  std::string StatusJson() const;

  // What the last Start or Stop was refused for, or nothing: "refused" of StatusJson().
  void NoteRefusal(const Status& refusal);

  // For as long as a request is served that is noted after its answer: the caller that has the
  // answer may end the trace before that.
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
  // The kernel is to ask for what it had kept of a file, too, so that each read is seen.
  bool cold() const { return full() && cold_.load(); }
  Time Now() const { return clock_.Monotonic(); }
  void Note(TraceEvent event, std::string_view text = {});
  // An open, create, flush or unlink by thread `pid`, which must not have ended yet.
  struct Process {
    uint32_t pid = 0;  // Shared by all its threads.
    uint64_t start = 0;
    std::string text;  // As in the record.
  };
  Process ProcessOf(uint32_t pid);
  // The record of an open by thread `pid`, which waits for its answer and so is there to be asked
  // after, as far as it is known before that answer. `flags` are those of open(2).
  struct OpenRecord {
    TraceEvent event;
    std::string text;
  };
  OpenRecord RecordOfOpen(TraceKind kind, uint32_t pid, int flags);
  void CountStat() { stats_.fetch_add(1, std::memory_order_relaxed); }
  void CountLookup() { lookups_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void Run(const Options& options);
  // Tells Start; false if there is nothing to write.
  bool Open(const Options& options);
  Status MakeFile(const Options& options, std::string_view pages);
  void WriteUntilEnd();
  // Moves what is in the rings into the block.
  void Drain();
  void AddRecord(const TraceEvent& event, std::string text, Duration to_manager_time);
  void AwaitUses();
  void AddKnownNames();
  bool IsNewName(FileId file, FileId parent, std::string_view name);
  void WriteBlock();
  void Fail(const std::string& why);
  void WriteFoot(std::string_view reason);

  TracedMount& mount_;
  const Clock& clock_;
  TaskNames tasks_;
  std::atomic<TraceLevel> level_ = TraceLevel::kOff;
  std::atomic<bool> cold_ = false;
  ThreadRings<TraceEvent, size_t{1} << 19> rings_;  // Drained by the writer.
  std::atomic<uint64_t> uses_ = 0;
  std::atomic<uint64_t> stats_ = 0;
  std::atomic<uint64_t> lookups_ = 0;
  std::atomic<uint64_t> dropped_ = 0;  // Since the last Drain().

  std::mutex control_mutex_;  // Held by Start, Stop and EndWithin.
  std::thread writer_;        // Guarded by control_mutex_.

  mutable std::mutex mutex_;         // Held briefly; after control_mutex_.
  std::condition_variable wake_;     // Wakes the writer.
  std::condition_variable changed_;  // `opened_` or `running_` has.
  bool ending_ = false;              // Guarded by mutex_, as what follows.
  bool running_ = false;             // The writer.
  bool unstopped_ = false;           // There was a Start that no Stop has followed.
  bool given_up_ = false;            // Start waits no more.
  std::optional<Status> opened_;
  std::string path_;
  bool light_ = false;
  std::string refused_;
  TraceFoot foot_;  // As far as it is written.

  // Used only by the writer thread.
  UniqueFd file_;
  TraceBlock block_;
  std::unordered_map<uint64_t, uint64_t> names_;  // By file, a hash of its last name.
  Time begun_;                                    // Monotonic.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_TRACE_TRACER_H_
