// Workers: processes that answer questions, one after the other, and end when their input does.
// `mosa identify` and `mosa stage` start them on hosts; a Hand (hand.h) forks one.
//
// A message is its length and a MessagePack value, which keeps bytes that are not text as they are.
// One thread.
#ifndef MOSA_TOOLS_HOSTS_WORKER_H_
#define MOSA_TOOLS_HOSTS_WORKER_H_

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

// A status as an answer, or as a part of one; an answer without a code is OK.
nlohmann::json StatusJson(const Status& status);
Status StatusIn(const nlohmann::json& answer);

// ---- the process that asks

class MessageSocket {
 public:
  // Returns the other end. Whatever that sends before `greeting` is skipped, such as the banner of
  // a login shell; empty: it sends messages from the beginning. Unavailable: no socket is left.
  Result<UniqueFd> Connect(std::string_view greeting = {});
  void Close() { socket_.reset(); }

  // Waits until all is sent. False if the other side is gone.
  bool Send(const nlohmann::json& message) const;
  // Takes what has arrived, without waiting. False if the other side is gone.
  bool Receive();
  // Takes the first message that is whole.
  std::optional<nlohmann::json> Next();

  int fd() const { return socket_.get(); }
  bool greeted() const { return greeting_.empty(); }
  size_t waiting_bytes() const { return received_.size(); }  // Received, and not taken by Next().

 private:
  UniqueFd socket_;
  std::string_view greeting_;  // As far as it is still awaited.
  std::string received_;
};

struct Worker {
  pid_t pid = -1;  // -1: it has ended, or is left to itself.
  MessageSocket socket;
};
// Runs this program with the arguments `words`: beside this process, with which it ends
// (--parent PID), or by the host's command, with `variables` ("NAME=VALUE ") set there. `greeting`
// outlives the worker. Unavailable names the host.
Result<Worker> StartWorker(const RunHost& host, const std::vector<std::string>& words,
                           std::string_view greeting, const std::string& variables = "");
// Closes its input, and kills it if it has not ended after `patience`. One that waits for a dead
// mount cannot end before that answers: at `until` it is left to itself.
void EndWorker(Worker& worker, Duration patience, Time until);
inline constexpr Duration kWorkerEndMax = Seconds(2);

// ---- the process that answers

using AnswerFunction = std::function<nlohmann::json(const nlohmann::json& question)>;

// Answers each message from `input` on `output`, until either is closed. Messages may come in any
// pieces.
void AnswerAll(int input, int output, const AnswerFunction& answer);

// AnswerAll() on standard input and output, after `greeting`, in a process that StartWorker() has
// started. `parent` is the process with which this one ends; 0: none.
void ServeAsWorker(pid_t parent, std::string_view greeting, const AnswerFunction& answer);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_HOSTS_WORKER_H_
