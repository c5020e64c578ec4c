// Which role may make which call. Each call of the manager's services declares the right that it
// needs; the caller is identified by its certificate.
#ifndef MOSA_MANAGER_SERVICE_ACCESS_H_
#define MOSA_MANAGER_SERVICE_ACCESS_H_

#include <grpcpp/server_context.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/rare_log.h"
#include "common/base/status.h"
#include "manager/core/manager_core.h"
#include "proto/convert/role.h"

namespace mosa::manager {

enum class Right : uint8_t {
  kRegisterNode,  // node
  kOpenSession,   // mount, admin
  kAsk,           // user, admin, mount: queries that change no file, hint or rule.
  kChangeOwn,     // user: what the user owns; admin: everything.
  kAdminister,    // admin
};

// Pure. PermissionDenied names the role and the missing right.
Status CheckRight(const Identity& caller, Right right);
// Returns what the core may change for the caller.
Asker AskerFor(const Identity& caller);
// A node's certificate may be restricted to one node name. PermissionDenied for another name.
Status CheckNodeName(const Identity& caller, std::string_view name);

// Authenticates and authorizes callers. One per server; used only by the loop's thread.
class Access {
 public:
  // Without `secured` there are no certificates: everyone who reaches the port (on loopback) is an
  // admin and a node.
  explicit Access(bool secured) : secured_(secured) {}

  // Returns the caller's identity if it has the right. Logs refusals, at most one per minute.
  Result<Identity> Admit(const grpc::ServerContext& context, Right right);

 private:
  const bool secured_;
  RareLog refusals_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_ACCESS_H_
