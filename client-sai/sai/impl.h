// The inside of Filesystem: one object whose methods are grouped into files by theme.
#ifndef MOSA_CLIENT_SAI_SAI_IMPL_H_
#define MOSA_CLIENT_SAI_SAI_IMPL_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/copy_waits.h"
#include "client-sai/sai/executor.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/grants.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/watched_files.h"
#include "client-sai/trace/task_names.h"

namespace mosa::sai {

using InodePtr = std::shared_ptr<Inode>;
using AccessPtr = std::shared_ptr<const DataAccess>;

// Who finds that another client has frozen the file looks again after this time.
inline constexpr Duration kFrozenDelay = Milliseconds(10);

Failure Fail(StatusCode code, ErrorReason reason, std::string message);
Failure FromStatus(const Status& status);

// Locks, in the order in which they may be taken: Inode::io, Inode::look, Inode::mutex, then any of
// table_mutex_, handles_mutex_, those inside members. epoch_mutex_ comes before Inode::mutex. With
// table_mutex_ the mutex of an inode may be taken to which nobody else refers: nobody holds it.
//
// Inode::io and Inode::look are held across calls to manager and nodes, epoch_mutex_ while the
// kernel is told, releases_mutex_ while requests that nobody waits for are sent; no other lock is.
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
  // Has the kernel drop what it caches of a file, and runs `dropped` then. `done` runs then too, or
  // after kPagesWaitMax, with false: a page may be locked by a request that waits for another mount
  // which waits for this one. Both run on threads of the mount's own and must not wait.
  using Dropped = std::function<void()>;
  using DropDone = std::function<void(bool in_time)>;
  void DropPages(FileId file, Dropped dropped, DropDone done);
  void InvalidateInKernel(FileId file);
  void NoteInKernel(FileId file, void (SizeInKernel::*note)(Time));
  // Caller holds the inode's io.
  void EndPartialChange(Inode& inode);
  void DropFailedPages(Inode& inode);
  // The same, waiting for `done`.
  bool DropPagesNow(
      FileId file, Dropped dropped = [] {});
  void EndOverdueDrops();
  // `inode`: whose attributes are to be settled when its pages are gone; null if none was known.
  void Recall(const RecallPush& push, const InodePtr& inode, uint64_t session);
  void RecallAccess(const RecallPush& push);
  void ConfirmRecall(FileId file, UnconfirmedRecall recall);
  void DropEverything();
  void SendUnsent(const std::vector<FileId>& files);
  void NoteNodes(const std::vector<NodeAddress>& nodes);
  bool NodeAlive(NodeId node) const;
  Outcome<FileId> NewFileId();
  void AskForFileIds();
  void QueueRelease(FileId file, std::optional<std::string> reader = {});
  void SendQueued();
  // Runs `step` ten times a second until the mount stops.
  void Repeat(const std::function<void(uint64_t round)>& step);
  void RunTimers();

  // When a request left: what its reply says may be cached if nothing happened since.
  struct Mark {
    uint64_t log = 0;
    uint64_t era = 0;
  };
  Mark MarkNow() const { return {recalls_.Mark(), lease_.CurrentEra()}; }
  Outcome<std::vector<Reply>> AskAll(std::vector<Request> requests);
  template <typename R>
  Outcome<R> Ask(Request request) {
    auto replies = AskAll({std::move(request)});
    if (!replies.ok()) return replies.failure();
    R* reply = std::get_if<R>(&replies->back());
    if (reply == nullptr) return UnexpectedReply();
    return std::move(*reply);
  }
  static Failure UnexpectedReply();

