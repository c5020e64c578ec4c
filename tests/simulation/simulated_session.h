// A mount's session with a SimulatedManager, as GrpcManagerApi keeps it over a real stream:
// reconnects, repeats unanswered requests under their ids, gives up, and sends keep-alives.
#ifndef MOSA_TESTS_SIMULATION_SIMULATED_SESSION_H_
#define MOSA_TESTS_SIMULATION_SIMULATED_SESSION_H_

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "client-sai/api/manager_api.h"
#include "client-sai/api/manager_clock.h"
#include "tests/simulation/simulated_manager.h"

namespace mosa::simulation {

class SimulatedSession final : public sai::ManagerApi {
 public:
  SimulatedSession(Network& network, SimulatedManager& manager, HostId host, ClientId client)
      : network_(network), manager_(manager), host_(host), client_(client) {}

  ::mosa::Status Start(sai::SessionListener& listener) override;
  std::vector<Reply> Call(std::vector<Request> requests, Duration deadline) override;
  RequestId Send(std::vector<Request> requests, Callback done) override;
  void Stop() override;
  // Its process ends: nothing is sent or received any more, except what is on its way.
  void Kill();

 private:
  struct Pending {
    RequestEnvelope envelope;
    Callback done;
    Time submitted;
    Time sent;
    std::optional<Time> give_up_at{};
    bool written = false;
  };
  struct Waiter {
    WaitList answered;
    std::optional<std::vector<Reply>> replies;
  };
  struct Outgoing {
    ClientConnection connection;
    RequestEnvelope envelope;
    Time sent;
  };

  RequestId Submit(std::vector<Request> requests, Callback done, std::optional<Duration> wait);
  void Write(Pending& pending);
  void SendLater(RequestEnvelope envelope);
  void TellAbandoned(RequestEnvelope& envelope);
  RequestId AnsweredBelow() const;
  void RunSession();
  void RunStream();
  bool Begin(const SessionReady& ready, Time sent);
  void Serve();
  void Deliver(ReplyEnvelope envelope);
  void RunSender();
  void RunKeepAlive();
  Duration SilentFor() const;

  Network& network_;
  SimulatedManager& manager_;
  const HostId host_;
  const ClientId client_;
  const VirtualClock clock_;
  sai::SessionListener* listener_ = nullptr;
  sai::ManagerClock manager_clock_;
  ClientConnection connection_;
  bool in_session_ = false;
  std::map<RequestId, Pending> pending_;
  std::set<RequestId> abandoned_;
  uint64_t last_id_ = 0;
  std::deque<Outgoing> outbox_;
  WaitList outbox_filled_;
  WaitList started_;
  bool has_started_ = false;
  bool stopping_ = false;
  bool killed_ = false;
  Time last_heard_, last_sent_, last_watched_;
  std::optional<Time> keep_alive_sent_;
  Thread session_, sender_, keep_alive_;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_SIMULATED_SESSION_H_
