// The part of ObjectEngine that keeps objects which the manager may have forgotten: they are moved
// out of everybody's reach, stay charged to the node, and wait for people to decide.
#include <fmt/format.h>

#include <utility>

#include "common/base/log.h"
#include "proto/convert/node.h"
#include "storage-node/core/data_runs.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {

Status ObjectEngine::FindAside() {
  MOSA_ASSIGN_OR_RETURN(const std::vector<StoredObject> stored, store_->ListAside());
  for (const StoredObject& found : stored) {
    AccountAside(0, found.allocated_bytes);
    AsideObject object = DescribeAside(found);
    const std::lock_guard lock(aside_mutex_);
    aside_.insert_or_assign(found.file, std::move(object));
  }
  if (!stored.empty())
    LogWarning("{} objects are put aside in lost+found: 'mosa adopt' lists them", stored.size());
  return OkStatus();
}

// What cannot be looked at is taken for data from beginning to end.
AsideObject ObjectEngine::DescribeAside(const StoredObject& stored) const {
  AsideObject object{.file = stored.file,
                     .size_bytes = stored.size_bytes,
                     .allocated_bytes = stored.allocated_bytes,
                     .modified = stored.modify_time,
                     .data = {}};
  const Result<UniqueFd> fd = store_->OpenAside(stored.file);
  std::vector<ByteRange> ranges;
  for (uint64_t at = 0; fd.ok() && at < stored.size_bytes && ranges.size() < kDataRangesMax;) {
    const Result<uint64_t> data = store_->Seek(fd->get(), at, /*data=*/true);
    if (data.status().code() == StatusCode::kNotFound) break;
    const Result<uint64_t> hole =
        data.ok() ? store_->Seek(fd->get(), *data, /*data=*/false) : data.status();
    const uint64_t begin = data.ok() ? *data : at;
    at = hole.ok() ? *hole : stored.size_bytes;
    if (at > begin) ranges.push_back({begin, at});
  }
  object.data = RunsOf(ranges, kDataRunsMax);
  return object;
}

void ObjectEngine::AccountAside(uint64_t before_bytes, uint64_t after_bytes) {
  const std::lock_guard lock(account_mutex_);
  admission_.Account(before_bytes, after_bytes);
}

Status ObjectEngine::SetAside(FileId file) {
  const ObjectRef object = Find(file);
  if (object == nullptr) return OkStatus();
  const std::lock_guard lock(object->mutex);
  if (object->dropped) return OkStatus();
  MOSA_ASSIGN_OR_RETURN(const UniqueFd fd, store_->Open(file, OpenMode::kRead));
  MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, store_->Stat(fd.get()));
  MOSA_RETURN_IF_ERROR(BeginChange(*object, fd.get(), Changer::OfOrder()));
  MOSA_RETURN_IF_ERROR(store_->SetAside(file));
  Remove(*object);
  AccountAside(0, stat.allocated_bytes);
  AsideObject aside =
      DescribeAside({file, stat.size_bytes, stat.allocated_bytes, stat.modify_time});
  const std::lock_guard aside_lock(aside_mutex_);
  aside_.insert_or_assign(file, std::move(aside));
  return OkStatus();
}

Status ObjectEngine::RestoreAside(FileId file) {
  {
    // The order is repeated until the manager has heard that it was carried out.
    const std::lock_guard lock(aside_mutex_);
    if (!aside_.contains(file)) return OkStatus();
  }
  // Whoever makes an object of that file now waits, or finds this one.
  const ObjectRef present = Find(file);
  if (present != nullptr)
    return FailedPreconditionError(
        fmt::format("there is an object of file {}: what was put aside stays there", file.value));
  MOSA_RETURN_IF_ERROR(store_->RestoreAside(file));
  MOSA_ASSIGN_OR_RETURN(const UniqueFd fd, store_->Open(file, OpenMode::kRead));
  MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, store_->Stat(fd.get()));
  uint64_t before = 0;
  {
    const std::lock_guard lock(aside_mutex_);
    const auto found = aside_.find(file);
    if (found != aside_.end()) before = found->second.allocated_bytes;
    if (found != aside_.end()) aside_.erase(found);
  }
  AccountAside(before, 0);
  AddFound({file, stat.size_bytes, stat.allocated_bytes, stat.modify_time}, nullptr,
           /*is_suspect=*/false);
  return OkStatus();
}

Status ObjectEngine::DiscardAside(FileId file) {
  MOSA_RETURN_IF_ERROR(store_->DiscardAside(file));
  uint64_t before = 0;
  {
    const std::lock_guard lock(aside_mutex_);
    const auto found = aside_.find(file);
    if (found == aside_.end()) return OkStatus();
    before = found->second.allocated_bytes;
    aside_.erase(found);
  }
  AccountAside(before, 0);
  return OkStatus();
}

void ObjectEngine::Obey(const AsideOrder& order) {
  size_t done = 0;
  for (const FileId file : order.files) {
    Status status;
    switch (order.action) {
      case AsideAction::kSetAside:
        status = SetAside(file);
        break;
      case AsideAction::kRestore:
        status = RestoreAside(file);
        break;
      case AsideAction::kDiscard:
        status = DiscardAside(file);
        break;
    }
    done += status.ok() ? 1 : 0;
    if (!status.ok()) LogError("{}", MessageOf(status));
  }
  constexpr const char* kDone[] = {"", "put aside", "restored", "discarded"};
  LogInfo("{} of {} objects were {}; {} bytes are used now", done, order.files.size(),
          kDone[static_cast<int>(order.action)], used_bytes());
}

std::vector<AsideObject> ObjectEngine::ListAside() const {
  const std::lock_guard lock(aside_mutex_);
  std::vector<AsideObject> objects;
  for (const auto& [file, object] : aside_) {
    if (objects.size() == kAsidePerNodeMax) break;
    objects.push_back(object);
  }
  return objects;
}

}  // namespace mosa::node
