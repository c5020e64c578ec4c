// ObjectEngine: background work: local writers, drops, accounting, sealing and scrubbing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/model/session.h"
#include "proto/convert/residence.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {
namespace {

// Delay before an object that changed meanwhile, or whose store failed, is sealed again.
constexpr Duration kSealAgainAfter = Seconds(1);
// Maximum number of damaged or healed objects per heartbeat; the next ones name the rest.
constexpr size_t kObjectsPerHeartbeat = 4096;

// A stream that does not accept messages is given up long before this.
constexpr Duration kMayBeLostWithin = Seconds(60);

std::vector<FileId> TakeSome(std::set<FileId>& files) {
  std::vector<FileId> some;
  while (!files.empty() && some.size() < kObjectsPerHeartbeat)
    some.push_back(files.extract(files.begin()).value());
  return some;
}

}  // namespace

// ---- local writers

// Descriptors to pass out are opened under the object's lock, like all others.

Result<UniqueFd> ObjectEngine::OpenLocal(FileId file) {
  // Reads through a descriptor are not verified, so verify now.
  if (const ObjectRef found = Find(file)) VerifyAll(found, {});
  MOSA_ASSIGN_OR_RETURN(Opened opened, OpenToRead(file));
  if (opened.object == nullptr)
    return NotFoundError(fmt::format("there is no object of file {}", file.value));
  Object& object = *opened.object;
  object.mutex.AssertHeld();
  VerifyRest(object, opened.fd.get());
  const auto corrupt = object.checksums.CorruptIn(BlockIndex{0}, BlockIndex{UINT64_MAX});
  if (corrupt) {
    return DataLossError(
        fmt::format("block {} of the object of file {} is corrupt", corrupt->value, file.value));
  }
  ++descriptors_passed_;
  return std::move(opened.fd);
}

Result<UniqueFd> ObjectEngine::OpenLocalToWrite(FileId file, const Changer& changer) {
  // The passed descriptor itself counts as a writer.
  MOSA_ASSIGN_OR_RETURN(Opened opened, OpenToChange(file, OpenMode::kCreate, changer));
  Object& object = *opened.object;
  object.mutex.AssertHeld();
  // A write through a descriptor would not show whether a damaged block was rewritten.
  if (object.checksums.corrupt_count() > 0) {
    return FailedPreconditionError(fmt::format(
        "cannot pass a descriptor of file {} for writing: {} blocks of its object are damaged",
        file.value, object.checksums.corrupt_count()));
  }
  // If the kernel does not see this descriptor as a writer, it would not see any.
  MOSA_ASSIGN_OR_RETURN(const UniqueFd look, store_->Open(file, OpenMode::kRead));
  MOSA_ASSIGN_OR_RETURN(const bool seen, store_->HasWriters(look.get()));
  if (!seen) {
    return FailedPreconditionError(
        fmt::format("cannot pass a descriptor of file {} for writing: the objects' file system has "
                    "no leases, or fs.leases-enable is 0",
                    file.value));
  }
  if (!object.told) {
    object.told = object.lent ? ChecksumTable::ForUnknownBytes() : object.checksums;
    object.told_bytes = object.size_bytes;
  }
  object.left_untold.reset();
  ForgetChecksums(object);
  object.lent = true;
  {
    const SystemMutexLock lock(account_mutex_);
    lent_.insert(file);
    seal_queue_.Remove(file);
  }
  NoteChange(object, Duration{});
  ++descriptors_passed_;
  return std::move(opened.fd);
}

Status ObjectEngine::LookForWriters(Object& object) {
  if (object.dropped) return OkStatus();
  MOSA_ASSIGN_OR_RETURN(const UniqueFd fd, store_->Open(object.file, OpenMode::kRead));
  return MayHaveWriters(object, fd.get()) ? RefreshSize(object, fd.get()) : OkStatus();
}

