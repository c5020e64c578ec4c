// Commits: tells the manager what this mount has changed in a file: that it was made, its bytes,
// its size and times. A make that was deferred and a commit travel together, so that whoever finds
// a file finds its content.
//
// Thread-safe. Methods with an Outcome may call the manager and block within the thread's
// WaitBudget; the caller must not hold the inode's mutex. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_COMMITS_H_
#define MOSA_CLIENT_SAI_SAI_COMMITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client-sai/api/node_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/grants.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/kernel_pages.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/name_cache.h"
#include "client-sai/sai/releases.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/write_behind.h"
#include "common/base/rare_log.h"
#include "common/base/sync.h"

namespace mosa::sai {

struct CommitKind {
  bool last_close = false;
  bool tells_close = false;  // Send it even if there is nothing else to report.
  // Does something only if the manager does not know the file: sends its make with what was written
  // so far. The caller need not hold the inode's io, because nobody else commits before that.
  bool make_only = false;
  bool bare = false;  // With make_only: omit written bytes that were not appended.
  // With make_only: also ask, in the same envelope, where so many bytes go. Not done if written
  // bytes are sent along.
  std::optional<uint64_t> bind_bytes{};
};

class Commits {
 public:
  // `losses`: names files whose bytes were not stored.
  Commits(ManagerCalls& calls, NodeApi& nodes, InodeTable& inodes, Lease& lease, RecallLog& recalls,
          AttributeCache& attributes, AccessRights& rights, NameCache& name_cache,
          WriteBehind& write_behind, Releases& releases, Grants& grants, KernelPages& pages,
          RareLog& losses, Stats& stats)
      : calls_(calls),
        nodes_(nodes),
        inodes_(inodes),
        lease_(lease),
        recalls_(recalls),
        attributes_(attributes),
        rights_(rights),
        name_cache_(name_cache),
        write_behind_(write_behind),
        releases_(releases),
        grants_(grants),
        pages_(pages),
        losses_(losses),
        stats_(stats) {}

  // The caller must hold the inode's io. `outdated`: other mounts have changed the content on which
  // the commit is based; merge and try again.
  Outcome<Done> SendOnce(Inode& inode, CommitKind kind, bool* outdated);
  // Clears set-user-id and set-group-id if the kernel has written the file with these bits set: its
  // direct writes did not ask this mount who may keep them.
  Outcome<Done> TakePrivileges(Inode& inode);
  // The caller's close or append fails. Its bytes must not appear later, perhaps after other bytes
  // that the program has written instead.
  void GiveUpUnsaved(Inode& inode, const Failure& failure);

  // Sends a deferred make, or blocks until another thread has sent it. Written content goes with
  // it, so that whoever finds the file finds its content. With `bare` only the make is sent,
  // because the caller is about to store the content; with `bind_bytes`, the right may then be one
  // to store so many bytes.
  Outcome<Done> EnsureMade(Inode& inode, bool bare = false,
                           std::optional<uint64_t> bind_bytes = std::nullopt);
  // The same, for all deferred makes in a directory, and for that of one name.
  Outcome<Done> EnsureAllMade(Inode& directory);
  Outcome<Done> EnsureNameMade(Inode& directory, const std::string& name);

  // For whoever sends a make itself: applies the reply. The file counts as being made until EndMake
  // sets its state.
  MakeState FinishMake(Inode& inode, const Reply& reply, Mark mark);
  static void EndMake(Inode& inode, MakeState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);

 private:
  // Stored bytes no longer count, because the file's bytes are elsewhere. Forgets them and reports
  // the error to all open handles, unless the only change was one whose call has failed.
  enum class Reported : uint8_t { kNow, kBefore };
  Reported DropUncommitted(Inode& inode, const Failure& failure);
  CommitRequest Build(Inode& inode, bool last_close);
  std::vector<CommitRequest::NodeBytes> NodeBytesOf(Inode& inode);
  void Finish(Inode& inode, bool is_inline, const Attributes& attributes, Mark mark);
  void EndClosing(Inode& inode, bool committed);
  void DropUnsaved(Inode& inode);
  static void TakeBack(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);

  ManagerCalls& calls_;
  NodeApi& nodes_;
  InodeTable& inodes_;
  Lease& lease_;
  RecallLog& recalls_;
  AttributeCache& attributes_;
  AccessRights& rights_;
  NameCache& name_cache_;
  WriteBehind& write_behind_;
  Releases& releases_;
  Grants& grants_;
  KernelPages& pages_;
  RareLog& losses_;
  Stats& stats_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_COMMITS_H_
