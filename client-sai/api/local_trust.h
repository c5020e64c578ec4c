// Which processes on this host a client takes descriptors from, and which descriptors it takes.
//
// The manager names each node's Unix socket, so the path is only a claim. A mount that runs as root
// hands a descriptor's file to the kernel, which opens it again by path, with the mount's
// credentials, for every program that opens the Mosa file (FUSE passthrough). A wrong descriptor
// would thus give its file to every user of the mount.
//
// Every refusal has the code Unauthenticated and is one sentence. Safe from any thread.
#ifndef MOSA_CLIENT_SAI_API_LOCAL_TRUST_H_
#define MOSA_CLIENT_SAI_API_LOCAL_TRUST_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace mosa::sai {

// Opens the socket file at `path` with O_PATH; connect to it by /proc/self/fd, so that nobody can
// replace the file between this check and the connection. Refuses all but a socket of root's or of
// this process' user that nobody else can reach; a symbolic link is refused, too. Errors of open(2)
// keep their codes.
Result<UniqueFd> OpenSocketFile(const std::string& path);

// The user that listens on the other end of the connected Unix socket: root or this process' own
// user (SO_PEERCRED). All others are refused.
Result<uid_t> TrustedPeer(int socket);

struct ObjectTerms {
  uid_t owner = 0;                // As of TrustedPeer.
  bool write = false;             // What was asked for.
  std::optional<dev_t> device{};  // Where the node's other objects lie, once that is known.
};
// Accepts a regular file of `owner` that only its owner can reach, with one name at most, on a file
// system that stores files (none of the kernel's own, such as /proc, and no FUSE) and, if known, on
// `device`; opened for reading alone or for both as asked, with neither O_PATH nor O_APPEND.
// Returns the file's device.
Result<dev_t> CheckObjectDescriptor(int descriptor, const ObjectTerms& terms);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_LOCAL_TRUST_H_