  // ---- inodes and attributes (inodes.cc)
  InodePtr Get(FileId file);
  InodePtr Find(FileId file);
  void CountLookup(Inode& inode, uint64_t lookups);
  void Forget(FileId file, uint64_t lookups);
  void EvictIdle();
  bool EraseRemoved(const InodePtr& inode);
  static bool IsIdle(const Inode& inode);  // Caller holds the inode's mutex.
  // A reply says what the attributes are. `own`: it answers a change of this mount's.
  void StoreAttributes(Inode& inode, const Attributes& attributes, Mark mark, bool own);
  bool AttributesValid(const Inode& inode) const;  // Caller holds the inode's mutex.
  // How long the kernel may cache them. Caller holds the inode's mutex.
  Duration AttributesCachedFor(const Inode& inode) const;
  // Waits until the kernel has dropped the pages that changes under way make wrong.
  static void AwaitSettled(Inode& inode, std::unique_lock<std::mutex>& lock);
  void Settle(Inode& inode);
  Attributes View(const Inode& inode) const;  // Caller holds the inode's mutex.
  // The same on top of other attributes than the inode's.
  static Attributes ViewOn(const Inode& inode, Attributes view);
  Outcome<Done> EnsureAttributes(Inode& inode);
  // `kernel_may_keep` its name, without asking for it again.
  // asked: when the kernel's question for the entry was read, if it was one.
  EntryResult EntryOf(Inode& inode, bool kernel_may_keep, std::optional<Time> asked = {});
  Outcome<AttributesResult> GetAttributes(FileId file);
  Outcome<Attributes> GetUnsettledAttributes(FileId file);
  Outcome<AttributesResult> SetAttributes(FileId file, const AttributeChanges& changes);
  bool SetUnsentAttributes(Inode& inode, const AttributeChanges& changes);
  void NoteCut(Inode& inode, uint64_t size_bytes);
  void RefreshFromKernelWrites(Inode& inode);

  // ---- names (names.cc)
  // Whether the kernel may keep the directory's names. To be asked before these are looked at, so
  // that a recall after that, by which they are wrong, has the kernel forget them. Not while others
  // change the directory: the kernel can only forget every name of the mount at once, and with its
  // name a file that is not open loses its pages.
  bool KernelMayKeep(Inode& directory);
  void ForgetKernelNames(Inode& directory);
  void ForgetAllKernelNames();
  Outcome<EntryResult> Lookup(FileId parent, std::string_view name);
  Outcome<EntryResult> Make(const NewEntry& entry, MakeRequest request);
  Outcome<EntryResult> Link(FileId file, FileId new_parent, std::string_view new_name);
  Outcome<Done> Remove(FileId parent, std::string_view name, bool directory);
  Outcome<Done> RemoveOnce(FileId parent, const std::string& name, bool directory);
  Outcome<Done> Rename(const RenameRequest& request);
  Outcome<Done> RenameOnce(const RenameRequest& request);
  // The file that the name was last seen to be, however long ago; FileId{}: not known.
  FileId LastSeen(Inode& directory, const std::string& name);
  // Another file has the name by now. Asks for it, so that the next request means that one.
  Outcome<Done> SeeAgain(FileId parent, const std::string& name);
  Outcome<std::string> ReadSymlink(FileId file);
  // `file` == FileId{}: absent. `own`: this mount's change; false: a lookup's answer.
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
  // Sends a deferred make, or waits until it is sent. What was written goes with it: whoever finds
  // the file finds its content. Not if it is `bare`: the caller is about to store that.
  Outcome<Done> EnsureMade(Inode& inode, bool bare = false);
  // Takes over what a make answered; the file is being made until EndMake says what it has become.
  MakeState FinishMake(Inode& inode, const Reply& reply, Mark mark);
  static void EndMake(Inode& inode, MakeState state);  // Caller holds the inode's mutex.
  Outcome<Done> EnsureAllMade(Inode& directory);
  Outcome<Done> EnsureNameMade(Inode& directory, const std::string& name);
  void ClearNames(Inode& directory);  // Caller holds the directory's mutex.

  // ---- directories (directories.cc)
  Outcome<HandleId> OpenDirectoryHandle(FileId directory);
  Outcome<DirectoryPage> ReadDirectory(HandleId handle, uint64_t offset, size_t items_max);
  EntryResult RememberEntry(HandleId handle, const DirectoryItem& item);
  void ReleaseDirectory(HandleId handle);
  Outcome<Done> BeginListing(Listing& listing);
  Outcome<Done> ContinueListing(Listing& listing);
  bool ListFromCache(Listing& listing);

