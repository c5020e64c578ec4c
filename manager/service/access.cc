#include "manager/service/access.h"

#include "fmt/format.h"
#include "proto/convert/credentials.h"

namespace mosa::manager {

namespace {

bool Has(Role role, Right right) {
  switch (right) {
    case Right::kRegisterNode:
      return role == Role::kNode;
    case Right::kOpenSession:
      return role == Role::kMount || role == Role::kAdmin;
    case Right::kAsk:
      return role == Role::kUser || role == Role::kAdmin || role == Role::kMount;
    case Right::kChangeOwn:
      return role == Role::kUser || role == Role::kAdmin;
    case Right::kAdminister:
      return role == Role::kAdmin;
  }
  return false;
}

std::string_view WhatFor(Right right) {
  switch (right) {
    case Right::kRegisterNode:
      return "to register a storage node; it takes the role node";
    case Right::kOpenSession:
      return "to open a session; it takes the role mount";
    case Right::kAsk:
      return "to ask the manager; it takes the role user, mount or admin";
    case Right::kChangeOwn:
      return "to change hints, rules and runs; it takes the role user or admin";
    case Right::kAdminister:
      break;
  }
  return "to do this; it takes the role admin";
}

}  // namespace

Status CheckRight(const Identity& caller, Right right) {
  if (Has(caller.role, right)) return OkStatus();
  return PermissionDeniedError(
      fmt::format("a certificate of {} does not suffice {}", Describe(caller), WhatFor(right)));
}

Asker AskerFor(const Identity& caller) {
  return caller.role == Role::kUser ? caller.uid : std::nullopt;
}

Status CheckNodeName(const Identity& caller, std::string_view name) {
  if (caller.node.empty() || caller.node == name) return OkStatus();
  return PermissionDeniedError(fmt::format(
      "a certificate of {} does not suffice to register node '{}'", Describe(caller), name));
}

Result<Identity> Access::Admit(const grpc::ServerContext& context, Right right) {
  if (!secured_)
    return Identity{
        .role = right == Right::kRegisterNode ? Role::kNode : Role::kAdmin, .node = {}, .uid = {}};
  Result<Identity> caller = IdentityOfPeer(*context.auth_context());
  if (caller.ok()) {
    if (const Status allowed = CheckRight(*caller, right); !allowed.ok()) caller = allowed;
  }
  if (!caller.ok())
    refusals_.Warning("{} was refused: {}", context.peer(), MessageOf(caller.status()));
  return caller;
}

}  // namespace mosa::manager
