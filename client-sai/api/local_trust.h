// Decides from which processes on this host a client accepts descriptors, and which descriptors.
//
// The manager names each node's Unix socket, so its path is only a claim. A mount that runs as root
// passes a descriptor's file to the kernel (FUSE passthrough). For every program that opens the
// Mosa file, the kernel opens that file again by path, with the mount's credentials. A wrong
// descriptor would thus expose its file to every user of the mount.
//
// Every refusal is Unauthenticated with a one-sentence message. Thread-safe.
#ifndef MOSA_CLIENT_SAI_API_LOCAL_TRUST_H_
#define MOSA_CLIENT_SAI_API_LOCAL_TRUST_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace mosa::sai {

// Opens the socket file at `path` with O_PATH. Connect to it through /proc/self/fd, so that nobody
// can replace the file between this check and the connection. Refuses symbolic links, and all
// sockets except those of root or this process' user that no other user can reach. Errors of
// open(2) keep their codes.
Result<UniqueFd> OpenSocketFile(const std::string& path);

// Returns the user that listens on the other end of the connected Unix socket (SO_PEERCRED). Only
// root and this process' user are accepted.
Result<uid_t> TrustedPeer(int socket);

struct ObjectTerms {
  uid_t owner = 0;                // From TrustedPeer.
  bool write = false;             // The requested access.
  std::optional<dev_t> device{};  // The device of the node's other objects, once known.
};
// Accepts a regular file of `owner` that only its owner can reach and that has at most one name. It
// must lie on a file system that stores files (not FUSE, nor a kernel interface such as /proc) and,
// if given, on `device`. It must be open as requested, for reading or for both, without O_PATH or
// O_APPEND. Returns the file's device.
Result<dev_t> CheckObjectDescriptor(int descriptor, const ObjectTerms& terms);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_LOCAL_TRUST_H_