  // ---- open files (open_files.cc)
  Outcome<CreateResult> Create(const NewEntry& entry, uint32_t flags);
  Outcome<CreateResult> OpenExisting(const NewEntry& entry, uint32_t flags);
  InodePtr DeferCreate(Inode& parent, const MakeRequest& request);
  Outcome<InodePtr> CreateNow(const NewEntry& entry, MakeRequest request);
  Outcome<OpenResult> Open(FileId file, uint32_t flags, const Caller& caller);
  Outcome<OpenResult> OpenReserved(const InodePtr& inode, uint32_t flags, const std::string& task);
  // Counts a handle that is going to be opened; AddHandle makes it, ReturnHandle gives it up.
  void ReserveHandle(Inode& inode, uint32_t flags);
  void ReturnHandle(Inode& inode, uint32_t flags);
  OpenResult AddHandle(const InodePtr& inode, uint32_t flags, std::string task);
  // For a file that counts its readers: note the handle's task, and that it has ended once the last
  // handle of that task closes.
  void NoteReader(Inode& inode, HandleId handle, uint32_t pid);
  void ReaderCloses(const OpenFile& handle);
  void ChooseMode(OpenFile& handle);
  std::shared_ptr<LocalObject> PassthroughObject(Inode& inode, bool write);
  OpenMode PassthroughRefused(HandleId handle);
  void LeavePassthrough(OpenFile& handle);
  void FollowKernelWrites();
  std::optional<NodeId> LocalHolder(const DataAccess& access) const;
  void Flush(HandleId handle, uint64_t lock_owner, std::function<void(Outcome<Done>)> done);
  // All of it but the wait for copies: for which, if for any.
  Outcome<Done> FlushData(OpenFile& handle, uint64_t lock_owner,
                          std::optional<AwaitCopiesRequest>* awaited);
  Outcome<Done> Fsync(HandleId handle);
  std::shared_ptr<OpenFile> HandleOf(HandleId handle);
  // The right to the bytes, asked for if it is not held. The inode's mutex is not held.
  Outcome<AccessPtr> EnsureAccess(Inode& inode, bool write, const std::string& task = {});
  // The same with the attributes of the same moment: size and inline content belong together.
  struct Fresh {
    AccessPtr access;
    Attributes attributes;  // Without this mount's own changes.
    uint64_t version = 0;   // Version of the access' inline content.
    uint64_t own_changes = 0;
  };
  Outcome<Fresh> EnsureFresh(Inode& inode, bool write, const std::string& task = {});
  std::optional<Outcome<Fresh>> FreshFromCache(Inode& inode, bool write, bool with_attributes);
  Outcome<Fresh> AskFresh(Inode& inode, bool write, const std::string& task);
  void NoteUnheardOpen(Inode& inode);
  // What this mount's own change has answered. `version`: the data_version of its inline content,
  // if it has any.
  AccessPtr StoreAccess(Inode& inode, DataAccess access, Mark mark, uint64_t version = 0);
  // Caller holds the inode's mutex.
  void KeepAccess(Inode& inode, AccessPtr access, Mark mark, uint64_t version);
  Outcome<std::shared_ptr<LocalObject>> LocalObjectOf(Inode& inode, const DataAccess& access,
                                                      NodeId node, bool write);

  // ---- ends of handles, and what comes after them (unfinished.cc)
  void Release(HandleId handle, std::optional<uint64_t> flock_owner);
  bool CommitAtRelease(Inode& inode, HandleId handle);
  bool KeepHandle(const std::shared_ptr<OpenFile>& handle);
  void DropObject(OpenFile& handle);
  void EndHandle(OpenFile& handle);
  void FinishLocalWrites(const InodePtr& inode, const AccessPtr& access);
  // What was written behind the file's last close is lost: it is named.
  void NoteUnsaved(const Inode& inode, const Failure& failure);
  // Whether a program may have the object mapped to store into it, by passthrough.
  static bool MayBeMapped(const OpenFile& handle);
  // The same of a file: nothing can be stored into a mapping of no bytes. Caller holds the inode's
  // mutex.
  bool MayBeStoredInto(const Inode& inode) const;
  void WatchIfMappable(const std::shared_ptr<OpenFile>& handle);
  // Asks the node what was stored through mappings; it becomes what is to be committed. True if a
  // program can still store, as far as is known; bytes are then compared only if `while_written`.
  bool LookAtStores(Inode& inode, bool while_written);
  // The same before a close, fsync or utimensat returns. Caller holds the inode's io.
  void CatchStores(Inode& inode);
  void CloseWritable(Inode& inode);
  void LookAtWatched();                       // Runs until the mount stops.
  bool LookAt(const WatchedFiles::Due& due);  // True: it is finished.
  void NameKept();

