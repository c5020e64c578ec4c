// One client's conversation with a LocalManager.
#ifndef MOSA_TESTS_SUPPORT_LOCAL_MANAGER_API_H_
#define MOSA_TESTS_SUPPORT_LOCAL_MANAGER_API_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/mutex.h"
#include "tests/support/local_manager.h"

namespace mosa::testing {

class LocalManagerApi final : public sai::ManagerApi {
 public:
  using Message = std::variant<SessionReady, ReplyEnvelope, Push, Failure>;

  LocalManagerApi(LocalManager& manager, ClientId client, std::string node_name);
  ~LocalManagerApi() override;

  Status Start(sai::SessionListener& listener) override;
  std::vector<Reply> Call(std::vector<Request> requests, Duration deadline) override;
  RequestId Send(std::vector<Request> requests, Callback done) override;
  void Stop() override;

  // While frozen nothing is delivered and no keep-alive sent, as if the process had been stopped.
  void Freeze(bool frozen);
  // While unheard its requests reach the manager only once they have expired.
  void SetUnheard(bool unheard);
  // `hook` runs on the thread of a Call that has been answered, before it returns: a thread may be
  // kept from what it was told for any time. Set while nothing runs.
  void OnAnswer(std::function<void(const std::vector<Request>&)> hook) {
    on_answer_ = std::move(hook);
  }
  // `hook` runs with each envelope that is sent, and calls nothing of this.
  void OnSend(std::function<void(const std::vector<Request>&)> hook) {
    const SystemMutexLock lock(mutex_);
    on_send_ = std::move(hook);
  }
  // Called by the manager, in its order.
  void Receive(Message message);

 private:
  struct Waiting {
    RequestEnvelope envelope;
    Callback done;
    Time sent;
  };

  void OpenSession();
  void SendOutbox();
  void DeliverLoop();
  void Handle(Message& message);

  LocalManager& manager_;
  const ClientId client_;
  const std::string node_name_;
  sai::SessionListener* listener_ = nullptr;
  std::function<void(const std::vector<Request>&)> on_answer_;
  SystemMutex send_mutex_;  // Taken before mutex_, held while envelopes enter the core.
  SystemMutex mutex_;
  SystemCondVar wake_;
  // Guarded by mutex_.
  std::function<void(const std::vector<Request>&)> on_send_;
  std::deque<Message> inbox_;
  std::map<RequestId, Waiting> waiting_;
  uint64_t next_request_ = 1;
  std::deque<RequestEnvelope> outbox_;
  bool ready_ = false;
  bool started_ = false;
  bool stopping_ = false;
  bool frozen_ = false;
  bool unheard_ = false;
  std::deque<Callback> expired_;  // For requests sent while it was unheard.
  Time keep_alive_sent_;
  Status start_status_;
  Time session_sent_;  // Delivery thread.
  std::thread delivery_;
};

}  // namespace mosa::testing

#endif  // MOSA_TESTS_SUPPORT_LOCAL_MANAGER_API_H_
