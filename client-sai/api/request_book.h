// RequestBook: the envelopes that the manager has not answered.
//
// They outlive the stream on which they were written: the next one repeats them under their ids.
// The manager need not remember replies below the oldest, nor run those that it is told are
// abandoned.
#ifndef MOSA_CLIENT_SAI_API_REQUEST_BOOK_H_
#define MOSA_CLIENT_SAI_API_REQUEST_BOOK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client-sai/api/manager_api.h"
#include "client-sai/api/manager_clock.h"
#include "common/base/mutex.h"
#include "common/observe/duration_table.h"
#include "mosa/v1/session.pb.h"

namespace mosa::sai {

// Thread-safe; runs no callback and takes no other lock under its own. Messages that a method
// completes say what is answered and abandoned at that time, so their writer must hold a lock of
// its own from that call until they are queued, to write them in the same order.
//
// Invariant: ids ascend, and no abandoned id is pending.
// Invariant: after GiveUp, nothing is pending.
class RequestBook {
 public:
  using Message = std::shared_ptr<v1::ClientMessage>;
  // An envelope without a reply so far.
  struct Pending {
    Message message{};  // Shared with the write in progress. Null for a keep-alive.
    ManagerApi::Callback done{};
    Time sent{};
    Time submitted{};  // Time of the first sending.
    DurationTable::ClassId kind{};
    Span span{};                        // Set if it began while requests were logged.
    std::optional<Time> give_up_at{};   // Set for a call, whose thread waits for `done`.
    bool written = false;               // Was written to a stream, so it may have run.
    std::vector<uint64_t> abandoned{};  // Abandoned requests that it has reported.
  };
  // An envelope that was refused locally; the delivery thread answers it like any other.
  struct Refused {
    ManagerApi::Callback done;
    Failure failure;
  };

  // `address` of the manager, for messages.
  explicit RequestBook(std::string address) : address_(std::move(address)) {}

  // Numbers the message and takes the envelope; also completes it if it `is_written` next. Returns
  // why it is refused, if it is: kArgumentTooBig, kBusy if too many wait, or what GiveUp was told.
  // A refused call is left to the caller, any other envelope to TakeRefused.
  std::optional<Failure> Add(Pending& pending, bool is_written);
  // True: the request will not be answered and will not run any more. False: its reply is being
  // handed over.
  bool Abandon(RequestId id);
  bool IsCall(RequestId id);
  // Removes and returns what the envelope answers; nothing if that is no longer pending.
  std::optional<Pending> Answer(const ReplyEnvelope& envelope, Time now);
  std::vector<Refused> TakeRefused();
  // Refuses all later envelopes, and returns those without a reply.
  std::map<uint64_t, Pending> GiveUp(const Failure& why);

  // A session began at `now`, when the manager's time was `manager_now`.
  void BeginSession(Time now, Time manager_now);
  // Refuses requests that may have run in an earlier session and would run again.
  void RefuseRepetitions();
  // Returns all envelopes, completed, to be written in this order.
  std::vector<Message> Repeat(Time now);
  // Returns a complete envelope without requests; null if the last one is not answered yet.
  Message KeepAlive(Time now);

 private:
  std::optional<Failure> WhyNot(const v1::ClientMessage& message) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fills in what each message carries when it is sent.
  void Complete(Pending& pending, v1::ClientMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<uint64_t> TellAbandoned(v1::ClientMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t AnsweredBelow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string address_;
  SystemMutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  std::optional<Pending> keep_alive_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> abandoned_ ABSL_GUARDED_BY(mutex_);  // Ids that the manager has not heard of.
  std::vector<Refused> refused_ ABSL_GUARDED_BY(mutex_);
  std::optional<Failure> given_up_ ABSL_GUARDED_BY(mutex_);
  ManagerClock manager_clock_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_REQUEST_BOOK_H_