  // ---- writing (writer.cc, spill.cc, commit.cc); the caller holds the inode's io
  // `memory`: whose the data are, if they may be kept instead of copied.
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
  // Takes the appenders' lock; the inode has an append_hold then.
  Outcome<Done> BeginAppend(Inode& inode, HandleId handle);
  // Commits, if anything was `stored`, and gives the lock back.
  Outcome<Done> EndAppend(Inode& inode, bool stored);
  Outcome<Done> RenewAppendRight(Inode& inode);
  void EndAppendOf(Inode& inode, HandleId handle);  // If it is that handle's.
  void EndAppendOfOthers(Inode& inode);
  // For programs that do not go on.
  void EndOverdueAppends();
  Outcome<bool> WriteInline(Inode& inode, uint64_t offset, std::span<const std::byte> data);
  // Makes `inline_buffer` what is fresh with this mount's own bytes on top. Caller holds the
  // inode's mutex.
  static void LayInline(Inode& inode, const Fresh& fresh);
  // Puts bytes into it. The same.
  void PutInline(Inode& inode, const Fresh& fresh, uint64_t offset,
                 std::span<const std::byte> data);
  void NoteInlineWritten(Inode& inode, ByteRange range);  // Caller holds the inode's mutex.
  // What is fresh, with the inode's mutex: nothing of it is being told to the manager, so that what
  // is written inline under the lock is the next commit's.
  Outcome<Fresh> LockFresh(Inode& inode, std::unique_lock<std::mutex>* lock);
  // Appends to a file that nobody else can know yet. False: to be appended like any other.
  bool AppendUnsent(Inode& inode, std::span<const std::byte> data);
  // Others have changed a file that this mount has written inline: their bytes are taken over.
  Outcome<Done> MergeInline(Inode& inode);
  void MoveInlineToObjects(Inode& inode, const DataAccess& access, std::string* content,
                           std::vector<ByteRange>* ranges);
  Outcome<AccessPtr> EnsureBound(Inode& inode, uint64_t size_bytes);
  Outcome<AccessPtr> Bind(Inode& inode, uint64_t size_bytes);
  // `access`: as it was when the file was bound. Waits until they are stored if the manager still
  // has them.
  Outcome<Done> PutInlineIntoObjects(Inode& inode, const DataAccess& access);
  Outcome<Done> WriteBound(Inode& inode, uint64_t offset, std::span<const std::byte> data,
                           const Memory& memory);
  Outcome<bool> WritePiece(Inode& inode, const DataAccess& access, const Piece& piece,
                           std::span<const std::byte> data, const Memory& memory,
                           std::vector<NodeId>* refused);
  Outcome<Done> WriteLocal(Inode& inode, const DataAccess& access, NodeId node, uint64_t offset,
                           std::span<const std::byte> data);
  // Stores a piece by a layout. False: it was not stored, for `refused` have no room, or the layout
  // is another one by now.
  using StorePiece = std::function<Outcome<bool>(const DataAccess& access, const Piece& piece,
                                                 std::vector<NodeId>* refused)>;
  // Stores `range`, piece by piece, with room taken for each; what finds none goes on elsewhere.
  Outcome<Done> StorePieces(Inode& inode, ByteRange range, uint64_t piece_bytes_max,
                            const StorePiece& store);
  Outcome<bool> TakeRoom(Inode& inode, const DataAccess& access, const Piece& piece,
                         std::map<NodeId, uint64_t>* taken, std::vector<NodeId>* refused);
  bool IsAllocated(Inode& inode, const DataAccess& access, NodeId node, ByteRange range);
  Outcome<Done> BufferPiece(Inode& inode, const Piece& piece, std::span<const std::byte> data,
                            uint64_t chunk_bytes, const Memory& memory);
  void NoteStored(Inode& inode, const Piece& piece);  // Takes the inode's mutex.
  void SendBuffered(Inode& inode, bool all);
  void SendExtent(const InodePtr& inode, const std::shared_ptr<const Extent>& extent);
  Outcome<Done> StoreExtent(Inode& inode, const Extent& extent, std::vector<NodeId>* full);
  Status WriteToNode(Inode& inode, NodeId node, uint64_t offset, std::span<const std::byte> data);
  void NoteUnbuffered(Inode& inode, uint64_t bytes);
  // Runs `store` on io_, in the node's lane.
  void RunStore(NodeId node, std::function<void()> store);
  void AwaitRoomForBuffer(Inode& inode, uint64_t bytes);
  // Stores all that is buffered; spills what nodes had no room for.
  void Drain(Inode& inode);
  void NoteError(Inode& inode, Failure failure);
  // Puts what of `range` is not stored on nodes other than `full`. Nothing has changed if it fails.
  // False: nothing had to change, or others have changed it.
  Outcome<bool> Spill(Inode& inode, ByteRange range, const std::vector<NodeId>& full);
  // What is known of the spills for one piece of a file.
  struct SpillProgress {
    std::vector<NodeId> full;
    size_t attempt = 0;  // How often no node had room.
    std::optional<Time> fruitless_since;
  };
  // The same, when `refused` have said that they are full. When no node has room it waits, longer
  // with each attempt, asks all nodes again, and fails after the last.
  Outcome<Done> SpillPatiently(Inode& inode, ByteRange range, const std::vector<NodeId>& refused,
                               SpillProgress* progress);
  // The steps of a spill (spill.cc).
  Outcome<bool> GoOnElsewhere(Inode& inode, ByteRange range, const std::vector<NodeId>& full);
  Outcome<bool> LookAgain(Inode& inode, const Failure& failure);
  void Thaw(Inode& inode);
  Outcome<ByteRange> HoleIn(Inode& inode, const DataAccess& access, ByteRange range,
                            const std::vector<NodeId>& full);
  Outcome<uint64_t> HoleBegin(Inode& inode, const Piece& piece);
  Outcome<ByteRange> HoleFrom(Inode& inode, const Layout& layout, uint64_t begin);
  void MoveRoom(Inode& inode, const Layout& from, const Layout& to, ByteRange hole);
  // Bytes are stored on nodes between these two, by the layout that the first one returns. The
  // manager hears that a recall is done when no such write is under way. Not nested.
  Outcome<AccessPtr> BeginStore(Inode& inode);
  void EndStore(Inode& inode);
  // Whether the layout that a store goes by has been valid until now.
  bool MayStillStore(Inode& inode);
  class StoreSection {
   public:
    StoreSection(Impl& impl, Inode& inode)
        : impl_(impl), inode_(inode), access_(impl.BeginStore(inode)) {}
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
  // Runs `store` between BeginStore and EndStore, again while it ends with kAborted: the layout may
  // have changed since it began.
  Outcome<Done> WithStore(Inode& inode,
                          const std::function<Outcome<Done>(const DataAccess&)>& store);
  static void PauseBeforeStore(int attempt);
  // The right to write, once nobody else has frozen the file: what the inode keeps.
  Outcome<AccessPtr> EnsureThawed(Inode& inode);
  static Failure FrozenTooLong(const Inode& inode, Duration waited);
  static Failure LostBytes(const Inode& inode);
  static Outcome<Done> CheckBound(const Inode& inode, const DataAccess& access);
  Outcome<Done> TellError(OpenFile& handle);
  // `tells_close`: also if there is nothing else to tell.
  Outcome<Done> Commit(Inode& inode, bool last_close, bool tells_close = false);
  // Clears set-user-id and set-group-id if the kernel has written the file with them.
  Outcome<Done> TakePrivileges(Inode& inode);
  struct CommitKind {
    bool last_close = false;
    bool tells_close = false;
    // Only if the manager does not know the file: its make, with what was written so far. The
    // caller need not hold the inode's io, as nobody else commits before that is done.
    bool make_only = false;
    bool bare = false;  // Then without what was written, unless it was appended.
  };
  // `outdated`: others have changed what it rests on; to be merged and tried again.
  Outcome<Done> CommitOnce(Inode& inode, CommitKind kind, bool* outdated);
  CommitRequest BuildCommit(Inode& inode, bool last_close);
  static void TakeBack(Inode& inode);
  // What was stored does not count any more, for the file's bytes are elsewhere: it is forgotten,
  // and whoever has the file open is told of the error.
  void DropUncommitted(Inode& inode, const Failure& failure);
  static void NoteOutdated(Inode& inode);
  std::vector<CommitRequest::NodeBytes> NodeBytesOf(Inode& inode);
  // ---- copies (copies.cc)
  // Before the last close's commit: while this mount could write unseen, no node's copy counts.
  // Only of files whose copies are to be there before close returns. Caller holds the inode's io.
  void FinishBeforeCopies(Inode& inode);
  void NoteCopied(const AwaitCopiesRequest& request);
  // After it: what to wait for, if for anything.
  std::optional<AwaitCopiesRequest> AwaitedCopies(Inode& inode);
  // Calls `done` when they are there, or with an error when they have made no progress for long.
  // The bytes are committed already, and stay. Holds no thread; `done` must not wait.
  void AwaitCopies(const AwaitCopiesRequest& request, std::function<void(Outcome<Done>)> done);
  // Written through a descriptor: nodes that follow the file hear of it now and then.
  void NoteWrittenLocally(Inode& inode, const DataAccess& access, NodeId node, ByteRange range);

