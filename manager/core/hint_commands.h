// Rules and hints that come from administrators and runners, and pressure from the metadata store.
#ifndef MOSA_MANAGER_CORE_HINT_COMMANDS_H_
#define MOSA_MANAGER_CORE_HINT_COMMANDS_H_

#include <string_view>

#include "manager/core/cluster.h"
#include "manager/core/delegations.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/hint_rules.h"
#include "manager/core/quotas.h"
#include "manager/core/step.h"
#include "manager/core/xattrs.h"

namespace mosa::manager {

class HintCommands {
 public:
  HintCommands(Step& step, Cluster& cluster, FileTable& files, Quotas& quotas, HintRules& rules,
               FileHints& hints, Delegations& delegations, Xattrs& xattrs)
      : step_(step),
        cluster_(cluster),
        files_(files),
        quotas_(quotas),
        rules_(rules),
        hints_(hints),
        delegations_(delegations),
        xattrs_(xattrs) {}

  Result<HintExplanation> ExplainHints(std::string_view path) const;
  void Handle(const AddHintRule& command);
  void Handle(const RemoveHintRule& command);
  void Handle(const SetFileHint& command);
  void Handle(const SetStorePressure& command);

 private:
  void RemoveRule(const HintRule& rule);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  Quotas& quotas_;
  HintRules& rules_;
  FileHints& hints_;
  Delegations& delegations_;
  Xattrs& xattrs_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_HINT_COMMANDS_H_
