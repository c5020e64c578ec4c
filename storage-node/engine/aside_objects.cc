#include "storage-node/engine/aside_objects.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "proto/convert/node.h"
#include "storage-node/core/data_runs.h"

namespace mosa::node {

Status AsideObjects::FindAll(SumsFound& known) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<StoredObject> stored, store_.ListAside());
  for (const StoredObject& found : stored) {
    const SumsRecord* const record = found_.RecordOf(found.file, known.records);
    Aside aside{
        .object = Describe(found), .record = {}, .generation = known.generations[found.file]};
    if (record != nullptr) aside.record = *record;
    records_.CountBytes(0, ObjectRecords::BytesOf(aside.generation));
    Add(std::move(aside));
  }
  if (!stored.empty())
    LogWarning("{} objects are put aside in lost+found: 'mosa adopt' lists them", stored.size());
  return OkStatus();
}

// An object that cannot be examined counts as data from beginning to end.
AsideObject AsideObjects::Describe(const StoredObject& stored) const {
  AsideObject object{.file = stored.file,
                     .size_bytes = stored.size_bytes,
                     .allocated_bytes = stored.allocated_bytes,
                     .modified = stored.modify_time,
                     .data = {}};
  const Result<UniqueFd> fd = store_.OpenAside(stored.file);
  std::vector<ByteRange> ranges;
  for (uint64_t at = 0; fd.ok() && at < stored.size_bytes && ranges.size() < kDataRangesMax;) {
    const Result<uint64_t> data = store_.Seek(fd->get(), at, /*data=*/true);
    if (data.status().code() == StatusCode::kNotFound) break;
    const Result<uint64_t> hole =
        data.ok() ? store_.Seek(fd->get(), *data, /*data=*/false) : data.status();
    const uint64_t begin = data.ok() ? *data : at;
    at = hole.ok() ? *hole : stored.size_bytes;
    if (at > begin) ranges.push_back({begin, at});
  }
  object.data = RunsOf(ranges, kDataRunsMax);
  return object;
}

void AsideObjects::Add(Aside aside) {
  room_.Account(0, aside.object.allocated_bytes);
  records_.CountBytes(0, aside.record_bytes);
  const SystemMutexLock lock(mutex_);
  aside_.insert_or_assign(aside.object.file, std::move(aside));
}

std::optional<AsideObjects::Aside> AsideObjects::Take(FileId file) {
  std::optional<Aside> aside;
  {
    const SystemMutexLock lock(mutex_);
    const auto found = aside_.find(file);
    if (found == aside_.end()) return std::nullopt;
    aside = std::move(found->second);
    aside_.erase(found);
  }
  records_.CountBytes(aside->record_bytes + ObjectRecords::BytesOf(aside->generation), 0);
  room_.Account(aside->object.allocated_bytes, 0);
  return aside;
}

Status AsideObjects::RewriteRecords() {
  const SystemMutexLock lock(mutex_);
  for (auto& [file, aside] : aside_) {
    if (aside.generation > 0)
      MOSA_RETURN_IF_ERROR(records_.log()->Append(EncodeGeneration(file, aside.generation)));
    if (!aside.record) continue;
    const std::string bytes = EncodeSums(file, *aside.record);
    MOSA_RETURN_IF_ERROR(records_.log()->Append(bytes));
    records_.CountBytes(std::exchange(aside.record_bytes, bytes.size()), bytes.size());
  }
  return OkStatus();
}