  void FinishCommit(Inode& inode, bool is_inline, const Attributes& attributes, Mark mark);
  void KeepInline(Inode& inode);
  Outcome<Done> Resize(Inode& inode, uint64_t size_bytes);
  Outcome<Done> CutObjects(Inode& inode, uint64_t size_bytes);
  void GiveUpUnsaved(Inode& inode, const Failure& failure);
  void DropUnsaved(Inode& inode);
  Outcome<Done> CheckNodesAlive(const Inode& inode, const DataAccess& access);
  Outcome<Done> CutObjectsOf(Inode& inode, const DataAccess& access, uint64_t size_bytes);
  Outcome<Done> Allocate(HandleId handle, int mode, uint64_t offset, uint64_t length);
  Outcome<Done> AllocateRange(Inode& inode, int mode, ByteRange range);
  Outcome<bool> AllocatePiece(Inode& inode, const DataAccess& access, const Piece& piece,
                              bool zeroes, std::vector<NodeId>* refused);
  Outcome<Done> PunchObjects(Inode& inode, ByteRange range);
  Outcome<Done> PunchInline(Inode& inode, ByteRange range);
  // Runs `operation` on a node, again while it cannot be reached and may come back. Aborted if the
  // node refuses the right: the caller begins anew, by what the manager says then.
  Status WithRetries(Inode& inode, NodeId node, bool write,
                     const std::function<Status(const ObjectTarget&)>& operation);

