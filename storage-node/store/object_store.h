// ObjectStore: the objects of one storage node. An object is one sparse file at the offsets of the
// file that it belongs to. Three implementations: a directory on a RAM disk, memory, and a wrapper
// of either that fails on demand (faulty_object_store.h).
//
// An object is reached through descriptors of the operating system, since they are what is passed
// to local clients: Open makes one, the other operations use it. A dropped object goes on existing
// for descriptors still held, and its pages are freed when the last of them is closed.
//
// Safe from any thread. Errors name the object; ResourceExhausted is a full file system.
#ifndef MOSA_STORAGE_NODE_STORE_OBJECT_STORE_H_
#define MOSA_STORAGE_NODE_STORE_OBJECT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"
#include "common/model/ids.h"
#include "storage-node/store/sums_log.h"

namespace mosa::node {

// Whose objects these are.
struct StoreRecord {
  std::string cluster_name;  // Empty until the node first registered.
  std::string node_name;
  uint64_t incarnation = 0;  // Random, made with the store: another number is another set of bytes.
  // The boot of the machine on which the objects were last used; empty: not known.
  std::string boot_id;
  bool ended = false;      // That use ended in order, and all objects are on the disk.
  bool verifying = false;  // After a crash of the machine not all objects were compared yet.
};

// Where a run of the node with its objects is.
enum class RunState : uint8_t {
  kVerifying = 1,  // Objects may still have to be compared with their checksums.
  kVerified,
  kEnded,  // All is on the disk, and nothing changes any more.
};

struct StoredObject {
  FileId file;
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;
  Time modify_time{};  // In this host's clock.
};

struct ObjectStat {
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;  // st_blocks * 512.
  Time modify_time;              // In this host's clock.
};

enum class OpenMode : uint8_t {
  kRead = 1,  // NotFound if absent.
  kWrite,     // Reading and writing; NotFound if absent.
  kCreate,    // As kWrite, but made if absent.
  kAppend,    // As kCreate, for Append.
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  virtual StoreRecord record() const = 0;
  // Binds the store to a cluster, for good. FailedPrecondition if it belongs to another one.
  virtual Status SetCluster(const std::string& cluster_name) = 0;
  // Everything that is kept, ascending by file.
  virtual Result<std::vector<StoredObject>> List() = 0;

  virtual Result<UniqueFd> Open(FileId file, OpenMode mode) = 0;
  // Removes the object's name; absent is fine.
  virtual Status Drop(FileId file) = 0;

  // ---- objects that are put aside: kept, and no objects any more
  // Absent is fine. FailedPrecondition if one of that id is aside already.
  virtual Status SetAside(FileId file) = 0;
  // Makes it an object again. NotFound if absent; FailedPrecondition if there is an object.
  virtual Status RestoreAside(FileId file) = 0;
  // Absent is fine.
  virtual Status DiscardAside(FileId file) = 0;
  // Ascending by file.
  virtual Result<std::vector<StoredObject>> ListAside() = 0;
  // For reading. NotFound if absent.
  virtual Result<UniqueFd> OpenAside(FileId file) = 0;

  // ---- what outlives the process, or the machine
  // Checksums beside the objects; null where there are none.
  virtual SumsLog* sums() { return nullptr; }
  // True if the machine has crashed since the objects were last used: what they hold must be
  // compared with their checksums before it is believed.
  virtual bool is_after_crash() const { return false; }
  // True if objects are on a disk, and so have to be synced.
  virtual bool syncs() const { return false; }
  virtual Status MarkRun(RunState) { return OkStatus(); }

  // ---- descriptors of either
  // Fills `out` from `offset` as far as the object reaches; returns the number of bytes.
  virtual Result<size_t> Read(int fd, uint64_t offset, std::span<std::byte> out) = 0;
  // Writes all of `data`; after an error some prefix of it may have been written.
  virtual Status Write(int fd, uint64_t offset, std::span<const std::byte> data) = 0;
  // Writes `data` at the end, atomically among all writers; returns where it went. All or nothing.
  // The descriptor must be of kAppend and used by no other thread.
  virtual Result<uint64_t> Append(int fd, std::span<const std::byte> data) = 0;
  // Makes the object end at `size_bytes`.
  virtual Status Truncate(int fd, uint64_t size_bytes) = 0;
  // fallocate(2) with `mode`.
  virtual Status Allocate(int fd, int mode, uint64_t offset, uint64_t length) = 0;
  // The next data (or hole) at or after `offset`; NotFound if there is none.
  virtual Result<uint64_t> Seek(int fd, uint64_t offset, bool data) = 0;
  virtual Result<ObjectStat> Stat(int fd) = 0;
  // True if some process has a descriptor or mapping of the object that can write. False where the
  // file system has no leases and so cannot tell. The descriptor must be of kRead.
  virtual Result<bool> HasWriters(int fd) = 0;
  // Sends bytes of the object into `socket` without copying them through this process; waits as the
  // socket does, once. Returns the number of bytes sent: 0 if the object ends or the socket's
  // timeout passed.
  virtual Result<size_t> Send(int fd, int socket, uint64_t offset, size_t length) = 0;
};

struct DirectoryStoreOptions {
  std::string path;
  std::string node_name;
  std::string boot_id = "";  // This machine's: changes with each boot.
};
// Opens or makes the store in directory `path` (made with mode 0700 if absent; its parent must
// exist) and holds it against other processes. FailedPrecondition says in one sentence why not: in
// use, of another node, of a newer format, or a directory with other things in it. DataLoss: its
// record cannot be read.
Result<std::unique_ptr<ObjectStore>> OpenDirectoryStore(const DirectoryStoreOptions& options);

// In memory, gone with the process. One descriptor per object.
std::unique_ptr<ObjectStore> NewMemoryStore(const std::string& node_name);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_STORE_OBJECT_STORE_H_
