// Requests of mounts about names and attributes, as POSIX has them. The kernel checks permissions.
#ifndef MOSA_MANAGER_CORE_NAMES_H_
#define MOSA_MANAGER_CORE_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "manager/core/cluster.h"
#include "manager/core/copy_queue.h"
#include "manager/core/delegations.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/file_view.h"
#include "manager/core/generations.h"
#include "manager/core/interests.h"
#include "manager/core/left_hints.h"
#include "manager/core/lifetimes.h"
#include "manager/core/limits.h"
#include "manager/core/placing.h"
#include "manager/core/quotas.h"
#include "manager/core/recovery_rules.h"
#include "manager/core/session_table.h"
#include "manager/core/staging.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"
#include "manager/core/uncut_objects.h"

namespace mosa::manager {

class Namespace {
 public:
  Namespace(Step& step, Cluster& cluster, FileTable& files, SessionTable& sessions,
            Interests& interests, Quotas& quotas, TextPool& texts, FileHints& hints, Limits& limits,
            Lifetimes& lifetimes, CopyQueue& copy_queue, UncutObjects& uncut_objects,
            RecoveryRules& recovery_rules, Generations& generations, Delegations& delegations,
            Staging& staging, Placing& placing, FileView& file_view)
      : step_(step),
        cluster_(cluster),
        files_(files),
        sessions_(sessions),
        interests_(interests),
        quotas_(quotas),
        texts_(texts),
        hints_(hints),
        limits_(limits),
        lifetimes_(lifetimes),
        copy_queue_(copy_queue),
        uncut_objects_(uncut_objects),
        recovery_rules_(recovery_rules),
        generations_(generations),
        delegations_(delegations),
        staging_(staging),
        placing_(placing),
        file_view_(file_view) {}

  void AddEntry(FileId parent, const std::string& name, FileId child);
  void EraseEntry(FileId parent, std::string_view name);
  Reply Apply(const LookupRequest& request);
  Reply Apply(const GetAttributesRequest& request);
  Reply Apply(const ListDirectoryRequest& request);
  Reply Apply(const ReadSymlinkRequest& request);
  Reply Apply(const MakeRequest& request);
  Reply Apply(const LinkRequest& request);
  Reply Apply(const RemoveRequest& request);
  // Called after the name was erased: drops one link, or removes the directory.
  uint32_t Unlink(FileId file, bool holder_has_it_open, ClientId holder);
  Reply Apply(const SetAttributesRequest& request);
  Reply Apply(const RenameRequest& request);

 private:
  // The beginning of a reply about a name in that directory, which the actor watches if it can.
  EntryReply EntryIn(FileId parent);
  std::optional<Failure> CheckMake(const MakeRequest& request) const;
  // Delegates the directory that was made, or else the parent, to its maker if it may be.
  bool DelegateTo(Session& session, const MakeRequest& request);
  Hints HintsOfMake(const MakeRequest& request);
  void LeaveHints(const RemoveRequest& request, const Inode& inode);
  void SetSize(FileId file, Inode& inode, uint64_t size_bytes);
  std::optional<Failure> CheckRename(const RenameRequest& request, FileId moved,
                                     std::optional<FileId> target) const;
  std::optional<Failure> CheckExchange(const RenameRequest& request, FileId moved,
                                       FileId target) const;
  bool Exchange(const RenameRequest& request, FileId moved, FileId target);
  // Returns true if the actor must not keep the names, because both are in one shared directory.
  bool TouchBothParents(const RenameRequest& request);
  void RenamedTo(FileId file, FileId parent, const std::string& name);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  SessionTable& sessions_;
  Interests& interests_;
  Quotas& quotas_;
  TextPool& texts_;
  FileHints& hints_;
  Limits& limits_;
  Lifetimes& lifetimes_;
  CopyQueue& copy_queue_;
  UncutObjects& uncut_objects_;
  RecoveryRules& recovery_rules_;
  Generations& generations_;
  Delegations& delegations_;
  Staging& staging_;
  Placing& placing_;
  FileView& file_view_;
  LeftHints left_hints_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_NAMES_H_
