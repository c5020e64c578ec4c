// The directory of a cluster's secrets: its authority and one secret for each role.
//
//   ca.pem       issues the others: keep it off the machines of the cluster
//   next.pem     the next authority, while a rotation is under way
//   manager.pem, node.pem, mount.pem, admin.pem, and whatever else was issued
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

// Creates the directory, an authority and a secret for each role except user. AlreadyExists if
// anything of that name exists: nothing is replaced.
Status CreateSecrets(const std::string& directory);

struct IssueOptions {
  std::string directory;  // Where ca.pem is.
  std::string path;       // The file to create; AlreadyExists if it exists.
  Identity identity;
  int days = 0;  // 0: one year for a user, otherwise ten.
};
Status IssueSecretFile(const IssueOptions& options);

// The steps that give a running cluster a new authority. Between two steps, the files are copied to
// the machines. Each step may be repeated; FailedPrecondition if the one before is missing. Nothing
// is written unless all secrets in the directory can be loaded, except expired ones, which stay
// unchanged.
enum class Rotation {
  kBegin,   // Creates next.pem; every secret trusts both authorities.
  kSwitch,  // Reissues every secret by the next authority, with the old expiry; this authority
            // becomes ca.pem.
  kEnd,     // Nothing trusts the old authority any more.
};
struct Rotated {
  std::vector<std::string> written;  // Files to copy.
  std::vector<std::string> expired;
};
Result<Rotated> Rotate(const std::string& directory, Rotation step);

}  // namespace mosa::cluster

#endif  // MOSA_TOOLS_CLUSTER_SECRET_H_
