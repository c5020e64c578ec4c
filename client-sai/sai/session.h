// SessionEvents: what a mount does when its session with the manager begins or ends, when the
// manager recalls what is cached here, and as time passes.
//
// Thread-safe. The listener's methods and RunTimers do not block for long: what may wait runs on
// `service`. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_SESSION_H_
#define MOSA_CLIENT_SAI_SAI_SESSION_H_

#include <cstdint>
#include <vector>

#include "client-sai/api/manager_api.h"
#include "client-sai/api/node_api.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/commits.h"
#include "client-sai/sai/copies.h"
#include "client-sai/sai/executor.h"
#include "client-sai/sai/file_ids.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/grants.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/kernel_names.h"
#include "client-sai/sai/kernel_pages.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/name_cache.h"
#include "client-sai/sai/node_states.h"
#include "client-sai/sai/releases.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/store_gate.h"
#include "client-sai/sai/stream_waits.h"
#include "common/base/sync.h"
#include "common/model/ids.h"
#include "common/model/session.h"

namespace mosa::sai {

class SessionEvents final : public SessionListener {
 public:
  SessionEvents(const FilesystemOptions& options, ClientId client, NodeApi& nodes,
                ManagerCalls& calls, Lease& lease, RecallLog& recalls, InodeTable& inodes,
                NodeStates& node_states, FileIds& file_ids, Releases& releases, Grants& grants,
                NameCache& name_cache, AccessRights& rights, StoreGate& gate, BlockCache& blocks,
                KernelNames& kernel_names, Executor& service, KernelPages& pages, Commits& commits,
                CopiesAtClose& copies, StreamWaits& stream_waits, Stats& stats)
      : options_(options),
        client_(client),
        nodes_(nodes),
        calls_(calls),
        lease_(lease),
        recalls_(recalls),
        inodes_(inodes),
        node_states_(node_states),
        file_ids_(file_ids),
        releases_(releases),
        grants_(grants),
        name_cache_(name_cache),
        rights_(rights),
        gate_(gate),
        blocks_(blocks),
        kernel_names_(kernel_names),
        service_(service),
        pages_(pages),
        commits_(commits),
        copies_(copies),
        stream_waits_(stream_waits),
        stats_(stats) {}

  void OnSessionReady(const SessionReady& ready) override;
  void OnPush(const Push& push) override;
  SessionStart SessionHeld() override;
  void OnLeaseRenewed(Time sent_monotonic, Time manager_now) override;

  // Call it ten times a second, with the number of calls before.
  void RunTimers(uint64_t round);
  // The manager has not answered in time whether it has made this mount's change of the file, and
  // will not make it any more. Forgets what is known of the file: the manager tells a mount only of
  // others' changes.
  void ForgetUncertain(FileId file);
  // The inode is about to be forgotten. The caller must hold its mutex.
  void NoteDropped(Inode& inode);

 private:
  void DropCached(Inode& inode, RecallKind kind);
  // `inode`: settle its attributes when its pages are gone; null if none was known.
  void Recall(const RecallPush& push, const InodePtr& inode, uint64_t session);
  void RecallAccess(const RecallPush& push);
  void DropEverything();
  void SendUnsent(const std::vector<FileId>& files);
  // Forgets inodes that are idle, and tells the manager.
  void EvictIdle();

  const FilesystemOptions& options_;
  const ClientId client_;
  NodeApi& nodes_;
  ManagerCalls& calls_;
  Lease& lease_;
  RecallLog& recalls_;
  InodeTable& inodes_;
  NodeStates& node_states_;
  FileIds& file_ids_;
  Releases& releases_;
  Grants& grants_;
  NameCache& name_cache_;
  AccessRights& rights_;
  StoreGate& gate_;
  BlockCache& blocks_;
  KernelNames& kernel_names_;
  Executor& service_;
  KernelPages& pages_;
  Commits& commits_;
  CopiesAtClose& copies_;
  StreamWaits& stream_waits_;
  Stats& stats_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_SESSION_H_