Status ObjectEngine::FinishLocalWrites(FileId file) {
  const ObjectRef object = Find(file);
  if (object == nullptr) return OkStatus();
  const SystemMutexLock lock(object->mutex);
  const Status looked = LookForWriters(*object);
  if (!looked.ok()) return looked;
  if (!object->lent)
    NoteTold(*object);
  else if (object->told)  // The mount's kernel has not released it yet, or somebody else has one.
    object->told = ChecksumTable::ForUnknownBytes();
  return looked;
}

// ---- dropping and accounting

bool ObjectEngine::DropOne(FileId file) {
  const ObjectRef object = Find(file);
  if (object == nullptr) return true;
  const SystemMutexLock lock(object->mutex);
  if (object->dropped) return true;
  // An old record must not be found with a new object of the same file.
  Status dropped = Log(*object, LoggedState::kNothing);
  if (dropped.ok()) dropped = store_->Drop(file);
  if (!dropped.ok()) {
    LogError("{}; it will be tried again", MessageOf(dropped));
    return false;
  }
  SetGeneration(*object, 0);
  Remove(*object);
  return true;
}

void ObjectEngine::Drop(std::span<const FileId> files, uint64_t number) {
  for (const FileId file : files) {
    if (DropOne(file)) continue;
    const SystemMutexLock lock(account_mutex_);
    drops_to_repeat_.insert(file);
  }
  const SystemMutexLock lock(account_mutex_);
  if (number != 0) last_drop_order_ = number;
}

void ObjectEngine::RefuseStoresUpTo(FileId file, uint64_t generation) {
  const Time until = clock_.Monotonic() + kCapabilityLifetime + kCapabilityMargin;
  const SystemMutexLock lock(objects_mutex_);
  Refusal& refusal = refusals_[file];
  refusal = {std::max(refusal.generation, generation), until};
  refusal_ends_.emplace_back(until, file);
  has_refusals_ = true;
}

void ObjectEngine::EndRefusals() {
  if (!has_refusals_) return;
  const Time now = clock_.Monotonic();
  const SystemMutexLock lock(objects_mutex_);
  for (; !refusal_ends_.empty() && refusal_ends_.front().first <= now; refusal_ends_.pop_front()) {
    const auto refusal = refusals_.find(refusal_ends_.front().second);
    if (refusal != refusals_.end() && refusal->second.until <= now) refusals_.erase(refusal);
  }
  has_refusals_ = !refusals_.empty();
}

void ObjectEngine::Account() {
  EndRefusals();
  std::set<FileId> lent;
  std::set<FileId> drops;
  {
    const SystemMutexLock lock(account_mutex_);
    lent = lent_;
    drops = drops_to_repeat_;
  }
  for (const FileId file : drops) {
    if (!DropOne(file)) continue;
    const SystemMutexLock lock(account_mutex_);
    drops_to_repeat_.erase(file);
  }
  const auto look = [&](Object& object) {
    object.mutex.AssertHeld();
    const Status looked = LookForWriters(object);
    if (!looked.ok()) LogWarning("file {}: {}", object.file.value, MessageOf(looked));
  };
  std::vector<ObjectRef> busy;
  for (const FileId file : lent) {
    const ObjectRef object = Find(file);
    if (object == nullptr) continue;
    // The lock may be held long: an fallocate of gigabytes must not delay the other objects.
    if (!object->mutex.try_lock()) {
      busy.push_back(object);
      continue;
    }
    const SystemMutexLock lock(object->mutex, std::adopt_lock);
    look(*object);
  }
  TellUntold();
  for (const ObjectRef& object : busy) {
    const SystemMutexLock lock(object->mutex);
    look(*object);
  }
  ++measurements_;
}

std::vector<FileId> ObjectEngine::ListObjects() const {
  const SystemMutexLock lock(objects_mutex_);
  std::vector<FileId> files;
  files.reserve(objects_.size());
  for (const auto& [file, object] : objects_) files.push_back(file);
  return files;
}

