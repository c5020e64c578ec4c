#include "storage-node/engine/object_records.h"

#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"

namespace mosa::node {
namespace {

// Obsolete records may take this much more space than valid ones.
constexpr uint64_t kGarbageBytesMin = 8 << 20;

}  // namespace

Status ObjectRecords::Log(Object& object, LoggedState state) {
  MOSA_CHECK(state != LoggedState::kSums);
  if (log() == nullptr || object.logged == state) return OkStatus();
  MOSA_RETURN_IF_ERROR(log()->Append(state == LoggedState::kDamaged
                                         ? EncodeSums(object.file, Damaged())
                                         : EncodeForgotten(object.file)));
  object.logged = state;
  valid_bytes_ -= std::exchange(object.record_bytes, 0);
  return OkStatus();
}

void ObjectRecords::TryLog(Object& object, LoggedState state) {
  const Status logged = Log(object, state);
  if (!logged.ok()) LogWarning("{}", MessageOf(logged));
}

Status ObjectRecords::Forget(Object& object) {
  return Log(object,
             object.checksums.corrupt_count() > 0 ? LoggedState::kDamaged : LoggedState::kNothing);
}

void ObjectRecords::SetGeneration(Object& object, uint64_t generation) {
  const uint64_t before = std::exchange(object.writer_generation, generation);
  if (before == generation || log() == nullptr) return;
  CountBytes(BytesOf(before), BytesOf(generation));
  const Status logged = log()->Append(EncodeGeneration(object.file, generation));
  if (!logged.ok()) LogWarning("{}", MessageOf(logged));
  has_unsynced_ = true;
}

bool ObjectRecords::MayAppend(const Object& object) const {
  return object.logged != LoggedState::kSums && !object.unrecordable && !object.dropped &&
         !object.lent && object.checksums.sealed() && object.checksums.corrupt_count() == 0 &&
         log() != nullptr && !log()->given_up();
}

Status ObjectRecords::Append(Object& object) {
  if (object.logged != LoggedState::kSums) object.recorded_size_bytes = object.size_bytes;
  const SumsRecord record{.damaged = false,
                          .size_bytes = object.recorded_size_bytes,
                          .sums = object.checksums.ListKnown()};
  if (record.sums.size() > kSumsPerRecordMax) {
    object.unrecordable = true;
    return OkStatus();
  }
  const std::string bytes = EncodeSums(object.file, record);
  MOSA_RETURN_IF_ERROR(log()->Append(bytes));
  CountBytes(std::exchange(object.record_bytes, bytes.size()), bytes.size());
  object.logged = LoggedState::kSums;
  has_unsynced_ = true;
  return OkStatus();
}

void ObjectRecords::Remove(Object& object) {
  CountBytes(std::exchange(object.record_bytes, 0), 0);
  object.logged = LoggedState::kNothing;
  if (std::exchange(object.unverified, false)) --unverified_count;
}

bool ObjectRecords::HasGarbage() const {
  return log()->bytes() > 2 * valid_bytes_ + kGarbageBytesMin;
}

void ObjectRecords::Sync() {
  if (!store_.syncs() || !has_unsynced_.exchange(false)) return;
  const Status synced = log()->Sync();
  if (!synced.ok()) LogWarning("{}", MessageOf(synced));
}

}  // namespace mosa::node
