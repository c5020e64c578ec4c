// Which role may call what. Each call of the manager's services is declared with the right that it
// needs; the caller is known by its certificate.
#ifndef MOSA_MANAGER_SERVICE_ACCESS_H_
#define MOSA_MANAGER_SERVICE_ACCESS_H_

#include <grpcpp/server_context.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/time.h"
#include "manager/core/manager_core.h"
#include "proto/convert/role.h"

namespace mosa::manager {

enum class Right : uint8_t {
  kRegisterNode,  // node
  kOpenSession,   // mount, admin
  kAsk,           // user, admin, mount: questions that change no file, hint or rule.
  kChangeOwn,     // user of what is his own; admin of everything.
  kAdminister,    // admin
};

// Pure. PermissionDenied names the role and what it lacks.
Status CheckRight(const Identity& caller, Right right);
// What the core may change for the caller.
Asker AskerFor(const Identity& caller);
// A node's certificate may be for one name alone.
Status CheckNodeName(const Identity& caller, std::string_view name);

// One per server: looks at callers. Used by the loop's thread.
class Access {
 public:
  // Without `secured` there are no certificates, and whoever reaches the port (on loopback) is an
  // admin and a node.
  explicit Access(bool secured) : secured_(secured) {}

  // Identifies the caller, if it has the right. A refusal is logged, once a minute at most.
  Result<Identity> Admit(const grpc::ServerContext& context, Right right);

 private:
  const bool secured_;
  Time log_again_at_;  // Monotonic.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_ACCESS_H_
