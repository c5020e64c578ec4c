// FileScans: answers queries over all files (FileScan) in short pieces, one per round of the loop,
// so that repeated queries do not delay other clients.
//
// Callers with the same question share one scan until it begins. The number of waiting calls is
// limited, per caller and in total; calls beyond the limit are refused.
// Used only by the loop's thread.
#ifndef MOSA_MANAGER_SERVICE_FILE_SCANS_H_
#define MOSA_MANAGER_SERVICE_FILE_SCANS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "manager/core/file_scan.h"
#include "manager/core/manager_core.h"

namespace mosa::manager {

class FileScans {
 public:
  static constexpr size_t kCallsMax = 256;
  static constexpr size_t kCallsPerCallerMax = 16;
  // About a millisecond of work.
  static constexpr size_t kStepsAtOnce = 4096;

  // Called once. `scan` is valid only if `status` is ok.
  using Done = std::function<void(const Status& status, const FileScan& scan)>;

  // ResourceExhausted if too many calls are waiting.
  void Ask(const FileScanQuestion& question, const std::string& caller, Done done);
  // Continues the first scan by one piece.
  void Continue(const ManagerCore& core);
  // Answers all waiting calls with Unavailable.
  void EndAll();

  bool is_busy() const { return !questions_.empty(); }
  size_t calls() const { return calls_; }

 private:
  struct Call {
    std::string caller;
    Done done;
  };
  struct Question {
    explicit Question(const FileScanQuestion& asked) : scan(asked) {}
    FileScan scan;
    bool has_begun = false;
    std::vector<Call> calls;
  };

  void End(const Status& status);

  std::deque<Question> questions_;
  size_t calls_ = 0;  // Over all questions.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_FILE_SCANS_H_
