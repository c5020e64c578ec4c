// Makes files of the objects that nodes have put aside.
#ifndef MOSA_MANAGER_CORE_ADOPTION_H_
#define MOSA_MANAGER_CORE_ADOPTION_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manager/core/cluster.h"
#include "manager/core/delegations.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/lifetimes.h"
#include "manager/core/names.h"
#include "manager/core/node_table.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"

namespace mosa::manager {

class Adoption {
 public:
  Adoption(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes, TextPool& texts,
           FileHints& hints, Lifetimes& lifetimes, Delegations& delegations, Namespace& names)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        texts_(texts),
        hints_(hints),
        lifetimes_(lifetimes),
        delegations_(delegations),
        names_(names) {}

  std::vector<AsideFile> ListAside(size_t files_max, FileId after) const;
  void Handle(const AdoptFiles& command);

 private:
  // Where adopted files go: the first of "lost+found", "lost+found.1", ... that is free, or is a
  // directory that only root may enter. So no user can have made it, and none can read there.
  struct AdoptedPlace {
    std::string name;
    std::optional<FileId> directory;  // If it already exists.
  };
  std::optional<AdoptedPlace> FindAdoptedPlace() const;
  // Returns the directory for adopted files and makes it if necessary. Nothing if all its names are
  // taken.
  std::optional<FileId> AdoptedDirectory();
  // Returns `name`, or an unused name that begins with it.
  std::string FreeName(FileId directory, std::string_view name) const;
  void MakeAdopted(FileId file, FileId directory, const std::string& name,
                   const JoinedParts& joined);
  AdoptOutcome Adopt(FileId file);
  AdoptOutcome Discard(FileId file);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  TextPool& texts_;
  FileHints& hints_;
  Lifetimes& lifetimes_;
  Delegations& delegations_;
  Namespace& names_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_ADOPTION_H_
