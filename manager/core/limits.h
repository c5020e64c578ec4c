// What a file and its attributes cost against the limits of its owner and of the cluster.
#ifndef MOSA_MANAGER_CORE_LIMITS_H_
#define MOSA_MANAGER_CORE_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "manager/core/cluster.h"
#include "manager/core/file_table.h"
#include "manager/core/quotas.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"

namespace mosa::manager {

class Limits {
 public:
  Limits(Step& step, Cluster& cluster, FileTable& files, Quotas& quotas, TextPool& texts)
      : step_(step), cluster_(cluster), files_(files), quotas_(quotas), texts_(texts) {}

  Charge ChargeOf(FileId file, const Inode& inode) const;
  void ChargeForChanges();
  void ChargeForAll();
  // Maximum length of the file's inline content. Content that is already longer is kept.
  uint64_t InlineBytesMaxOf(const Inode& inode) const;
  std::optional<Failure> CheckInlineGrowth(const Inode& inode, uint64_t bytes) const;
  std::optional<Failure> CheckAttributeGrowth(FileId file, const Inode& inode,
                                              std::string_view name, uint64_t value_bytes) const;
  std::optional<Failure> CheckTextGrowth(uint32_t uid) const;

 private:
  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  Quotas& quotas_;
  TextPool& texts_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_LIMITS_H_
