// Which versions of the control plane's protocol a program speaks. Every call says so (MakeChannel
// puts it into the user agent), every answer as well, and whoever finds that the other's versions
// and its own do not meet refuses: what it would misread is not read at all.
//
// A change of the protocol that older peers would misread raises `newest`; `oldest` follows when
// the older form is no longer understood. Programs from before there were versions say none.
#ifndef MOSA_PROTO_CONVERT_PROTOCOL_VERSION_H_
#define MOSA_PROTO_CONVERT_PROTOCOL_VERSION_H_

#include <grpcpp/client_context.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace mosa {

struct ProtocolVersions {
  uint32_t oldest = 0;
  uint32_t newest = 0;
  bool operator==(const ProtocolVersions&) const = default;
};

inline constexpr ProtocolVersions kProtocolVersions{5, 5};
// The key of an answer's initial metadata; its value is ToText of what the manager speaks.
inline constexpr const char* kProtocolKey = "mosa-protocol";

// "2-3".
std::string ToText(ProtocolVersions versions);
// Nothing if that is not what the text is.
std::optional<ProtocolVersions> ParseProtocolVersions(std::string_view text);

// The first words of a program's user agent: "mosa/2-3".
std::string UserAgentOf(ProtocolVersions versions);
// Nothing if it does not begin so.
std::optional<ProtocolVersions> VersionsOfUserAgent(std::string_view user_agent);

// The two sides that compare versions: "mount", "manager", "storage node", "program".
struct ProtocolPeers {
  std::string_view own;
  std::string_view peer;
};
// Unimplemented, with the side to be upgraded first, if no version is common. `theirs` is nothing
// for a peer that says none.
Status CheckProtocol(ProtocolPeers peers, ProtocolVersions ours,
                     std::optional<ProtocolVersions> theirs);

// The same of a manager that has begun to answer this call.
Status CheckManagerOf(const grpc::ClientContext& context, std::string_view own);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_PROTOCOL_VERSION_H_
