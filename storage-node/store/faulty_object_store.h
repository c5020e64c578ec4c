// FaultyObjectStore: a wrapper that fails on demand, for tests of code that uses a store.
//
// FailAfter(N): the next N operations succeed, the one after them returns `failure` and does
// nothing, and later ones succeed again. FailFromNowOn(): none succeeds any more. Thread-safe.
#ifndef MOSA_STORAGE_NODE_STORE_FAULTY_OBJECT_STORE_H_
#define MOSA_STORAGE_NODE_STORE_FAULTY_OBJECT_STORE_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "storage-node/store/object_store.h"

namespace mosa::node {

class FaultyObjectStore : public ObjectStore {
 public:
  FaultyObjectStore(std::shared_ptr<ObjectStore> inner, Status failure)
      : inner_(std::move(inner)), failure_(std::move(failure)) {}

  void FailAfter(int64_t operations) { left_ = operations; }
  void FailFromNowOn() { fails_ = true; }
  // True if the requested failure has happened.
  bool has_failed() const { return left_ < 0; }

  StoreRecord record() const override { return inner_->record(); }
  Status SetCluster(const std::string& cluster_name) override {
    return Fails() ? failure_ : inner_->SetCluster(cluster_name);
  }
  Result<std::vector<StoredObject>> List() override {
    if (Fails()) return failure_;
    return inner_->List();
  }
  Result<UniqueFd> Open(FileId file, OpenMode mode) override {
    if (Fails()) return failure_;
    return inner_->Open(file, mode);
  }
  Status Drop(FileId file) override { return Fails() ? failure_ : inner_->Drop(file); }
  Status SetAside(FileId file) override { return Fails() ? failure_ : inner_->SetAside(file); }
  Status RestoreAside(FileId file) override {
    return Fails() ? failure_ : inner_->RestoreAside(file);
  }
  Status DiscardAside(FileId file) override {
    return Fails() ? failure_ : inner_->DiscardAside(file);
  }
  Result<std::vector<StoredObject>> ListAside() override {
    if (Fails()) return failure_;
    return inner_->ListAside();
  }
  Result<UniqueFd> OpenAside(FileId file) override {
    if (Fails()) return failure_;
    return inner_->OpenAside(file);
  }
  SumsLog* sums() override { return inner_->sums(); }
  bool is_after_crash() const override { return inner_->is_after_crash(); }
  bool syncs() const override { return inner_->syncs(); }
  Status MarkRun(RunState state) override { return Fails() ? failure_ : inner_->MarkRun(state); }
  Result<bool> HasWriters(int fd) override {
    if (Fails()) return failure_;
    return inner_->HasWriters(fd);
  }
  Result<size_t> Read(int fd, uint64_t offset, std::span<std::byte> out) override {
    if (Fails()) return failure_;
    return inner_->Read(fd, offset, out);
  }
  Status Write(int fd, uint64_t offset, std::span<const std::byte> data) override {
    return Fails() ? failure_ : inner_->Write(fd, offset, data);
  }
  Status Truncate(int fd, uint64_t size_bytes) override {
    return Fails() ? failure_ : inner_->Truncate(fd, size_bytes);
  }
  Status Allocate(int fd, int mode, uint64_t offset, uint64_t length) override {
    return Fails() ? failure_ : inner_->Allocate(fd, mode, offset, length);
  }
  Result<uint64_t> Seek(int fd, uint64_t offset, bool data) override {
    if (Fails()) return failure_;
    return inner_->Seek(fd, offset, data);
  }
  Result<ObjectStat> Stat(int fd) override {
    if (Fails()) return failure_;
    return inner_->Stat(fd);
  }
  Result<size_t> Send(int fd, int socket, uint64_t offset, size_t length) override {
    if (Fails()) return failure_;
    return inner_->Send(fd, socket, offset, length);
  }

 private:
  bool Fails() { return fails_ || (left_ >= 0 && left_-- == 0); }

  const std::shared_ptr<ObjectStore> inner_;
  const Status failure_;
  std::atomic<int64_t> left_{INT64_MAX};
  std::atomic<bool> fails_{false};
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_STORE_FAULTY_OBJECT_STORE_H_
