// The implementation of Filesystem: one class whose methods are grouped into source files by theme.
// What can stand alone is in classes of its own, each with its lock.
#ifndef MOSA_CLIENT_SAI_SAI_IMPL_H_
#define MOSA_CLIENT_SAI_SAI_IMPL_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/buffered_bytes.h"
#include "client-sai/sai/copy_waits.h"
#include "client-sai/sai/executor.h"
#include "client-sai/sai/failures.h"
#include "client-sai/sai/file_ids.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/grants.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_set.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/kernel_names.h"
#include "client-sai/sai/kernel_pages.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/lock_waits.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/node_states.h"
#include "client-sai/sai/periodic.h"
#include "client-sai/sai/releases.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/watched_files.h"
#include "client-sai/trace/task_names.h"
#include "common/base/rare_log.h"
#include "common/base/sync.h"

namespace mosa::sai {

using AccessPtr = std::shared_ptr<const DataAccess>;

// How long to wait before asking again about a file that another client has frozen.
inline constexpr Duration kFrozenDelay = Milliseconds(10);

// Lock order: Inode::io, Inode::look, Inode::mutex, then any of the mutexes inside members.
// KernelNames and Releases hold theirs while they take Inode::mutex; see also InodeTable.
//
// These locks are held across blocking calls: Inode::io, Inode::look, Inode::renewing and
// Listing::mutex across calls to manager and nodes, and that of KernelNames while the kernel is
// notified. No other lock is.
class Filesystem::Impl final : public SessionListener {
 public:
  Impl(FilesystemOptions options, ManagerApi& manager, NodeApi& nodes, KernelNotifier& notifier,
       const Clock& clock);
  ~Impl() override;

  Status Start();
  Status Stop();

  // ---- session (session.cc)
  void OnSessionReady(const SessionReady& ready) override;
  void OnPush(const Push& push) override;
  SessionStart SessionHeld() override;
  void OnLeaseRenewed(Time sent_monotonic, Time manager_now) override;
  void DropCached(Inode& inode, RecallKind kind);
  void EndPartialChange(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);
  void DropFailedPages(Inode& inode);
  // `inode`: settle its attributes when its pages are gone; null if none was known.
  void Recall(const RecallPush& push, const InodePtr& inode, uint64_t session);
  void RecallAccess(const RecallPush& push);
  void ConfirmRecall(FileId file, UnconfirmedRecall recall);
  void DropEverything();
  void SendUnsent(const std::vector<FileId>& files);
  bool TakeBackRelease(Inode& inode);
  void NoteChangeFailed(Inode& inode);
  void EndReadAsWriter(Inode& inode);
  void RunTimers(uint64_t round);

  // When a request was sent. Its reply may be cached if nothing has happened since.
  struct Mark {
    uint64_t log = 0;
    uint64_t era = 0;
  };
  Mark MarkNow() const { return {recalls_.Mark(), lease_.CurrentEra()}; }