// Its bytes do not change while it is aside, so its records remain valid.
Status AsideObjects::SetAside(FileId file) {
  const ObjectRef object = table_.Find(file);
  if (object == nullptr) return OkStatus();
  verifier_.VerifyAll(object, {});
  const SystemMutexLock lock(object->mutex);
  if (object->dropped) return OkStatus();
  MOSA_ASSIGN_OR_RETURN(const UniqueFd fd, store_.Open(file, OpenMode::kRead));
  MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, store_.Stat(fd.get()));
  verifier_.VerifyRest(*object, fd.get());
  if (object->checksums.corrupt_count() > 0)
    MOSA_RETURN_IF_ERROR(records_.Log(*object, LoggedState::kDamaged));
  Aside aside{.object = {},
              .record = {},
              .record_bytes = object->record_bytes,
              .generation = object->writer_generation};
  if (object->logged == LoggedState::kDamaged) aside.record = ObjectRecords::Damaged();
  if (object->logged == LoggedState::kSums)
    aside.record = SumsRecord{.damaged = false,
                              .size_bytes = object->recorded_size_bytes,
                              .sums = object->checksums.ListKnown()};
  MOSA_RETURN_IF_ERROR(store_.SetAside(file));
  aside.object = Describe({file, stat.size_bytes, stat.allocated_bytes, stat.modify_time});
  ledger_.Remove(*object);
  Add(std::move(aside));
  return OkStatus();
}

// A thread that creates an object of this file meanwhile finds this one, and waits for its lock.
Status AsideObjects::Restore(FileId file) {
  {
    // The order is repeated until the manager has learned that it was carried out.
    const SystemMutexLock lock(mutex_);
    if (!aside_.contains(file)) return OkStatus();
  }
  const auto object = std::make_shared<Object>(file);
  const SystemMutexLock lock(object->mutex);
  if (!table_.Add(object)) {
    return FailedPreconditionError(fmt::format(
        "file {} already has an object: the one that was put aside stays there", file.value));
  }
  const Status restored = PutBack(*object);
  if (!restored.ok()) ledger_.Remove(*object);
  return restored;
}

// Nothing can fail after the move.
Status AsideObjects::PutBack(Object& object) {
  const FileId file = object.file;
  MOSA_ASSIGN_OR_RETURN(const UniqueFd fd, store_.OpenAside(file));
  MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, store_.Stat(fd.get()));
  MOSA_RETURN_IF_ERROR(store_.RestoreAside(file));
  const std::optional<Aside> aside = Take(file);
  if (aside) records_.SetGeneration(object, aside->generation);
  const bool has_record = aside && aside->record;
  found_.Take(object, {file, stat.size_bytes, stat.allocated_bytes, stat.modify_time},
              has_record ? &*aside->record : nullptr);
  // A concurrent RewriteRecords may have missed the object, which was in neither place.
  const Status logged = object.logged == LoggedState::kSums ? records_.Append(object) : OkStatus();
  if (!logged.ok()) LogWarning("{}", MessageOf(logged));
  return OkStatus();
}

Status AsideObjects::Discard(FileId file) {
  MOSA_RETURN_IF_ERROR(store_.DiscardAside(file));
  const std::optional<Aside> aside = Take(file);
  if (!aside || records_.log() == nullptr) return OkStatus();
  return records_.log()->Append(EncodeForgotten(file) + EncodeGeneration(file, 0));
}

void AsideObjects::Obey(const AsideOrder& order) {
  size_t done = 0;
  for (const FileId file : order.files) {
    Status status;
    switch (order.action) {
      case AsideAction::kSetAside:
        status = SetAside(file);
        break;
      case AsideAction::kRestore:
        status = Restore(file);
        break;
      case AsideAction::kDiscard:
        status = Discard(file);
        break;
    }
    done += status.ok() ? 1 : 0;
    if (!status.ok()) LogError("{}", MessageOf(status));
  }
  constexpr const char* kDone[] = {"", "put aside", "restored", "discarded"};
  LogInfo("{} of {} objects were {}; {} bytes are used now", done, order.files.size(),
          kDone[static_cast<int>(order.action)], room_.used_bytes());
}

std::vector<AsideObject> AsideObjects::List() const {
  const SystemMutexLock lock(mutex_);
  std::vector<AsideObject> objects;
  for (const auto& [file, aside] : aside_) {
    if (objects.size() == kAsidePerNodeMax) break;
    objects.push_back(aside.object);
  }
  return objects;
}

}  // namespace mosa::node
