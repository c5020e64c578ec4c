// The byte operations of ObjectStore by system calls, shared by all stores of descriptors.
#ifndef MOSA_STORAGE_NODE_STORE_FD_OPERATIONS_H_
#define MOSA_STORAGE_NODE_STORE_FD_OPERATIONS_H_

#include <string>

#include "storage-node/store/object_store.h"

namespace mosa::node {

class FdObjectStore : public ObjectStore {
 public:
  Result<size_t> Read(int fd, uint64_t offset, std::span<std::byte> out) override;
  Status Write(int fd, uint64_t offset, std::span<const std::byte> data) override;
  Status Truncate(int fd, uint64_t size_bytes) override;
  Status Allocate(int fd, int mode, uint64_t offset, uint64_t length) override;
  Result<uint64_t> Seek(int fd, uint64_t offset, bool data) override;
  Result<ObjectStat> Stat(int fd) override;
  Result<bool> HasWriters(int fd) override;
  Result<size_t> Send(int fd, int socket, uint64_t offset, size_t length) override;
};

// Returns the open(2) flags for `mode`, without O_CREAT.
int OpenFlags(OpenMode mode);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_STORE_FD_OPERATIONS_H_
