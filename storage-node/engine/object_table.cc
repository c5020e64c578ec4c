#include "storage-node/engine/object_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "common/model/session.h"

namespace mosa::node {

ObjectRef ObjectTable::Find(FileId file) const {
  const SystemMutexLock lock(mutex_);
  const auto found = objects_.find(file);
  return found == objects_.end() ? nullptr : found->second;
}

ObjectRef ObjectTable::FindOrAdd(FileId file, const Changer* changer) {
  const SystemMutexLock lock(mutex_);
  const auto found = objects_.find(file);
  if (found != objects_.end()) return found->second;
  if (changer != nullptr && IsRefused(file, *changer)) return nullptr;
  return objects_.emplace(file, std::make_shared<Object>(file)).first->second;
}

bool ObjectTable::Add(const ObjectRef& object) {
  const SystemMutexLock lock(mutex_);
  return objects_.emplace(object->file, object).second;
}

void ObjectTable::Erase(FileId file) {
  const SystemMutexLock lock(mutex_);
  objects_.erase(file);
}

ObjectRef ObjectTable::Next(FileId file, bool from_it) const {
  const SystemMutexLock lock(mutex_);
  const auto next = from_it ? objects_.lower_bound(file) : objects_.upper_bound(file);
  return next == objects_.end() ? nullptr : next->second;
}

std::vector<FileId> ObjectTable::List() const {
  const SystemMutexLock lock(mutex_);
  std::vector<FileId> files;
  files.reserve(objects_.size());
  for (const auto& [file, object] : objects_) files.push_back(file);
  return files;
}

size_t ObjectTable::size() const {
  const SystemMutexLock lock(mutex_);
  return objects_.size();
}

Status ObjectTable::Admits(const Object& object, const Changer& changer) const {
  if (changer.generation > object.writer_generation || object.writer_generation == 0)
    return CheckRefusals(object.file, changer);
  if (changer.generation == object.writer_generation) return OkStatus();
  return AbortedError(fmt::format(
      "this node stores file {} by layout generation {}, not by {}: open the file again",
      object.file.value, object.writer_generation, changer.generation));
}

Status ObjectTable::CheckChanger(FileId file, const Changer& changer) const {
  const ObjectRef object = Find(file);
  if (object == nullptr) return CheckRefusals(file, changer);
  const SystemMutexLock lock(object->mutex);
  return Admits(*object, changer);
}

Status ObjectTable::CheckRefusals(FileId file, const Changer& changer) const {
  if (!has_refusals_ || changer.is_order) return OkStatus();
  const SystemMutexLock lock(mutex_);
  if (!IsRefused(file, changer)) return OkStatus();
  return AbortedError(fmt::format(
      "this node has dropped file {} at layout generation {}, and takes nothing by {}: open the "
      "file again",
      file.value, refusals_.at(file).generation, changer.generation));
}

bool ObjectTable::IsRefused(FileId file, const Changer& changer) const {
  const auto refusal = refusals_.find(file);
  return !changer.is_order && refusal != refusals_.end() &&
         changer.generation <= refusal->second.generation;
}

void ObjectTable::RefuseStoresUpTo(FileId file, uint64_t generation) {
  const Time until = clock_.Monotonic() + kCapabilityLifetime + kCapabilityMargin;
  const SystemMutexLock lock(mutex_);
  Refusal& refusal = refusals_[file];
  refusal = {std::max(refusal.generation, generation), until};
  refusal_ends_.emplace_back(until, file);
  has_refusals_ = true;
}

void ObjectTable::EndRefusals() {
  if (!has_refusals_) return;
  const Time now = clock_.Monotonic();
  const SystemMutexLock lock(mutex_);
  for (; !refusal_ends_.empty() && refusal_ends_.front().first <= now; refusal_ends_.pop_front()) {
    const auto refusal = refusals_.find(refusal_ends_.front().second);
    if (refusal != refusals_.end() && refusal->second.until <= now) refusals_.erase(refusal);
  }
  has_refusals_ = !refusals_.empty();
}

}  // namespace mosa::node
