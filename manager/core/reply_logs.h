// Replies to changes, kept until the client confirms them: a request that is sent twice runs once.
#ifndef MOSA_MANAGER_CORE_REPLY_LOGS_H_
#define MOSA_MANAGER_CORE_REPLY_LOGS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "manager/core/cluster.h"
#include "manager/core/reply_log.h"
#include "manager/core/session_table.h"
#include "manager/core/step.h"

namespace mosa::manager {

inline constexpr size_t kPendingPerSessionMax = 16384;
bool IsChange(const Request& request);

class ReplyLogs {
 public:
  ReplyLogs(Step& step, Cluster& cluster, SessionTable& sessions)
      : step_(step), cluster_(cluster), sessions_(sessions) {}

  void Record(ClientId client, RequestId id, const std::vector<Reply>& replies);
  // The client has the replies to all requests before `below`.
  void Confirm(ClientId client, RequestId below);
  // Returns true if the request may have run before and its reply is no longer kept.
  bool MayHaveRun(ClientId client, const RequestEnvelope& envelope) const;

  // Null: the reply is not known.
  const std::string* Find(ClientId client, RequestId id) const;
  bool Has(ClientId client) const { return logs_.contains(client); }
  uint64_t bytes() const { return bytes_; }

  // ---- as sessions come and go
  // A client whose session was lost may return and repeat requests: its log is kept for a while,
  // even an empty one, which shows that nothing ran.
  void DropLater(ClientId client);
  void Keep(ClientId client);
  void Drop(ClientId client);
  // Returns the clients whose logs were dropped.
  std::vector<ClientId> DropExpired();
  // Time in which clients could not return does not count.
  void Postpone(Duration time);

  // ---- loading
  void Load(ClientId client, RequestId id, std::string encoded);
  void LoadCut(ClientId client, RequestId last) { logs_[client].cut = last; }
  void FinishLoad();

 private:
  using Logs = std::map<ClientId, ReplyLog>;

  Logs::iterator Drop(Logs::iterator log);
  bool IsTooLong(const ReplyLog& log) const;

  Step& step_;
  Cluster& cluster_;
  SessionTable& sessions_;
  uint64_t bytes_ = 0;  // A total; it must outlive what contributes to it.
  Logs logs_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_REPLY_LOGS_H_