BulkUse ObjectEngine::UseOfBulkPlane() const {
  const BulkGauges& gauges = residence_.bulk;
  return {.connections = gauges.connections,
          .connections_max = gauges.connections_max,
          .unproven = gauges.unproven,
          .unproven_max = gauges.unproven_max,
          .threads = gauges.threads,
          .threads_max = gauges.threads_max,
          .buffer_bytes = gauges.threads * kBulkScratchBytes + budget_.used_bytes(),
          .buffer_bytes_max = gauges.threads_max * kBulkScratchBytes + budget_.limit_bytes(),
          .turned_away = gauges.turned_away};
}

void ObjectEngine::ListHeld(std::vector<FileId>& files, std::vector<HeldSize>& sizes) const {
  files = ListObjects();
  sizes.clear();
  const auto stored = store_->List();
  if (!stored.ok()) return;
  auto next = stored->begin();
  for (const FileId file : files) {
    while (next != stored->end() && next->file < file) ++next;
    // The object was dropped, or is being made, meanwhile.
    const bool found = next != stored->end() && next->file == file;
    sizes.push_back(found ? HeldSize{next->size_bytes, next->allocated_bytes, next->modify_time}
                          : HeldSize{kFileBytesMax, kFileBytesMax, {}});
  }
}

NodeHeartbeat ObjectEngine::TakeHeartbeat() {
  NodeHeartbeat heartbeat;
  heartbeat.bulk = UseOfBulkPlane();
  {
    const SystemMutexLock lock(objects_mutex_);
    heartbeat.object_count = objects_.size();
  }
  const SystemMutexLock lock(account_mutex_);
  heartbeat.measurements = measurements_;
  if (drops_to_repeat_.empty()) drops_done_ = last_drop_order_;
  heartbeat.drops_done = drops_done_;
  heartbeat.used_bytes = admission_.used_bytes();
  heartbeat.limit_bytes = admission_.limit_bytes();
  heartbeat.bytes_read_remote = bytes_read_remote_;
  heartbeat.bytes_written_remote = bytes_written_remote_;
  heartbeat.bytes_written_local = bytes_written_local_;
  heartbeat.descriptors_passed = descriptors_passed_;
  heartbeat.unsealed_objects = unsealed_objects_;
  for (const auto& [file, blocks] : corrupt_blocks_of_) heartbeat.corrupt_blocks += blocks;
  heartbeat.corrupt_objects = TakeSome(corrupt_to_report_);
  heartbeat.healed_objects = TakeSome(healed_to_report_);
  heartbeat.untold_objects = TakeSome(untold_to_report_);
  const Time now = clock_.Monotonic();
  std::erase_if(untold_reported_,
                [&](const auto& each) { return now - each.second > kMayBeLostWithin; });
  for (const FileId file : heartbeat.untold_objects) untold_reported_[file] = now;
  return heartbeat;
}

ResidenceSnapshot ObjectEngine::SnapshotOfResidence() const {
  ResidenceSnapshot snapshot{.component = "storage",
                             .started = residence_.started,
                             .taken = SystemClock().Now(),
                             .rows = {},
                             .amounts = {}};
  for (const DurationTable* const table :
       {&residence_.requests, &residence_.parts, &residence_.copies})
    AppendRows(*table, snapshot);
  AppendProcessorUse(ReadProcessorUse(), snapshot);
  const auto add = [&](const char* name, uint64_t value, bool is_total) {
    snapshot.amounts.push_back({name, value, is_total});
  };
  add("bytes_read_remote", bytes_read_remote_, true);
  add("bytes_written_remote", bytes_written_remote_, true);
  add("bytes_written_local", bytes_written_local_, true);
  add("descriptors_passed", descriptors_passed_, true);
  const BulkUse bulk = UseOfBulkPlane();
  add("bulk_connections", bulk.connections, false);
  add("bulk_connections_limit", bulk.connections_max, false);
  add("bulk_unproven_connections", bulk.unproven, false);
  add("bulk_unproven_connections_limit", bulk.unproven_max, false);
  add("bulk_threads", bulk.threads, false);
  add("bulk_threads_limit", bulk.threads_max, false);
  add("bulk_buffer_bytes", bulk.buffer_bytes, false);
  add("bulk_buffer_bytes_limit", bulk.buffer_bytes_max, false);
  add("bulk_connections_turned_away", bulk.turned_away, true);
  {
    const SystemMutexLock lock(objects_mutex_);
    add("objects", objects_.size(), false);
  }
  const SystemMutexLock lock(account_mutex_);
  add("used_bytes", admission_.used_bytes(), false);
  add("limit_bytes", admission_.limit_bytes(), false);
  return snapshot;
}

