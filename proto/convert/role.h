// What a certificate admits its holder to. The certificate says it in a subject alternative name of
// type URI:
//
//   mosa:manager, mosa:node, mosa:node/NAME, mosa:mount, mosa:admin, mosa:user/UID
//
// Pure functions.
#ifndef MOSA_PROTO_CONVERT_ROLE_H_
#define MOSA_PROTO_CONVERT_ROLE_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace mosa {

enum class Role : uint8_t {
  kManager,  // Is the manager: what every other role connects to.
  kNode,     // Registers storage nodes.
  kMount,    // Opens sessions, on behalf of every user of its host.
  kAdmin,    // Asks and changes everything, and opens sessions.
  kUser,     // Asks, and changes what belongs to one user.
};

struct Identity {
  Role role = Role::kUser;
  std::string node;             // kNode: the only name it may register; empty: any.
  std::optional<uint32_t> uid;  // kUser: always.
  bool operator==(const Identity&) const = default;
};

// "node", "user" and so on.
std::string_view NameOf(Role role);
// InvalidArgument lists the roles.
Result<Role> ParseRole(std::string_view text);

// "user of uid 1000", for messages.
std::string Describe(const Identity& identity);

// Precondition: kUser has a uid, and only a node has a name.
std::string ToUri(const Identity& identity);
// InvalidArgument if it is not exactly what ToUri gives.
Result<Identity> IdentityOfUri(std::string_view uri);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_ROLE_H_
