// The directory of a cluster's secrets: its authority and one secret for each role.
//
//   ca.pem       issues the others: keep it off the machines of the cluster
//   next.pem     the authority that follows, while a change of authorities goes on
//   manager.pem, node.pem, mount.pem, admin.pem, and whatever was issued beside them
//
// Directories have mode 0700 and files 0600; every file is replaced as a whole.
#ifndef MOSA_TOOLS_CLUSTER_SECRET_H_
#define MOSA_TOOLS_CLUSTER_SECRET_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "proto/convert/role.h"

namespace mosa::cluster {

// DIRECTORY/ROLE.pem
std::string SecretFile(const std::string& directory, Role role);

// Makes the directory, an authority and a secret for each role but user. AlreadyExists if there is
// anything of that name: nothing is replaced.
Status CreateSecrets(const std::string& directory);

struct IssueOptions {
  std::string directory;  // Where ca.pem is.
  std::string path;       // What is made; AlreadyExists if it is there.
  Identity identity;
  int days = 0;  // 0: for a user a year, else ten.
};
Status IssueSecretFile(const IssueOptions& options);

// The steps by which a cluster that runs gets a new authority. Between two steps the files go to
// the machines. Each may be repeated; FailedPrecondition if the one before is missing. Nothing is
// written unless all secrets in the directory could be loaded, but for those whose time is over,
// which stay as they are.
enum class Rotation {
  kBegin,   // Makes next.pem; every secret trusts both authorities.
  kSwitch,  // Issues every secret anew, until when it was good, by the next authority, which
            // becomes ca.pem.
  kEnd,     // Nothing trusts the old authority any more.
};
struct Rotated {
  std::vector<std::string> written;  // To be copied.
  std::vector<std::string> expired;
};
Result<Rotated> Rotate(const std::string& directory, Rotation step);

}  // namespace mosa::cluster

#endif  // MOSA_TOOLS_CLUSTER_SECRET_H_