  // ---- reading (reader.cc)
  Outcome<ReadResult> Read(HandleId handle, uint64_t offset, size_t size_bytes);
  void OnUnreadableMapping(HandleId handle);
  Outcome<ReadResult> ReadOnce(OpenFile& handle, uint64_t offset, size_t size_bytes);
  // The layout and the session by which something is read: if they were recalled meanwhile, the
  // manager may have had objects dropped, which then read as zeroes.
  struct LayoutMark {
    uint64_t recalls = 0;
    uint64_t era = 0;
    uint64_t incarnations = 0;
    bool operator==(const LayoutMark&) const = default;
  };
  LayoutMark MarkLayout(Inode& inode) const;  // Caller holds the inode's mutex.
  // What `read` gives by one layout from its beginning to its end.
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
  // True if an object that is absent on this node has no bytes: the manager has said that none was
  // committed there. What this mount has stored there itself makes the object.
  static bool IsKnownEmpty(const DataAccess& access, NodeId node);
  // The node has no object though it should: the manager is asked anew, and may know why.
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
  // Before a hint is set: has what was written here committed, since a file with bytes stays where
  // it is. True if the kernel has an object open. Caller holds the inode's io.
  Outcome<bool> SettleForHint(Inode& inode);
  // A file that the manager has not heard of yet takes its hints along. False: the manager is to be
  // asked.
  bool DeferHint(Inode& inode, std::string_view attribute, std::string_view value);
  // Sends it; again, with the file frozen, if other mounts know the place that it is to lose.
  Outcome<Done> AskForHint(Inode& inode, const Request& request);
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
  // Asks for a lock without waiting for its holder; recorded if granted.
  Outcome<Done> AskForLock(Inode& inode, const Lock& lock);
  void RecordLock(Inode& inode, const Lock& lock);
  void GiveUpLock(Inode& inode, Lock lock);
  void Revalidate(Inode& inode);
  Outcome<Done> Unlock(Inode& inode, const Lock& lock);
  void DropLocksOf(Inode& inode, uint64_t owner, bool whole_file);

  std::string StatsJson() const;

