// ObjectStore: the objects of one storage node. An object is one sparse file, with the same offsets
// as the file that it belongs to. Implementations: a directory on a RAM disk, memory, and a wrapper
// that fails on demand (faulty_object_store.h).
//
// Objects are accessed through operating system descriptors, since those are passed to local
// clients: Open returns one, the other operations use it. A dropped object stays readable through
// descriptors still held. Its pages are freed when the last one is closed.
//
// Thread-safe. Errors name the object. ResourceExhausted: the file system is full.
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

// The identity and last state of a store.
struct StoreRecord {
  std::string cluster_name;  // Empty until the node first registered.
  std::string node_name;
  uint64_t incarnation = 0;  // Random, made with the store: another number means other bytes.
  // The machine's boot during which the objects were last used; empty: unknown.
  std::string boot_id;
  bool ended = false;      // That use ended cleanly, and all objects are on disk.
  bool verifying = false;  // After a crash of the machine, not all objects have been verified yet.
};

// The phase of a node's run.
enum class RunState : uint8_t {
  kVerifying = 1,  // Objects may still have to be verified against their checksums.
  kVerified,
  kEnded,  // Everything is on disk, and nothing changes any more.
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
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  virtual StoreRecord record() const = 0;
  // Binds the store to a cluster permanently. FailedPrecondition if it belongs to another one.
  virtual Status SetCluster(const std::string& cluster_name) = 0;
  // Returns all objects, ascending by file.
  virtual Result<std::vector<StoredObject>> List() = 0;

  virtual Result<UniqueFd> Open(FileId file, OpenMode mode) = 0;
  // Removes the object. OK if absent.
  virtual Status Drop(FileId file) = 0;

  // ---- objects put aside: kept, but no longer objects of the node
  // OK if absent. FailedPrecondition if an object of that id is aside already.
  virtual Status SetAside(FileId file) = 0;
  // Makes it an object again. NotFound if absent; FailedPrecondition if an object of that id
  // exists.
  virtual Status RestoreAside(FileId file) = 0;
  // OK if absent.
  virtual Status DiscardAside(FileId file) = 0;
  // Returns everything aside, ascending by file.
  virtual Result<std::vector<StoredObject>> ListAside() = 0;
  // Opens for reading. NotFound if absent.
  virtual Result<UniqueFd> OpenAside(FileId file) = 0;

  // ---- state that survives the process, or the machine
  // The checksums stored beside the objects; null if the store has none.
  virtual SumsLog* sums() { return nullptr; }
  // True if the machine has crashed since the objects were last used. Objects must then be verified
  // against their checksums before they are trusted.
  virtual bool is_after_crash() const { return false; }
  // True if objects are on a disk and so must be synced.
  virtual bool syncs() const { return false; }
  virtual Status MarkRun(RunState) { return OkStatus(); }

  // ---- operations on descriptors, of objects or of what is aside
  // Fills `out` from `offset` up to the object's end. Returns the number of bytes.
  virtual Result<size_t> Read(int fd, uint64_t offset, std::span<std::byte> out) = 0;
  // Writes all of `data`. After an error some prefix may have been written.
  virtual Status Write(int fd, uint64_t offset, std::span<const std::byte> data) = 0;
  // Sets the object's size.
  virtual Status Truncate(int fd, uint64_t size_bytes) = 0;
  // fallocate(2) with `mode`.
  virtual Status Allocate(int fd, int mode, uint64_t offset, uint64_t length) = 0;
  // Returns the next data (or hole) at or after `offset`; NotFound if there is none.
  virtual Result<uint64_t> Seek(int fd, uint64_t offset, bool data) = 0;
  virtual Result<ObjectStat> Stat(int fd) = 0;
  // Returns true if a process has a writable descriptor or mapping of the object. Returns false
  // where the file system has no leases, since it cannot tell. Precondition: the descriptor was
  // opened with kRead.
  virtual Result<bool> HasWriters(int fd) = 0;
  // Sends bytes of the object to `socket` without copying them through this process. Blocks once,
  // up to the socket's timeout. Returns the number of bytes sent: 0 at the object's end or after
  // the timeout.
  virtual Result<size_t> Send(int fd, int socket, uint64_t offset, size_t length) = 0;
};

struct DirectoryStoreOptions {
  std::string path;
  std::string node_name;
  std::string boot_id = "";  // Identifies this boot of the machine.
};
// Opens or makes the store in directory `path` (made with mode 0700 if absent; its parent must
// exist) and locks it against other processes. FailedPrecondition states why it cannot: the store
// is in use, of another node or of a newer format, or the directory has other contents. DataLoss:
// its record is unreadable.
Result<std::unique_ptr<ObjectStore>> OpenDirectoryStore(const DirectoryStoreOptions& options);

// In memory, gone with the process. One descriptor per object.
std::unique_ptr<ObjectStore> NewMemoryStore(const std::string& node_name);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_STORE_OBJECT_STORE_H_
