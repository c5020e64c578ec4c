// ObjectEngine: objects whose files the manager may have forgotten. They are moved out of reach,
// still count for the node's limit, and wait for an operator's decision.
#include <fmt/format.h>

#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "proto/convert/node.h"
#include "storage-node/core/data_runs.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {

Status ObjectEngine::FindAside(SumsFound& known) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<StoredObject> stored, store_->ListAside());
  for (const StoredObject& found : stored) {
    const SumsRecord* const record = RecordOf(found.file, known.records);
    Aside aside{
        .object = DescribeAside(found), .record = {}, .generation = known.generations[found.file]};
    if (record != nullptr) aside.record = *record;
    record_bytes_ += aside.generation > 0 ? kGenerationRecordBytes : 0;
    AddAside(std::move(aside));
  }
  if (!stored.empty())
    LogWarning("{} objects are put aside in lost+found: 'mosa adopt' lists them", stored.size());
  return OkStatus();
}

// An object that cannot be examined counts as data from beginning to end.
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

void ObjectEngine::AddAside(Aside aside) {
  {
    const SystemMutexLock lock(account_mutex_);
    admission_.Account(0, aside.object.allocated_bytes);
  }
  record_bytes_ += aside.record_bytes;
  const SystemMutexLock lock(aside_mutex_);
  aside_.insert_or_assign(aside.object.file, std::move(aside));
}

std::optional<ObjectEngine::Aside> ObjectEngine::RemoveAside(FileId file) {
  std::optional<Aside> aside;
  {
    const SystemMutexLock lock(aside_mutex_);
    const auto found = aside_.find(file);
    if (found == aside_.end()) return std::nullopt;
    aside = std::move(found->second);
    aside_.erase(found);
  }
  record_bytes_ -= aside->record_bytes + (aside->generation > 0 ? kGenerationRecordBytes : 0);
  const SystemMutexLock lock(account_mutex_);
  admission_.Account(aside->object.allocated_bytes, 0);
  return aside;
}

Status ObjectEngine::RewriteAsideRecords() {
  const SystemMutexLock lock(aside_mutex_);
  for (auto& [file, aside] : aside_) {
    if (aside.generation > 0)
      MOSA_RETURN_IF_ERROR(store_->sums()->Append(EncodeGeneration(file, aside.generation)));
    if (!aside.record) continue;
    const std::string bytes = EncodeSums(file, *aside.record);
    MOSA_RETURN_IF_ERROR(store_->sums()->Append(bytes));
    record_bytes_ -= std::exchange(aside.record_bytes, bytes.size());
    record_bytes_ += aside.record_bytes;
  }
  return OkStatus();
}

// Its bytes do not change while it is aside, so its records remain valid.
Status ObjectEngine::SetAside(FileId file) {
  const ObjectRef object = Find(file);
  if (object == nullptr) return OkStatus();
  VerifyAll(object, {});
  const SystemMutexLock lock(object->mutex);
  if (object->dropped) return OkStatus();
  MOSA_ASSIGN_OR_RETURN(const UniqueFd fd, store_->Open(file, OpenMode::kRead));
  MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, store_->Stat(fd.get()));
  VerifyRest(*object, fd.get());
  if (object->checksums.corrupt_count() > 0)
    MOSA_RETURN_IF_ERROR(Log(*object, LoggedState::kDamaged));
  Aside aside{.object = {},
              .record = {},
              .record_bytes = object->record_bytes,
              .generation = object->writer_generation};
  if (object->logged == LoggedState::kDamaged)
    aside.record = SumsRecord{.damaged = true, .size_bytes = 0, .sums = {}};
  if (object->logged == LoggedState::kSums)
    aside.record = SumsRecord{.damaged = false,
                              .size_bytes = object->recorded_size_bytes,
                              .sums = object->checksums.ListKnown()};
  MOSA_RETURN_IF_ERROR(store_->SetAside(file));
  aside.object = DescribeAside({file, stat.size_bytes, stat.allocated_bytes, stat.modify_time});
  Remove(*object);
  AddAside(std::move(aside));
  return OkStatus();
}

// A thread that creates an object of this file meanwhile finds this one, and waits for its lock.
Status ObjectEngine::RestoreAside(FileId file) {
  {
    // The order is repeated until the manager has learned that it was carried out.
    const SystemMutexLock lock(aside_mutex_);
    if (!aside_.contains(file)) return OkStatus();
  }
  const auto object = std::make_shared<Object>(file);
  const SystemMutexLock lock(object->mutex);
  {
    const SystemMutexLock objects_lock(objects_mutex_);
    if (!objects_.emplace(file, object).second)
      return FailedPreconditionError(fmt::format(
          "file {} already has an object: the one that was put aside stays there", file.value));
  }
  const Status restored = TakeFromAside(*object);
  if (!restored.ok()) Remove(*object);
  return restored;
}

// Nothing can fail after the move.
Status ObjectEngine::TakeFromAside(Object& object) {
  const FileId file = object.file;
  MOSA_ASSIGN_OR_RETURN(const UniqueFd fd, store_->OpenAside(file));
  MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, store_->Stat(fd.get()));
  MOSA_RETURN_IF_ERROR(store_->RestoreAside(file));
  const std::optional<Aside> aside = RemoveAside(file);
  if (aside) SetGeneration(object, aside->generation);
  const bool has_record = aside && aside->record;
  TakeFound(object, {file, stat.size_bytes, stat.allocated_bytes, stat.modify_time},
            has_record ? &*aside->record : nullptr);
  // A concurrent RewriteRecords may have missed the object, which was in neither place.
  const Status logged = object.logged == LoggedState::kSums ? AppendRecord(object) : OkStatus();
  if (!logged.ok()) LogWarning("{}", MessageOf(logged));
  return OkStatus();
}

Status ObjectEngine::DiscardAside(FileId file) {
  MOSA_RETURN_IF_ERROR(store_->DiscardAside(file));
  const std::optional<Aside> aside = RemoveAside(file);
  if (!aside || store_->sums() == nullptr) return OkStatus();
  return store_->sums()->Append(EncodeForgotten(file) + EncodeGeneration(file, 0));
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
  const SystemMutexLock lock(aside_mutex_);
  std::vector<AsideObject> objects;
  for (const auto& [file, aside] : aside_) {
    if (objects.size() == kAsidePerNodeMax) break;
    objects.push_back(aside.object);
  }
  return objects;
}

}  // namespace mosa::node
