// Grants: the room on storage nodes that this mount holds ahead of need. Carries out what the
// GrantBook decides.
//
// Thread-safe. Take and Reserve may call the manager; the other methods do not block.
#ifndef MOSA_CLIENT_SAI_SAI_GRANTS_H_
#define MOSA_CLIENT_SAI_SAI_GRANTS_H_

#include <cstdint>
#include <vector>

#include "client-sai/api/manager_api.h"
#include "client-sai/core/grant_book.h"
#include "client-sai/core/outcome.h"
#include "common/base/clock.h"
#include "common/base/sync.h"
#include "common/model/session.h"

namespace mosa::sai {

class Grants {
 public:
  Grants(ManagerApi& manager, const Clock& clock) : manager_(manager), clock_(clock) {}

  // As in GrantBook. A failure comes from the manager, or says that it does not answer.
  Outcome<bool> Take(NodeId node, uint64_t bytes);
  void PutBack(NodeId node, uint64_t bytes);
  uint64_t TakeUnreported(NodeId node);

  // As in GrantBook. Also false if the manager does not answer.
  bool Reserve(NodeId node, uint64_t bytes);
  void Charge(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes);
  void Unreserve(NodeId node, uint64_t bytes);

  // Returns unused room at the manager's request.
  void GiveBack(NodeId node);
  // Returns room that nobody has used for a while.
  void GiveBackIdle();
  void GiveBackAll();

  std::vector<HeldGrant> Held() const;
  void ForgetUnreported();

 private:
  using Decision = GrantBook::Step (GrantBook::*)(NodeId, uint64_t, GrantBook::Attempt&, Time);
  Outcome<bool> CarryOut(Decision decide, NodeId node, uint64_t bytes);
  void Settle(NodeId node, const std::vector<Reply>& replies, GrantBook::Attempt* attempt);
  void GiveBack(const std::vector<NodeId>& nodes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ManagerApi& manager_;
  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar answered_;
  GrantBook book_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_GRANTS_H_
