// What one step of the core knows: the time, the request that it handles, what it has changed so
// far, and what it tells the shell.
#ifndef MOSA_MANAGER_CORE_STEP_H_
#define MOSA_MANAGER_CORE_STEP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "manager/core/state_types.h"

namespace mosa::manager {

struct Step {
  void Answer(Session& session, RequestId id, std::vector<Reply> replies);
  void AnswerAdmin(Status status, uint64_t rule = 0, bool settled = true);
  void Touch(FileId file);
  void RefuseNode(const std::string& name, std::string message);
  void SendOrder(NodeId node, NodeOrder order);
  // `waits`: the current reply waits until no client stores by the previous layout.
  void TouchAccess(FileId file, bool waits = true);
  void Schedule(Time at);
  void RefuseSession(ClientId client, StatusCode code, std::string message);

  static constexpr Time kNever{INT64_MAX};

  Time now{0};
  Effects effects;
  Time wake_at = kNever;

  // ---- the request that is handled
  Session* actor = nullptr;
  RequestId actor_request;
  size_t request_index = 0;
  bool last_in_envelope = false;
  bool only_in_envelope = false;
  bool may_wait_for_space = true;
  std::optional<Pending::Stage> wait;  // Set if the request is to be answered later.
  std::vector<std::pair<size_t, FileId>> promised;
  bool changed = false;

  // ---- changes so far
  std::set<FileId> touched;
  // Files of which only the layout, or the set of permitted writers, changed. True: the reply waits
  // for these recalls.
  std::map<FileId, bool> access_changed;
  std::set<FileId> orphan_checks;
  std::set<FileId> dirty;
  std::vector<FileId> recharges;  // Changed since the last request's charge.
  bool cluster_dirty = false, recovery_dirty = false;
  bool space_changed = false;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_STEP_H_