  // ---- for a trace (tracing.cc)
  Time ManagerNow() { return lease_.ManagerNow(); }
  void SetPassthrough(bool allowed) { passthrough_allowed_ = allowed; }
  std::vector<TracedMount::NamedFile> KnownNames();
  uint64_t KnownSize(FileId file);

  const FilesystemOptions options_;
  std::atomic<bool> passthrough_allowed_ = true;  // Besides what the options say.
  const ClientId client_;                         // Random: for this run of the mount alone.
  ManagerApi& manager_;
  NodeApi& nodes_;
  KernelNotifier& notifier_;
  const Clock& clock_;

  // Self-locking.
  Lease lease_;
  RecallLog recalls_;
  Grants grants_;
  BlockCache blocks_;
  CopyWaits copy_waits_;
  TaskNames tasks_;
  Stats stats_;
  WatchedFiles watched_;
  UnsavedFiles unsaved_;
  Executor io_;       // Writes behind, truncation.
  Executor reads_;    // Reads ahead: they do not wait for a node that hangs in a write.
  Lanes stores_;      // What io_ runs, by node: one that hangs does not hold the writes to others.
  Lanes fetches_;     // What reads_ runs, by file and node.
  Executor service_;  // Recalls, granted locks.
  Executor drops_;    // Notices that wait for the kernel's pages.

  std::mutex table_mutex_;
  std::unordered_map<uint64_t, InodePtr> inodes_;  // Guarded by table_mutex_.
  std::deque<FileId> idle_;  // Guarded by table_mutex_: without kernel lookups, oldest first.
  std::atomic<size_t> names_count_{0};
  std::atomic<uint64_t> inline_cached_bytes_{0};
  // Counts this mount's changes of hints: what directories remember of theirs holds for one value.
  std::atomic<uint64_t> hints_generation_{0};
  // Counts how often the kernel was to forget all names. Raised under epoch_mutex_, which is held
  // until it was told. Lock order: epoch_mutex_, then an inode's mutex.
  std::mutex epoch_mutex_;
  std::atomic<uint64_t> kernel_epoch_{1};
  std::atomic<uint64_t> incarnations_{0};  // Counts nodes that came back empty.
  std::atomic<uint64_t> sessions_{0};      // Counts them: recalls are the session's that sent them.

  mutable std::mutex handles_mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<OpenFile>> files_;  // Guarded by handles_mutex_.
  std::unordered_map<uint64_t, std::shared_ptr<Listing>> directories_;  // The same.
  std::atomic<uint64_t> next_handle_{1};

  mutable std::mutex session_mutex_;
  // Guarded by session_mutex_.
  std::map<NodeId, NodeState> node_states_;
  std::map<NodeId, uint64_t> node_incarnations_;
  std::deque<FileIdRangeReply> id_ranges_;
  bool asking_for_ids_ = false;
  bool session_seen_ = false;
  uint64_t inline_bytes_max_ = kInlineBytesMax;
  std::map<uint64_t, RequestId> lock_waits_;
  std::set<uint64_t> lock_waits_ended_;  // Before their request's id was known.
  uint64_t next_lock_wait_ = 1;

  // Held while what is queued is sent: not taken where the manager's messages are handled.
  std::mutex releases_mutex_;
  std::vector<ReleaseRequest> releases_;  // Guarded by releases_mutex_.

  std::mutex buffer_mutex_;
  std::condition_variable buffer_freed_;
  uint64_t buffered_bytes_ = 0;  // Guarded by buffer_mutex_.
  // Guarded by buffer_mutex_: whose buffer is not empty.
  std::map<FileId, std::weak_ptr<Inode>> buffering_;

  std::mutex appending_mutex_;
  // Guarded by appending_mutex_: whose append_hold waits for more of its call.
  std::map<FileId, std::weak_ptr<Inode>> appending_;

  // What waits for pages to be dropped, by when it does so no longer.
  struct Drop {
    FileId file;
    Time until;
    DropDone done;
  };
  std::mutex pending_drops_mutex_;
  std::list<Drop> pending_drops_;  // Guarded by pending_drops_mutex_; soonest first.

  std::mutex timer_mutex_;
  std::condition_variable timer_wake_;
  bool stopping_ = false;  // Guarded by timer_mutex_.
  std::thread timer_;
  std::thread follower_;
  std::thread finisher_;  // Handles what is watched.
  std::atomic<bool> started_{false};
  Status stop_status_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_IMPL_H_
