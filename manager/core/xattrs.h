// Requests of mounts about extended attributes, which include hints.
#ifndef MOSA_MANAGER_CORE_XATTRS_H_
#define MOSA_MANAGER_CORE_XATTRS_H_

#include <string>
#include <string_view>

#include "manager/core/copy_planner.h"
#include "manager/core/copy_queue.h"
#include "manager/core/copy_view.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/file_view.h"
#include "manager/core/hints.h"
#include "manager/core/lifetimes.h"
#include "manager/core/limits.h"
#include "manager/core/node_table.h"
#include "manager/core/placing.h"
#include "manager/core/quotas.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"

namespace mosa::manager {

class Xattrs {
 public:
  Xattrs(Step& step, FileTable& files, NodeTable& nodes, Quotas& quotas, TextPool& texts,
         FileHints& hints, Limits& limits, CopyView& copy_view, Lifetimes& lifetimes,
         CopyQueue& copy_queue, CopyPlanner& copy_planner, Placing& placing, FileView& file_view)
      : step_(step),
        files_(files),
        nodes_(nodes),
        quotas_(quotas),
        texts_(texts),
        hints_(hints),
        limits_(limits),
        copy_view_(copy_view),
        lifetimes_(lifetimes),
        copy_queue_(copy_queue),
        copy_planner_(copy_planner),
        placing_(placing),
        file_view_(file_view) {}

  Reply Apply(const GetXattrRequest& request);
  Reply Apply(const ListXattrsRequest& request);
  Reply Apply(const SetXattrRequest& request);
  Reply Apply(const RemoveXattrRequest& request);
  Reply SetHint(FileId file, Inode& inode, const AttributeName& name,
                const SetXattrRequest& request);

 private:
  void StoreHints(FileId file, Inode& inode, const Hints& hints);
  Reply ReadOnlyAttribute(FileId file, const Inode& inode, std::string_view name) const;
  std::string CopiesJsonOf(FileId file, const Inode& inode) const;
  std::string LayoutJsonOf(FileId file, const Inode& inode) const;
  Reply RemoveHint(FileId file, Inode& inode, const AttributeName& name, bool pinned);

  Step& step_;
  FileTable& files_;
  NodeTable& nodes_;
  Quotas& quotas_;
  TextPool& texts_;
  FileHints& hints_;
  Limits& limits_;
  CopyView& copy_view_;
  Lifetimes& lifetimes_;
  CopyQueue& copy_queue_;
  CopyPlanner& copy_planner_;
  Placing& placing_;
  FileView& file_view_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_XATTRS_H_
