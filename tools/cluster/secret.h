// Making the file that admits a machine to a cluster.
#ifndef MOSA_TOOLS_CLUSTER_SECRET_H_
#define MOSA_TOOLS_CLUSTER_SECRET_H_

#include <string>

#include "common/base/status.h"

namespace mosa::cluster {

// Writes a new secret to `path`, mode 0600. AlreadyExists if there is any file: one secret admits a
// whole cluster, so none is ever replaced.
Status CreateSecretFile(const std::string& path);

}  // namespace mosa::cluster

#endif  // MOSA_TOOLS_CLUSTER_SECRET_H_