void ObjectEngine::RepeatReports() {
  const SystemMutexLock lock(account_mutex_);
  for (const auto& [file, blocks] : corrupt_blocks_of_) corrupt_to_report_.insert(file);
  healed_to_report_ = healed_;
  for (const auto& [file, reported] : std::exchange(untold_reported_, {}))
    untold_to_report_.insert(file);
  last_drop_order_ = drops_done_ = 0;
}

uint64_t ObjectEngine::used_bytes() const {
  const SystemMutexLock lock(account_mutex_);
  return admission_.used_bytes();
}

uint64_t ObjectEngine::unsealed_objects() const {
  const SystemMutexLock lock(account_mutex_);
  return unsealed_objects_;
}

// ---- sealing

void ObjectEngine::WaitForSealing(Duration wait) {
  SystemMutexLock lock(account_mutex_);
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(account_mutex_) {
    const auto ready = seal_queue_.next_ready();
    return stopped_ || (ready && *ready <= clock_.Monotonic());
  };
  const auto ready = seal_queue_.next_ready();
  Duration until = wait;
  if (ready) until = std::clamp(*ready - clock_.Monotonic(), Milliseconds(1), wait);
  sealable_.wait_for(lock, until, has_work);
}

void ObjectEngine::StopSealing() {
  const SystemMutexLock lock(account_mutex_);
  stopped_ = true;
  sealable_.notify_all();
}

bool ObjectEngine::SealNext(std::span<std::byte> scratch) {
  std::optional<FileId> file;
  {
    const SystemMutexLock lock(account_mutex_);
    file = seal_queue_.Pop(clock_.Monotonic());
  }
  if (!file) return false;
  const ObjectRef object = Find(*file);
  if (object == nullptr) return true;
  const Status sealed = SealObject(object, scratch);
  if (!sealed.ok())
    LogWarning("cannot seal the object of file {}: {}", file->value, MessageOf(sealed));
  VerifyAll(object, scratch);
  Record(object);
  const SystemMutexLock lock(object->mutex);
  NoteChange(*object, kSealAgainAfter);
  return true;
}

// One pass over the object; its lock is held for one piece at a time. Blocks changed meanwhile stay
// unsealed, and the object is queued again.
Status ObjectEngine::SealObject(const ObjectRef& object, std::span<std::byte> scratch) {
  UniqueFd fd;
  uint64_t epoch = 0;
  bool complete = false;
  {
    const SystemMutexLock lock(object->mutex);
    if (object->dropped || object->lent) return OkStatus();
    MOSA_ASSIGN_OR_RETURN(fd, store_->Open(object->file, OpenMode::kRead));
    epoch = object->forgotten_count;
    complete = object->checksums.complete();
  }
  for (uint64_t offset = 0; !complete;) {
    const SystemMutexLock lock(object->mutex);
    if (stopped_ || object->dropped || object->forgotten_count != epoch) return OkStatus();
    MOSA_RETURN_IF_ERROR(SumPiece(*object, fd.get(), offset, scratch));
    complete = offset >= object->size_bytes;
    if (complete) object->checksums.SetComplete();
  }
  return SumStale(object, fd.get(), epoch, scratch);
}