  // ---- inodes and attributes (inodes.cc)
  static void CountLookup(Inode& inode, uint64_t lookups);
  // The inode is about to be forgotten. The caller must hold its mutex.
  void NoteDropped(Inode& inode);
  // Forgets inodes that are idle, and tells the manager.
  void EvictIdle();
  // Caches attributes from a reply. `own`: the reply answers one of this mount's own changes.
  void StoreAttributes(Inode& inode, const Attributes& attributes, Mark mark, bool own);
  bool AttributesValid(const Inode& inode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // How long the kernel may cache the attributes.
  Duration AttributesCachedFor(const Inode& inode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Blocks until the kernel has dropped the pages that changes in progress make stale.
  static void AwaitSettled(Inode& inode, MutexLock& lock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  void Settle(Inode& inode);
  Attributes View(const Inode& inode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // As View, with `view` instead of the inode's attributes.
  static Attributes ViewOn(const Inode& inode, Attributes view)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  Outcome<Done> EnsureAttributes(Inode& inode);
  // Builds the answer to a lookup. `kernel_may_keep`: the kernel may cache the name. `asked`: when
  // the kernel's question for the entry was read, if it was one.
  EntryResult EntryOf(Inode& inode, bool kernel_may_keep, std::optional<Time> asked = {});
  Outcome<AttributesResult> GetAttributes(FileId file);
  Outcome<Attributes> GetUnsettledAttributes(FileId file);
  Outcome<AttributesResult> SetAttributes(FileId file, const AttributeChanges& changes);
  void SetAttributes(FileId file, const AttributeChanges& changes,
                     std::function<void(Outcome<AttributesResult>)> done);
  std::optional<AwaitCopiesRequest> CopiesOfClosed(Inode& inode);
  Outcome<AttributesReply> ChangeAttributes(Inode& inode, SetAttributesRequest request, Mark* mark);
  bool SetUnsentAttributes(Inode& inode, const AttributeChanges& changes);
  void NoteCut(Inode& inode, uint64_t size_bytes, uint64_t data_version);
  void RefreshFromKernelWrites(Inode& inode);

  // ---- names (names.cc)
  Outcome<EntryResult> Lookup(FileId parent, std::string_view name);
  Outcome<EntryResult> Make(const NewEntry& entry, MakeRequest request);
  Outcome<EntryResult> Link(FileId file, FileId new_parent, std::string_view new_name);
  Outcome<Done> Remove(FileId parent, std::string_view name, bool directory);
  Outcome<Done> RemoveOnce(FileId parent, const std::string& name, bool directory);
  Outcome<Done> Rename(const RenameRequest& request);
  Outcome<Done> RenameOnce(const RenameRequest& request);
  // The file that last had this name as far as is known, however old that knowledge is; FileId{}:
  // unknown.
  FileId LastSeen(Inode& directory, const std::string& name);
  // Another file has the name now. Looks it up, so that the next request refers to that file.
  Outcome<Done> SeeAgain(FileId parent, const std::string& name);
  Outcome<std::string> ReadSymlink(FileId file);
  // `file` == FileId{}: absent. `own`: this mount's change; false: the answer to a lookup.
  bool StoreName(Inode& directory, const std::string& name, FileId file, Mark mark, bool own);
  std::optional<FileId> KnownName(Inode& directory, const std::string& name);
  void ChangeNames(Inode& directory, Mark mark,
                   const std::vector<std::pair<std::string, FileId>>& changes,
                   const Attributes* attributes);
  InodePtr BeginMake(Inode& directory, const std::string& name, std::vector<Request>* requests);
  bool BeginRemoval(FileId file);
  void EndRemoval(FileId file);
  void NoteRenamed(const RenameRequest& request, const RenameReply& reply, Inode& source,
                   Inode& target, Mark mark);
  void LostName(FileId file, uint32_t links_left, bool said_held);
  // Sends a deferred make, or blocks until another thread has sent it. Written content goes with
  // it, so that whoever finds the file finds its content. With `bare` only the make is sent,
  // because the caller is about to store the content.
  Outcome<Done> EnsureMade(Inode& inode, bool bare = false);
  // Applies the reply to a make. The file counts as being made until EndMake sets its state.
  MakeState FinishMake(Inode& inode, const Reply& reply, Mark mark);
  static void EndMake(Inode& inode, MakeState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  Outcome<Done> EnsureAllMade(Inode& directory);
  Outcome<Done> EnsureNameMade(Inode& directory, const std::string& name);
  void ClearEntries(Names& names);  // The caller must hold their mutex.
  void ClearNames(Inode& directory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(directory.mutex);

  // ---- directories (directories.cc)
  Outcome<HandleId> OpenDirectoryHandle(FileId directory);
  Outcome<DirectoryPage> ReadDirectory(HandleId handle, uint64_t offset, size_t items_max);
  EntryResult RememberEntry(HandleId handle, const DirectoryItem& item);
  Outcome<Done> BeginListing(Listing& listing);
  Outcome<Done> ContinueListing(Listing& listing);
  bool ListFromCache(Listing& listing);

  // ---- open files (open_files.cc, open_modes.cc)
  Outcome<CreateResult> Create(const NewEntry& entry, uint32_t flags);
  Outcome<CreateResult> OpenExisting(const NewEntry& entry, uint32_t flags);
  InodePtr DeferCreate(Inode& parent, const MakeRequest& request);
  Outcome<InodePtr> CreateNow(const NewEntry& entry, MakeRequest request);
  Outcome<OpenResult> Open(FileId file, uint32_t flags, const Caller& caller);
  Outcome<OpenResult> OpenReserved(const InodePtr& inode, uint32_t flags, const std::string& task);
  // Counts a handle that is about to be opened. AddHandle creates it; ReturnHandle gives it up.
  void ReserveHandle(Inode& inode, uint32_t flags);
  void ReturnHandle(Inode& inode, uint32_t flags);
  Outcome<OpenResult> AddHandle(const InodePtr& inode, uint32_t flags, std::string task);
  // For files that count their readers: records the handle's task.
  void NoteReader(Inode& inode, HandleId handle, uint32_t pid);
  Outcome<Done> ChooseMode(OpenFile& handle);
  std::shared_ptr<LocalObject> PassthroughObject(Inode& inode, bool write);
  // Returns the object for an open that the kernel will map to its backing file. Null for reading a
  // further copy that is not up to date; Busy if the object does not hold the whole file, or if
  // programs must not store into it unseen.
  Outcome<std::shared_ptr<LocalObject>> ObjectToMap(Inode& inode, bool write);
  static bool IsBacked(Inode& inode);
  // Returns the local node's object; null if it has not all bytes.
  std::shared_ptr<LocalObject> WholeLocalObject(Inode& inode, const DataAccess& access, bool write);
  // Returns true if the object was not recalled or moved since it was opened.
  bool IsCurrent(const Inode& inode, const LocalObject& object) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Count the handle in the inode's numbers of handles. The caller must hold the inode's mutex.
  void EnterBacking(OpenFile& handle, std::shared_ptr<LocalObject> object);
  void EnterPages(OpenFile& handle);
  OpenMode PassthroughRefused(HandleId handle);
  void OpenedUnbacked(HandleId handle);
  void LeaveBacking(OpenFile& handle);
  void FollowKernelWrites();
  std::optional<NodeId> LocalHolder(const DataAccess& access) const;
  void Flush(HandleId handle, uint64_t lock_owner, std::function<void(Outcome<Done>)> done);
  // Does all of Flush except the wait for copies; sets `awaited` to the copies to wait for, if any.
  Outcome<Done> FlushData(OpenFile& handle, uint64_t lock_owner,
                          std::optional<AwaitCopiesRequest>* awaited);
  Outcome<Done> Fsync(HandleId handle);
  // Returns the right to the bytes, asking the manager if it is not held. The caller must not hold
  // the inode's mutex.
  Outcome<AccessPtr> EnsureAccess(Inode& inode, bool write, const std::string& task = {});
  // The right and the attributes at one moment, because size and inline content belong together.
  struct Fresh {
    AccessPtr access;
    Attributes attributes;  // Without this mount's own changes.
    uint64_t version = 0;   // data_version of the access' inline content.
    uint64_t own_changes = 0;
  };
  Outcome<Fresh> EnsureFresh(Inode& inode, bool write, const std::string& task = {});
  std::optional<Outcome<Fresh>> FreshFromCache(Inode& inode, bool write, bool with_attributes);
  Outcome<Fresh> AskFresh(Inode& inode, bool write, const std::string& task);
  void NoteUnheardOpen(Inode& inode);
  // Caches the access from the reply to this mount's own change. `version`: the data_version of its
  // inline content, if any.
  AccessPtr StoreAccess(Inode& inode, DataAccess access, Mark mark, uint64_t version = 0);
  void KeepAccess(Inode& inode, AccessPtr access, Mark mark, uint64_t version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  Outcome<std::shared_ptr<LocalObject>> LocalObjectOf(Inode& inode, const DataAccess& access,
                                                      NodeId node, bool write);

  // ---- the end of handles and what follows it (unfinished.cc)
  void Release(HandleId handle, std::optional<uint64_t> flock_owner);
  bool CommitAtRelease(Inode& inode, HandleId handle);
  bool KeepHandle(const std::shared_ptr<OpenFile>& handle);
  void DropObject(OpenFile& handle);
  void EndHandle(OpenFile& handle);
  void FinishLocalWrites(const InodePtr& inode, const AccessPtr& access);
  // Reports bytes that were written behind the file's last close and are lost.
  void NoteUnsaved(const Inode& inode, const Failure& failure);
  // True if a program may have mapped the object for writing, by passthrough.
  static bool MayBeMapped(const OpenFile& handle);
  // True if a program may store into the file through a mapping; an empty file cannot be stored
  // into.
  bool MayBeStoredInto(const Inode& inode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  void WatchIfMappable(const std::shared_ptr<OpenFile>& handle);
  // Asks the node what was stored through mappings and marks it for commit. Returns true if a
  // program may still store. While one can, bytes are compared only with `while_written`.
  bool LookAtStores(Inode& inode, bool while_written);
  // As LookAtStores, before a close, fsync or utimensat returns. The caller must hold the inode's
  // io.
  void CatchStores(Inode& inode);
  void CloseWritable(Inode& inode);
  void LookAtWatched();                       // Runs until the mount stops.
  bool LookAt(const WatchedFiles::Due& due);  // Returns true if it is finished.
  void NameKept();

  // ---- writing (writer.cc, spill.cc, commit.cc). The caller must hold the inode's io.
  // `memory`: the owner of the data, if they may be kept instead of copied.
  Outcome<size_t> Write(HandleId handle, const CallPiece& piece, std::span<const std::byte> data,
                        const Memory& memory);
  Outcome<size_t> WritePages(HandleId handle, uint64_t offset, std::span<const std::byte> data,
                             const Memory& memory);
  Outcome<Done> WriteThrough(OpenFile& handle, const CallPiece& piece,
                             std::span<const std::byte> data, const Memory& memory);
  static Outcome<Done> EnsureCounted(OpenFile& handle);
  Outcome<Done> WriteAt(Inode& inode, uint64_t offset, std::span<const std::byte> data,
                        const Memory& memory);
  Outcome<Done> Append(OpenFile& handle, std::span<const std::byte> data, const CallPiece& piece);
  bool GoesOn(const AppendHold& hold, HandleId handle, size_t size_bytes,
              const CallPiece& piece) const;
  // Takes the appenders' lock and sets the inode's append_hold.
  Outcome<Done> BeginAppend(Inode& inode, HandleId handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);
  // Commits, if anything was `stored`, and releases the appenders' lock.
  Outcome<Done> EndAppend(Inode& inode, bool stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);
  Outcome<Done> RenewAppendRight(Inode& inode);
  // Does nothing for another handle's append.
  void EndAppendOf(Inode& inode, HandleId handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);
  void EndAppendOfOthers(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);
  // Ends the appends of programs that do not continue.
  void EndOverdueAppends();
  Outcome<bool> WriteInline(Inode& inode, uint64_t offset, std::span<const std::byte> data);
  // Sets `inline_buffer` to the fresh content with this mount's own bytes on top.
  static void LayInline(Inode& inode, const Fresh& fresh)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Writes bytes into the inline buffer.
  void PutInline(Inode& inode, const Fresh& fresh, uint64_t offset, std::span<const std::byte> data)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  void NoteInlineWritten(Inode& inode, ByteRange range) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Returns fresh access and attributes, with no commit in progress. Bytes written inline before
  // `lock`, that of the inode's mutex, is released go into the next commit. Releases it meanwhile.
  Outcome<Fresh> AwaitFresh(Inode& inode, MutexLock& lock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Appends to a file that no other mount can know yet. False: append as to any other file.
  bool AppendUnsent(Inode& inode, std::span<const std::byte> data);
  // Merges other mounts' changes into a file that this mount has written inline.
  Outcome<Done> MergeInline(Inode& inode);
  void MoveInlineToObjects(Inode& inode, const DataAccess& access, std::string* content,
                           std::vector<ByteRange>* ranges);
  Outcome<AccessPtr> EnsureBound(Inode& inode, uint64_t size_bytes);
  Outcome<AccessPtr> Bind(Inode& inode, uint64_t size_bytes);
  // `access` is the one with which the file was bound. Blocks until the bytes are stored if the
  // manager still holds them.
  Outcome<Done> PutInlineIntoObjects(Inode& inode, const DataAccess& access);
  Outcome<Done> WriteBound(Inode& inode, uint64_t offset, std::span<const std::byte> data,
                           const Memory& memory);
  Outcome<bool> WritePiece(Inode& inode, const DataAccess& access, const Piece& piece,
                           std::span<const std::byte> data, const Memory& memory,
                           std::vector<NodeId>* refused);
  Outcome<Done> WriteLocal(Inode& inode, const DataAccess& access, NodeId node, uint64_t offset,
                           std::span<const std::byte> data);
  // Stores a piece by a layout. False if it was not stored, because the `refused` nodes have no
  // room or the layout has changed.
  using StorePiece = std::function<Outcome<bool>(const DataAccess& access, const Piece& piece,
                                                 std::vector<NodeId>* refused)>;
  // Stores `range` piece by piece, taking room for each. Pieces without room are spilled.
  Outcome<Done> StorePieces(Inode& inode, ByteRange range, uint64_t piece_bytes_max,
                            const StorePiece& store);
  Outcome<bool> TakeRoom(Inode& inode, const DataAccess& access, const Piece& piece,
                         std::map<NodeId, uint64_t>* taken, std::vector<NodeId>* refused);
  bool IsAllocated(Inode& inode, const DataAccess& access, NodeId node, ByteRange range);
  Outcome<Done> BufferPiece(Inode& inode, const Piece& piece, std::span<const std::byte> data,
                            uint64_t chunk_bytes, const Memory& memory);
  void NoteStored(Inode& inode, const Piece& piece);  // Locks the inode's mutex.
  void SendBuffered(Inode& inode, bool all, std::optional<SteadyTime> end = {});
  void SendExtent(const InodePtr& inode, const std::shared_ptr<const Extent>& extent);
  Outcome<Done> StoreExtent(Inode& inode, const Extent& extent, std::vector<NodeId>* full);
  Status WriteToNode(Inode& inode, NodeId node, uint64_t offset, std::span<const std::byte> data);
  void NoteUnbuffered(Inode& inode, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Runs `store` on io_, in the node's lane.
  void RunStore(NodeId node, std::function<void()> store, std::optional<SteadyTime> end = {});
  void AwaitRoomForBuffer(Inode& inode, uint64_t bytes);
  // Stores everything buffered, and spills what nodes had no room for.
  void Drain(Inode& inode);
  // The same, if any of it overlaps `range`.
  void DrainOverlap(Inode& inode, ByteRange range);
  void NoteError(Inode& inode, Failure failure);
  // Moves the part of `range` that is not stored to nodes other than `full`. A failure changes
  // nothing. False: nothing had to change, or another client has changed it.
  Outcome<bool> Spill(Inode& inode, ByteRange range, const std::vector<NodeId>& full);
  // What is known of the spills of one piece.
  struct SpillProgress {
    std::vector<NodeId> full;
    size_t attempt = 0;  // How often no node had room.
    std::optional<Time> fruitless_since;
  };
  // Spills after the `refused` nodes have reported that they are full. When no node has room, it
  // waits, longer with each attempt, asks all nodes again, and fails after the last attempt.
  Outcome<Done> SpillPatiently(Inode& inode, ByteRange range, const std::vector<NodeId>& refused,
                               SpillProgress* progress);
  // The steps of a spill (spill.cc).
  Outcome<Done> CleanHole(Inode& inode, ByteRange hole, const std::vector<NodeId>& nodes);
  Outcome<bool> GoOnElsewhere(Inode& inode, ByteRange range, const std::vector<NodeId>& full);
  Outcome<bool> LookAgain(Inode& inode, const Failure& failure);
  void Thaw(Inode& inode);
  Outcome<ByteRange> HoleIn(Inode& inode, const DataAccess& access, ByteRange range,
                            const std::vector<NodeId>& full);
  Outcome<uint64_t> HoleBegin(Inode& inode, const Piece& piece);
  Outcome<ByteRange> HoleFrom(Inode& inode, const Layout& layout, uint64_t begin);
  void MoveRoom(Inode& inode, const Layout& from, const Layout& to, ByteRange hole);
  // What a store does if bytes of the file are lost: its commit would outdate the copies that can
  // replace them. A cut goes on, because the kept bytes may be whole: the manager decides.
  enum class IfLost : uint8_t { kFail, kGoOn };
  // Brackets a store on nodes by the layout that BeginStore returns. The manager is told that a
  // recall is done once no such store is in progress. Must not be nested.
  Outcome<AccessPtr> BeginStore(Inode& inode, IfLost if_lost);
  void EndStore(Inode& inode);
  // True if the layout used by the current store has been valid throughout.
  bool MayStillStore(Inode& inode);
  class StoreSection {
   public:
    StoreSection(Impl& impl, Inode& inode, IfLost if_lost = IfLost::kFail)
        : impl_(impl), inode_(inode), access_(impl.BeginStore(inode, if_lost)) {}
    StoreSection(const StoreSection&) = delete;
    StoreSection& operator=(const StoreSection&) = delete;
    ~StoreSection() {
      if (access_.ok()) impl_.EndStore(inode_);
    }
    const Outcome<AccessPtr>& access() const { return access_; }

   private:
    Impl& impl_;
    Inode& inode_;
    const Outcome<AccessPtr> access_;
  };
  // Runs `store` between BeginStore and EndStore. Repeats it while it fails with kAborted, because
  // the layout may have changed.
  Outcome<Done> WithStore(Inode& inode,
                          const std::function<Outcome<Done>(const DataAccess&)>& store,
                          IfLost if_lost = IfLost::kFail);
  static void PauseBeforeStore(int attempt);
  // Blocks until no other client has the file frozen, and returns the right to write that the inode
  // holds.
  Outcome<AccessPtr> EnsureThawed(Inode& inode);
  static Failure FrozenTooLong(const Inode& inode, Duration waited);
  static Failure LostBytes(const Inode& inode);
  // Why bytes that this mount has yet to commit are no part of the file by this layout.
  static std::optional<Failure> OwnBytesAreLate(const Inode& inode, const DataAccess& access)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  static Outcome<Done> CheckBound(const Inode& inode, const DataAccess& access);
  // What was written through the handle and could not be stored; a write, fsync or close tells it.
  Outcome<Done> UntoldError(const OpenFile& handle);
  Outcome<Done> TellError(OpenFile& handle);
  // `tells_close`: send the commit even if there is nothing else to report.
  Outcome<Done> Commit(Inode& inode, bool last_close, bool tells_close = false);
  // Clears set-user-id and set-group-id if the kernel has written the file with these bits set.
  Outcome<Done> TakePrivileges(Inode& inode);
  struct CommitKind {
    bool last_close = false;
    bool tells_close = false;
    // Does something only if the manager does not know the file: sends its make with what was
    // written so far. The caller need not hold the inode's io, because nobody else commits before
    // that.
    bool make_only = false;
    bool bare = false;  // With make_only: omit written bytes that were not appended.
  };
  // `outdated`: other mounts have changed the content on which the commit is based; merge and try
  // again.
  Outcome<Done> CommitOnce(Inode& inode, CommitKind kind, bool* outdated);
  CommitRequest BuildCommit(Inode& inode, bool last_close);
  static void TakeBack(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Stored bytes no longer count, because the file's bytes are elsewhere. Forgets them and reports
  // the error to all open handles, unless the only change was one whose call has failed.
  enum class Reported : uint8_t { kNow, kBefore };
  Reported DropUncommitted(Inode& inode, const Failure& failure);
  static void NoteOutdated(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  std::vector<CommitRequest::NodeBytes> NodeBytesOf(Inode& inode);
  // ---- copies (copies.cc)
  // Before the last close's commit: no node's copy counts while this mount could write unseen. Only
  // for files whose close waits for copies. The caller must hold the inode's io.
  void FinishBeforeCopies(Inode& inode);
  void NoteCopied(const AwaitCopiesRequest& request);
  // After the commit: the copies to wait for, if any.
  std::optional<AwaitCopiesRequest> AwaitedCopies(Inode& inode);
  // Calls `done` when the copies exist, or with an error when copying makes no progress for long.
  // The bytes are already committed and stay. Holds no thread; `done` must not block.
  void AwaitCopies(const AwaitCopiesRequest& request, std::function<void(Outcome<Done>)> done);
  // Reports writes through a descriptor, from time to time, to nodes that copy the file eagerly.
  void NoteWrittenLocally(Inode& inode, const DataAccess& access, NodeId node, ByteRange range);

  void EndClosing(Inode& inode, bool committed);
  void FinishCommit(Inode& inode, bool is_inline, const Attributes& attributes, Mark mark);
  void KeepInline(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  void DropUnusedInline(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  Outcome<Done> Resize(Inode& inode, uint64_t size_bytes);
  void EndResize(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);
  // Removes the bytes from `removed.begin` on; `removed.end` is the size before.
  Outcome<Done> CutObjects(Inode& inode, ByteRange removed);
  void GiveUpUnsaved(Inode& inode, const Failure& failure);
  void DropUnsaved(Inode& inode);
  Outcome<Done> CheckNodesAlive(const Inode& inode, const std::vector<NodeId>& nodes);
  Outcome<Done> LayOutAnew(Inode& inode, const DataAccess& access);
  Outcome<Done> CutObjectsOf(Inode& inode, const DataAccess& access, ByteRange removed);
  // Removes bytes on a node that keeps others. OK without an object if the file is known to have no
  // byte there. Aborted if the object is missing, or the access does not tell yet.
  Status RemoveOn(Inode& inode, const DataAccess& access, NodeId node,
                  const std::function<Status(const ObjectTarget&)>& operation);
  Status PunchOn(Inode& inode, const DataAccess& access, NodeId node, ByteRange range);
  Outcome<Done> Allocate(HandleId handle, int mode, uint64_t offset, uint64_t length);
  Outcome<Done> AllocateRange(Inode& inode, int mode, ByteRange range);
  Outcome<bool> AllocatePiece(Inode& inode, const DataAccess& access, const Piece& piece,
                              bool zeroes, std::vector<NodeId>* refused);
  Outcome<Done> PunchObjects(Inode& inode, ByteRange range);
  Outcome<Done> PunchInline(Inode& inode, ByteRange range);
  // Runs `operation` on a node, and repeats it while the node is unreachable and may return.
  // Aborted if the node refuses the right: the caller starts over with a new one from the manager.
  Status WithRetries(Inode& inode, NodeId node, bool write,
                     const std::function<Status(const ObjectTarget&)>& operation);
  // A node has refused a right, for example because its process began after the right was issued.
  // Returns a new one, or the same if there is none.
  AccessPtr RenewRight(Inode& inode, const AccessPtr& refused);

  // ---- reading (reader.cc)
  Outcome<ReadResult> Read(HandleId handle, uint64_t offset, size_t size_bytes);
  void OnUnreadableMapping(HandleId handle);
  Outcome<ReadResult> ReadOnce(OpenFile& handle, uint64_t offset, size_t size_bytes);
  AccessPtr AfterOwnWrites(Inode& inode, ByteRange range, AccessPtr access);
  // Identifies the layout and session of a read. If they were recalled meanwhile, the manager may
  // have had objects dropped, which then read as zeroes.
  struct LayoutMark {
    uint64_t recalls = 0;
    uint64_t era = 0;
    uint64_t incarnations = 0;
    bool operator==(const LayoutMark&) const = default;
  };
  LayoutMark MarkLayout(Inode& inode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Runs `read` until it completes under one layout.
  template <typename Value>
  Outcome<Value> ByOneLayout(Inode& inode, const std::function<Outcome<Value>()>& read);
  Outcome<ReadResult> ReadBound(OpenFile& handle, const AccessPtr& access, ByteRange range,
                                uint64_t file_bytes);
  std::optional<ReadResult> ReadByDescriptor(OpenFile& handle, const DataAccess& access,
                                             ByteRange range);
  // False: ask the node instead.
  bool ReadLocal(Inode& inode, const DataAccess& access, NodeId node, ByteRange range,
                 std::byte* out);
  void FetchAhead(const InodePtr& inode, const AccessPtr& access, ByteRange range);
  Outcome<Done> FetchRange(Inode& inode, const DataAccess& access, ByteRange range, std::byte* out,
                           bool parallel);
  Outcome<Done> FetchPiece(Inode& inode, const DataAccess& access, const Piece& piece,
                           std::byte* out);
  // True if a missing object on this node means that it has no bytes: the manager has said that
  // none was committed there. This mount's own stores create the object.
  static bool IsKnownEmpty(const DataAccess& access, NodeId node);
  // The node lacks an object that it should have. Makes the next access ask the manager, who may
  // know why.
  Failure ObjectMissing(Inode& inode, NodeId node);
  Outcome<uint64_t> Seek(HandleId handle, uint64_t offset, SeekKind kind);
  Outcome<uint64_t> SeekOnce(Inode& inode, uint64_t offset, SeekKind kind);
  Outcome<uint64_t> SeekData(Inode& inode, const DataAccess& access, ByteRange range);
  Outcome<uint64_t> SeekHole(Inode& inode, const DataAccess& access, ByteRange range);
  Outcome<std::optional<uint64_t>> SeekObject(Inode& inode, NodeId node, uint64_t offset,
                                              SeekKind kind);

  // ---- attributes by name, locks (xattrs.cc, locks.cc)
  Outcome<std::string> GetXattr(FileId file, std::string_view name);
  Outcome<std::vector<std::string>> ListXattrs(FileId file);
  // Before a hint is set: commits what was written here, because a file with bytes does not move.
  // Returns true if the kernel has an object open. The caller must hold the inode's io.
  Outcome<bool> SettleForHint(Inode& inode);
  // Adds the hint to a file that the manager does not know yet. False: ask the manager.
  bool DeferHint(Inode& inode, std::string_view attribute, std::string_view value);
  // Sends the request. Repeats it with the file frozen if other mounts know the layout that it is
  // to lose.
  Outcome<std::vector<Reply>> AskFreezing(Inode& inode, const Request& request);
  Outcome<Done> SetXattr(FileId file, std::string_view name, std::string_view value,
                         XattrMode mode);
  Outcome<Done> RemoveXattr(FileId file, std::string_view name);
  Outcome<std::optional<Lock>> GetLock(FileId file, Lock lock);
  Outcome<Done> SetLock(FileId file, Lock lock);
  void NoteLockOwner(HandleId handle, uint64_t owner);
  void NoteLockOwnersClosing(OpenFile& handle, uint64_t flushed_owner);
  bool IsClosing(Inode& inode, uint64_t owner);
  void AwaitClosing(Inode& inode, uint64_t owner);
  LockWaitId WaitForLock(FileId file, Lock lock, std::function<void(Outcome<Done>)> done);
  void CancelLockWait(LockWaitId wait);
  // Requests a lock without waiting for its holder; records it if granted.
  Outcome<Done> AskForLock(Inode& inode, const Lock& lock);
  void RecordLock(Inode& inode, const Lock& lock);
  void GiveUpLock(Inode& inode, Lock lock);
  void Revalidate(Inode& inode);
  Outcome<Done> Unlock(Inode& inode, const Lock& lock);
  void DropLocksOf(Inode& inode, uint64_t owner, bool whole_file);

  std::string StatsJson() const;

  // ---- tracing (tracing.cc)
  Time ManagerNow() { return lease_.ManagerNow(); }
  void SetPassthrough(bool allowed) { passthrough_allowed_ = allowed; }
  std::vector<TracedMount::NamedFile> KnownNames();
  uint64_t KnownSize(FileId file);

  const FilesystemOptions options_;
  std::atomic<bool> passthrough_allowed_ = true;  // In addition to the options.
  const ClientId client_;                         // Random, for this run of the mount.
  ManagerApi& manager_;
  NodeApi& nodes_;
  KernelNotifier& notifier_;
  const Clock& clock_;

  // Self-locking.
  Stats stats_;
  ManagerCalls calls_;
  Lease lease_;
  RecallLog recalls_;
  InodeTable inodes_;
  HandleTable handles_;
  NodeStates node_states_;
  FileIds file_ids_;
  Releases releases_;
  Grants grants_;
  BlockCache blocks_;
  CopyWaits copy_waits_;
  LockWaits lock_waits_;
  TaskNames tasks_;
  WatchedFiles watched_;
  UnsavedFiles unsaved_;
  BufferedBytes buffered_;
  InodeSet buffering_;  // Inodes with a non-empty buffer.
  InodeSet appending_;  // Inodes whose append_hold waits for the rest of its call.
  KernelNames kernel_names_;
  Executor io_;       // Write-behind and truncation.
  Executor reads_;    // Prefetching; not delayed by a node that hangs in a write.
  Lanes stores_;      // What io_ runs, by node: a hanging node does not delay writes to others.
  Lanes fetches_;     // What reads_ runs, by file and node.
  Executor service_;  // Recalls and granted locks.
  KernelPages pages_;

  std::atomic<size_t> names_count_{0};
  std::atomic<uint64_t> inline_cached_bytes_{0};
  RareLog losses_{100};  // Each names a file whose bytes were not stored.
  // Counts this mount's changes of hints. What directories remember about hints is valid for one
  // value.
  std::atomic<uint64_t> hints_generation_{0};
  // Counts sessions; a recall belongs to the session that sent it.
  std::atomic<uint64_t> sessions_{0};
  std::atomic<bool> session_seen_{false};

  Periodic timer_;
  Periodic follower_;
  Thread finisher_;  // Runs LookAtWatched.
  std::atomic<bool> started_{false};
  Status stop_status_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_IMPL_H_
