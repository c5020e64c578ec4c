// FileScans: answers questions about all files (FileScan) in the pauses of the loop, a short piece
// in each of its rounds, so that asking them over and over keeps nobody else waiting.
//
// A question that nobody has begun to look into yet is shared by all who ask it. One caller has so
// many waiting, and all together so many; whoever asks beyond that is refused.
// Used by the loop's thread only.
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
  // Takes about a millisecond.
  static constexpr size_t kStepsAtOnce = 4096;

  // Called once; `scan` is answered if `status` is ok.
  using Done = std::function<void(const Status& status, const FileScan& scan)>;

  // ResourceExhausted if too many wait already.
  void Ask(const FileScanQuestion& question, const std::string& caller, Done done);
  // Goes on with the first question.
  void Continue(const ManagerCore& core);
  // Nobody is answered any more but with Unavailable.
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