// Sums the blocks with data in the next piece from `offset` on, and moves `offset` past it.
Status ObjectEngine::SumPiece(Object& object, int fd, uint64_t& offset,
                              std::span<std::byte> scratch) {
  const Result<uint64_t> data = store_->Seek(fd, offset, /*data=*/true);
  if (!data.ok()) {
    if (data.status().code() != StatusCode::kNotFound) return data.status();
    offset = std::max(offset, object.size_bytes);
    return OkStatus();
  }
  const uint64_t begin = BeginOf(BlockOf(*data));
  MOSA_ASSIGN_OR_RETURN(const size_t got, store_->Read(fd, begin, scratch));
  for (uint64_t at = 0; at < got; at += kChecksumBlockBytes) {
    const BlockIndex block = BlockOf(begin + at);
    if (object.checksums.Get(block, object.size_bytes)) continue;
    const uint64_t extent = std::min(ExtentOf(block, object.size_bytes), got - at);
    object.checksums.Set(block, Crc32c(scratch.data() + at, extent));
  }
  offset = begin + std::max<uint64_t>(got, kChecksumBlockBytes);
  return OkStatus();
}

Status ObjectEngine::SumStale(const ObjectRef& object, int fd, uint64_t epoch,
                              std::span<std::byte> scratch) {
  for (BlockIndex from{0};; ++from.value) {
    const SystemMutexLock lock(object->mutex);
    if (stopped_ || object->dropped || object->forgotten_count != epoch) return OkStatus();
    const auto block = object->checksums.NextStale(from);
    if (!block) return OkStatus();
    from = *block;
    const auto bytes = scratch.first(ExtentOf(from, object->size_bytes));
    MOSA_ASSIGN_OR_RETURN(const size_t got, store_->Read(fd, BeginOf(from), bytes));
    if (got == bytes.size()) object->checksums.Set(from, Crc32c(bytes.data(), got));
  }
}

// ---- scrubbing

uint64_t ObjectEngine::ScrubNext(std::span<std::byte> scratch) {
  ObjectRef object;
  {
    const SystemMutexLock lock(objects_mutex_);
    const auto next =
        scrub_offset_ > 0 ? objects_.lower_bound(scrub_file_) : objects_.upper_bound(scrub_file_);
    if (next != objects_.end()) object = next->second;
  }
  if (object == nullptr) {
    scrub_file_ = FileId{};
    scrub_offset_ = 0;
    return 0;
  }
  if (object->file != scrub_file_) scrub_offset_ = 0;
  scrub_file_ = object->file;
  const SystemMutexLock lock(object->mutex);
  const uint64_t compared = ScrubPiece(*object, scrub_offset_, scratch);
  if (scrub_offset_ >= object->size_bytes) scrub_offset_ = 0;
  return std::max<uint64_t>(compared, 1);
}

// Verifies the next piece with data from `offset` on, and moves `offset` past it; to the end if
// there is nothing to verify.
uint64_t ObjectEngine::ScrubPiece(Object& object, uint64_t& offset, std::span<std::byte> scratch) {
  const uint64_t from = std::exchange(offset, object.size_bytes);
  if (object.dropped || !object.checksums.sealed()) return 0;
  const Result<UniqueFd> fd = store_->Open(object.file, OpenMode::kRead);
  if (!fd.ok()) return 0;
  const Result<uint64_t> data = store_->Seek(fd->get(), from, /*data=*/true);
  if (!data.ok()) return 0;
  const uint64_t begin = BeginOf(BlockOf(*data));
  const Result<size_t> got = store_->Read(fd->get(), begin, scratch);
  if (!got.ok()) return 0;
  for (uint64_t at = 0; at < *got; at += kChecksumBlockBytes) {
    const BlockIndex block = BlockOf(begin + at);
    const uint64_t extent = std::min<uint64_t>(kChecksumBlockBytes, *got - at);
    const auto known = object.checksums.Get(block, object.size_bytes);
    if (!known || *known == Crc32c(scratch.data() + at, extent)) continue;
    if (object.checksums.CorruptIn(block, BlockIndex{block.value + 1})) continue;
    NoteCorrupt(object, block);
    LogError("the scrubber found block {} of the object of file {} corrupt", block.value,
             object.file.value);
  }
  offset = begin + std::max<uint64_t>(*got, kChecksumBlockBytes);
  return *got;
}

}  // namespace mosa::node
