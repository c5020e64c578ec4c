// A process that makes calls for the runner that may never return: a call into a mount that hangs
// waits in the kernel, where no signal reaches it. The runner asks its hand, and waits only so
// long.
//
// One question at a time. One thread. The process starts with the first question and ends with its
// owner; a stuck one is given up, and ends when the kernel releases it.
#ifndef MOSA_TOOLS_HOSTS_HAND_H_
#define MOSA_TOOLS_HOSTS_HAND_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "common/base/time.h"
#include "tools/hosts/worker.h"

namespace mosa::cli {

class Hand {
 public:
  // Runs in the hand's process, once for each question. Strings may hold any bytes.
  explicit Hand(AnswerFunction work) : work_(std::move(work)) {}
  ~Hand() { GiveUp(); }
  Hand(const Hand&) = delete;
  Hand& operator=(const Hand&) = delete;

  // Precondition: no question is open.
  Status Post(const nlohmann::json& question);
  // The answer to the open question; nothing if there is none after `at_most`, or a signal came.
  // Unavailable if the process has ended.
  Result<std::optional<nlohmann::json>> Take(Duration at_most);
  // Drops the open question, and the process with it; the next question starts another one.
  void GiveUp();

  bool has_question() const { return has_question_; }

 private:
  Status Start();

  const AnswerFunction work_;
  Worker worker_;
  bool has_question_ = false;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_HOSTS_HAND_H_
