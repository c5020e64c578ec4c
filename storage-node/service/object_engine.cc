#include "storage-node/service/object_engine.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/model/checksum_blocks.h"

namespace mosa::node {
namespace {

constexpr size_t kBudgetBytes = 32 << 20;
// One request of maximum size.
constexpr size_t kBudgetShareBytes = 8 << 20;
// A recently written object is likely to be written again, so sealing waits this long.
constexpr Duration kRestAfterWrite = Milliseconds(200);

Status AbsentError(FileId file) {
  return NotFoundError(fmt::format("there is no object of file {}", file.value));
}

Status DroppedError(FileId file) {
  return NotFoundError(
      fmt::format("the object of file {} was dropped while it was being written", file.value));
}

Status CorruptError(FileId file, BlockIndex block) {
  return DataLossError(fmt::format(
      "block {} of the object of file {} is corrupt: checksum mismatch (offset {}, {} bytes)",
      block.value, file.value, BeginOf(block), kChecksumBlockBytes));
}

// Adds the file to a message of the store, which does not know it.
Status Named(const Status& status, FileId file) {
  if (status.ok()) return status;
  return Status(status.code(), fmt::format("file {}: {}", file.value, MessageOf(status)));
}

}  // namespace

Result<std::unique_ptr<ObjectEngine>> ObjectEngine::Open(std::unique_ptr<ObjectStore> store,
                                                         uint64_t limit_bytes, const Clock& clock) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<StoredObject> stored, store->List());
  std::unique_ptr<ObjectEngine> engine(new ObjectEngine(std::move(store), limit_bytes, clock));
  SumsLog* const sums = engine->store_->sums();
  SumsFound known = sums == nullptr ? SumsFound() : sums->TakeFound();
  if (sums != nullptr && sums->found_damage())
    LogWarning("cannot read some of the checksums beside the objects");
  // Without recorded checksums, damage cannot be distinguished from correct bytes.
  engine->is_suspect_ = engine->store_->is_after_crash() && sums != nullptr && sums->found_any();
  for (const StoredObject& found : stored)
    engine->AddFound(found, engine->RecordOf(found.file, known.records),
                     known.generations[found.file]);
  MOSA_RETURN_IF_ERROR(engine->FindAside(known));
  MOSA_RETURN_IF_ERROR(engine->RewriteRecords());
  const bool verifies = engine->unverified_objects_ > 0;
  MOSA_RETURN_IF_ERROR(
      engine->store_->MarkRun(verifies ? RunState::kVerifying : RunState::kVerified));
  return engine;
}

ObjectEngine::ObjectEngine(std::unique_ptr<ObjectStore> store, uint64_t limit_bytes,
                           const Clock& clock)
    : store_(std::move(store)),
      clock_(clock),
      budget_(kBudgetBytes, kBudgetShareBytes),
      last_change_(static_cast<uint64_t>(SystemClock().Now().ns)),
      admission_(limit_bytes) {}

ObjectEngine::~ObjectEngine() = default;

// ---- finding and opening

ObjectEngine::ObjectRef ObjectEngine::Find(FileId file) const {
  const SystemMutexLock lock(objects_mutex_);
  const auto found = objects_.find(file);
  return found == objects_.end() ? nullptr : found->second;
}

// Returns null if there is none and the changer must not make it.
ObjectEngine::ObjectRef ObjectEngine::FindOrAdd(FileId file, const Changer* changer) {
  const SystemMutexLock lock(objects_mutex_);
  const auto found = objects_.find(file);
  if (found != objects_.end()) return found->second;
  if (changer != nullptr && IsRefused(file, *changer)) return nullptr;
  return objects_.emplace(file, std::make_shared<Object>(file)).first->second;
}

Result<ObjectEngine::Opened> ObjectEngine::OpenObject(FileId file, OpenMode mode,
                                                      const Changer* changer) {
  const bool make = mode == OpenMode::kCreate;
  while (true) {
    Opened opened;
    opened.object = make ? FindOrAdd(file, changer) : Find(file);
    if (opened.object == nullptr && make) {
      MOSA_RETURN_IF_ERROR(CheckRefusals(file, *changer));
      continue;
    }
    if (opened.object == nullptr) return opened;
    if (changer != nullptr) VerifyAll(opened.object, {});
    opened.lock = std::unique_lock(opened.object->mutex);
    opened.object->mutex.AssertHeld();
    if (opened.object->dropped) continue;  // It is being dropped, and has not left the table yet.
    Result<UniqueFd> fd = store_->Open(file, mode);
    if (fd.ok()) {
      if (changer != nullptr)
        MOSA_RETURN_IF_ERROR(BeginChange(*opened.object, fd->get(), *changer));
      opened.fd = *std::move(fd);
      return opened;
    }
    // An object that could not be created leaves no entry.
    if (opened.object->allocated_bytes == 0 && opened.object->size_bytes == 0 &&
        store_->Open(file, OpenMode::kRead).status().code() == StatusCode::kNotFound) {
      Remove(*opened.object);
    }
    return std::move(fd).status();
  }
}

// ---- invariants after a change

bool ObjectEngine::MayHaveWriters(Object& object, int fd) {
  if (!object.lent) return false;
  const Result<bool> writers = store_->HasWriters(fd);
  // It was lent before this process began. Its mount may have ended, so nobody else would report
  // it.
  if (writers.ok() && *writers && !object.told) object.told = ChecksumTable::ForUnknownBytes();
  if (!writers.ok() || *writers || !RefreshSize(object, fd).ok()) return true;
  object.lent = false;
  NoteLeft(object);
  NoteAllChanged(object);
  {
    const SystemMutexLock lock(account_mutex_);
    lent_.erase(object.file);
  }
  NoteChange(object, Duration{});
  return false;
}

Status ObjectEngine::RefreshSize(Object& object, int fd) {
  MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, store_->Stat(fd));
  object.size_bytes = stat.size_bytes;
  AccountFor(object, stat);
  return OkStatus();
}

void ObjectEngine::AccountFor(Object& object, const ObjectStat& stat) {
  if (object.dropped || stat.allocated_bytes == object.allocated_bytes) return;
  if (object.lent && stat.allocated_bytes > object.allocated_bytes)
    bytes_written_local_ += stat.allocated_bytes - object.allocated_bytes;
  const SystemMutexLock lock(account_mutex_);
  admission_.Account(object.allocated_bytes, stat.allocated_bytes);
  object.allocated_bytes = stat.allocated_bytes;
}

void ObjectEngine::NoteChange(Object& object, Duration rest) {
  if (object.dropped) return;
  if (object.logged == LoggedState::kDamaged && object.checksums.corrupt_count() == 0)
    TryLog(object, LoggedState::kNothing);
  const bool unsealed = !object.checksums.sealed() || object.lent;
  const bool has_work = unsealed || object.unverified || MayRecord(object);
  const SystemMutexLock lock(account_mutex_);
  if (unsealed != object.counted_unsealed) {
    unsealed_objects_ += unsealed ? 1 : uint64_t{0} - 1;
    object.counted_unsealed = unsealed;
  }
  if (object.checksums.corrupt_count() == 0) {
    corrupt_to_report_.erase(object.file);
    if (corrupt_blocks_of_.erase(object.file) > 0) {
      healed_.insert(object.file);
      healed_to_report_.insert(object.file);
    }
  } else {
    corrupt_blocks_of_[object.file] = object.checksums.corrupt_count();
  }
  if (has_work && !object.lent) {
    seal_queue_.Push(object.file, clock_.Monotonic() + rest);
    sealable_.notify_one();
  }
}

void ObjectEngine::NoteCorrupt(Object& object, BlockIndex block) {
  object.checksums.MarkCorrupt(block);
  // Logged checksums would reveal the damage again.
  if (object.logged != LoggedState::kSums) TryLog(object, LoggedState::kDamaged);
  const SystemMutexLock lock(account_mutex_);
  corrupt_blocks_of_[object.file] = object.checksums.corrupt_count();
  corrupt_to_report_.insert(object.file);
  healed_.erase(object.file);
  healed_to_report_.erase(object.file);
}

void ObjectEngine::ForgetChecksums(Object& object) {
  object.checksums.Forget();
  ++object.forgotten_count;
  NoteAllChanged(object);
}

void ObjectEngine::Remove(Object& object) {
  AccountFor(object, ObjectStat{});
  record_bytes_ -= std::exchange(object.record_bytes, 0);
  object.logged = LoggedState::kNothing;
  if (std::exchange(object.unverified, false)) --unverified_objects_;
  object.dropped = true;
  {
    const SystemMutexLock lock(objects_mutex_);
    objects_.erase(object.file);
  }
  Wake(object.file);
  const SystemMutexLock lock(account_mutex_);
  if (object.counted_unsealed) --unsealed_objects_;
  seal_queue_.Remove(object.file);
  lent_.erase(object.file);
  left_untold_.erase(object.file);
  untold_to_report_.erase(object.file);
  untold_reported_.erase(object.file);
  corrupt_blocks_of_.erase(object.file);
  corrupt_to_report_.erase(object.file);
  healed_.erase(object.file);
  healed_to_report_.erase(object.file);
}

// ---- reading

Result<ReadPlan> ObjectEngine::PlanRead(const ReadRequest& request, std::span<std::byte> scratch) {
  ReadPlan plan;
  plan.offset_bytes = BeginOf(BlockOf(request.offset_bytes));
  const uint64_t end =
      BeginOf(BlockOf(request.offset_bytes + request.length_bytes + kChecksumBlockBytes - 1));
  bool has_buffer = false;
  while (true) {
    auto opened = OpenToRead(request.file);
    if (!opened.ok()) return Named(opened.status(), request.file);
    if (opened->object == nullptr) return AbsentError(request.file);
    Object& object = *opened->object;
    object.mutex.AssertHeld();
    const bool has_writers = MayHaveWriters(object, opened->fd.get());
    const bool verify = request.verify || object.unverified;
    const bool buffered = has_writers || verify;
    if (buffered && !has_buffer && end > plan.offset_bytes) {
      opened->lock.unlock();
      MOSA_ASSIGN_OR_RETURN(plan.buffer,
                            budget_.Take(request.account, end - plan.offset_bytes, kBudgetWait));
      has_buffer = true;
      continue;  // What held before the wait may no longer hold.
    }
    if (buffered) MOSA_RETURN_IF_ERROR(Named(RefreshSize(object, opened->fd.get()), request.file));
    plan.length_bytes =
        std::min(end, object.size_bytes) - std::min(plan.offset_bytes, object.size_bytes);
    const auto corrupt = object.checksums.CorruptIn(BlockOf(plan.offset_bytes), BlockOf(end));
    if (corrupt) return CorruptError(request.file, *corrupt);
    if (buffered) {
      const Status filled = FillBuffer(object, opened->fd.get(), plan, verify);
      if (!filled.ok()) return Named(filled, request.file);
      return plan;
    }
    const Status summed = SumMissing(object, opened->fd.get(), plan, scratch);
    if (!summed.ok()) return Named(summed, request.file);
    for (uint64_t at = 0; at < plan.length_bytes; at += kChecksumBlockBytes) {
      plan.crcs.push_back(object.checksums.Get(BlockOf(plan.offset_bytes + at), object.size_bytes)
                              .value_or(CrcOfZeroes(kChecksumBlockBytes)));
    }
    plan.fd = std::move(opened->fd);
    return plan;
  }
}

// Computes the missing checksums of the range and keeps them, except for a whole block of zeroes in
// an incomplete table.
Status ObjectEngine::SumMissing(Object& object, int fd, const ReadPlan& plan,
                                std::span<std::byte> scratch) {
  MOSA_CHECK(scratch.size() >= kChecksumBlockBytes);
  bool changed = false;
  for (uint64_t at = 0; at < plan.length_bytes; at += kChecksumBlockBytes) {
    const BlockIndex block = BlockOf(plan.offset_bytes + at);
    if (object.checksums.Get(block, object.size_bytes)) continue;
    const auto bytes = scratch.first(ExtentOf(block, object.size_bytes));
    MOSA_ASSIGN_OR_RETURN(const size_t got, store_->Read(fd, BeginOf(block), bytes));
    if (got < bytes.size()) {
      return InternalError(
          fmt::format("the object ends at {}, not at {}", BeginOf(block) + got, object.size_bytes));
    }
    object.checksums.Set(block, Crc32c(bytes.data(), bytes.size()));
    changed = true;
  }
  if (changed) NoteChange(object, kRestAfterWrite);
  return OkStatus();
}

Status ObjectEngine::FillBuffer(Object& object, int fd, ReadPlan& plan, bool verify) {
  const auto bytes = plan.buffer.bytes().first(plan.length_bytes);
  MOSA_ASSIGN_OR_RETURN(const size_t got, store_->Read(fd, plan.offset_bytes, bytes));
  plan.length_bytes = got;  // A local program may have truncated it meanwhile.
  plan.crcs = BlockChecksums(plan.offset_bytes, bytes.first(got));
  for (size_t i = 0; verify && !object.lent && i < plan.crcs.size(); ++i) {
    const BlockIndex block{BlockOf(plan.offset_bytes).value + i};
    const auto known = object.checksums.Get(block, object.size_bytes);
    if (known && *known != plan.crcs[i]) {
      NoteCorrupt(object, block);
      return CorruptError(object.file, block);
    }
    if (!known) object.checksums.Set(block, plan.crcs[i]);
  }
  return OkStatus();
}

// ---- writing

Result<uint64_t> ObjectEngine::HoleBytes(int fd, uint64_t offset, uint64_t length) {
  const uint64_t begin = offset / kPageBytes * kPageBytes;
  const uint64_t end = RoundUpToPage(offset + length);
  MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, store_->Stat(fd));
  // In an object without holes, the kernel would visit every page up to the end to find none.
  const uint64_t dense_end = RoundUpToPage(stat.size_bytes);
  if (stat.allocated_bytes == dense_end) return end - std::clamp(dense_end, begin, end);
  uint64_t holes = 0;
  for (uint64_t at = begin; at < end;) {
    const Result<uint64_t> data = store_->Seek(fd, at, /*data=*/true);
    if (!data.ok() && data.status().code() != StatusCode::kNotFound) return data.status();
    const uint64_t data_begin = data.ok() ? std::min(*data, end) : end;
    holes += data_begin - at;
    if (data_begin == end) break;
    MOSA_ASSIGN_OR_RETURN(const uint64_t hole, store_->Seek(fd, data_begin, /*data=*/false));
    // SEEK_HOLE reports the object's end as a hole, although its last page is allocated.
    at = RoundUpToPage(std::min(hole, end));
  }
  return holes;
}

Result<uint64_t> ObjectEngine::ReserveRange(FileId file, int fd, uint64_t offset, uint64_t length) {
  {
    // Usually there is room for the whole range, and no search for holes is needed.
    const SystemMutexLock lock(account_mutex_);
    const uint64_t most = length + 2 * kPageBytes;
    if (admission_.Reserve(file, most).ok()) return most;
  }
  MOSA_ASSIGN_OR_RETURN(const uint64_t holes, HoleBytes(fd, offset, length));
  const SystemMutexLock lock(account_mutex_);
  MOSA_RETURN_IF_ERROR(admission_.Reserve(file, holes));
  return holes;
}

void ObjectEngine::GiveBack(uint64_t reserved_bytes) {
  const SystemMutexLock lock(account_mutex_);
  admission_.GiveBack(reserved_bytes);
}

Result<ObjectEngine::Writer> ObjectEngine::BeginWrite(FileId file, const Changer& changer,
                                                      uint64_t offset, uint64_t length) {
  auto opened = OpenToChange(file, OpenMode::kCreate, changer);
  if (!opened.ok()) return Named(opened.status(), file);
  auto reserved = ReserveRange(file, opened->fd.get(), offset, length);
  if (!reserved.ok()) return Named(reserved.status(), file);
  return Writer(this, std::move(opened->object), changer, std::move(opened->fd), *reserved);
}

ObjectEngine::Writer::Writer(Writer&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)),
      object_(std::move(other.object_)),
      changer_(other.changer_),
      fd_(std::move(other.fd_)),
      reserved_(other.reserved_) {}

ObjectEngine::Writer::~Writer() {
  if (engine_ == nullptr) return;
  {
    const SystemMutexLock lock(object_->mutex);
    const Result<ObjectStat> stat = engine_->store_->Stat(fd_.get());
    if (stat.ok()) engine_->AccountFor(*object_, *stat);
    engine_->NoteChange(*object_, kRestAfterWrite);
  }
  engine_->GiveBack(reserved_);
}

Status ObjectEngine::Writer::WritePiece(uint64_t offset, std::span<const std::byte> data,
                                        std::span<const uint32_t> crcs) {
  if (data.empty()) return OkStatus();
  Object& object = *object_;
  const SystemMutexLock lock(object.mutex);
  if (object.dropped) return DroppedError(object.file);
  MOSA_RETURN_IF_ERROR(Named(engine_->BeginChange(object, fd_.get(), changer_), object.file));
  const Status written = engine_->store_->Write(fd_.get(), offset, data);
  if (!written.ok()) {
    // Some bytes may have been written, and the object may have grown.
    engine_->ForgetChecksums(object);
    if (const auto stat = engine_->store_->Stat(fd_.get()); stat.ok())
      object.size_bytes = stat->size_bytes;
    return Named(written, object.file);
  }
  const uint64_t size_before = object.size_bytes;
  object.size_bytes = std::max(size_before, offset + data.size());
  if (!object.lent)
    object.checksums.Written(offset, data.size(), crcs, size_before, object.size_bytes);
  engine_->NoteWritten(object, {offset, offset + data.size()});
  engine_->bytes_written_remote_ += data.size();
  return OkStatus();
}

Status ObjectEngine::Truncate(FileId file, const Changer& changer, uint64_t size_bytes) {
  auto opened = OpenToChange(file, OpenMode::kWrite, changer);
  if (!opened.ok()) return Named(opened.status(), file);
  if (opened->object == nullptr) return size_bytes == 0 ? OkStatus() : AbsentError(file);
  Object& object = *opened->object;
  object.mutex.AssertHeld();
  MOSA_RETURN_IF_ERROR(Named(RefreshSize(object, opened->fd.get()), file));
  const uint64_t size_before = object.size_bytes;
  if (size_before <= size_bytes) return OkStatus();
  const Status cut = store_->Truncate(opened->fd.get(), size_bytes);
  if (cut.ok()) {
    object.checksums.Cut(size_before, size_bytes);
    NoteWritten(object, {size_bytes, size_before});
  } else {
    ForgetChecksums(object);
  }
  const Status refreshed = RefreshSize(object, opened->fd.get());
  NoteChange(object, kRestAfterWrite);
  return Named(cut.ok() ? refreshed : cut, file);
}

Status ObjectEngine::Allocate(FileId file, const Changer& changer, int mode, ByteRange range) {
  const bool punch = mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
  if (!punch && mode != 0 && mode != FALLOC_FL_KEEP_SIZE) {
    return UnimplementedError(
        fmt::format("file {}: objects do not support fallocate mode {:#x}", file.value, mode));
  }
  if (range.size() == 0) return InvalidArgumentError("fallocate needs a length above 0");
  auto opened = OpenToChange(file, punch ? OpenMode::kWrite : OpenMode::kCreate, changer);
  if (!opened.ok()) return Named(opened.status(), file);
  if (opened->object == nullptr) return AbsentError(file);
  Object& object = *opened->object;
  object.mutex.AssertHeld();
  const int fd = opened->fd.get();
  uint64_t reserved = 0;
  if (!punch) {
    MOSA_ASSIGN_OR_RETURN(const uint64_t holes, HoleBytes(fd, range.begin, range.size()));
    const SystemMutexLock lock(account_mutex_);
    MOSA_RETURN_IF_ERROR(admission_.Reserve(file, holes));
    reserved = holes;
  }
  const Status done = store_->Allocate(fd, mode | FALLOC_FL_KEEP_SIZE, range.begin, range.size());
  if (!done.ok()) {
    if (punch) ForgetChecksums(object);
  } else if (punch) {
    object.checksums.Punched(range.begin, range.size(), object.size_bytes);
    NoteWritten(object, range);
  }
  const Status refreshed = RefreshSize(object, fd);
  NoteChange(object, kRestAfterWrite);
  GiveBack(reserved);
  return Named(done.ok() ? refreshed : done, file);
}

// ---- queries

Result<ObjectEngine::Description> ObjectEngine::Describe(FileId file) {
  auto opened = OpenToRead(file);
  if (!opened.ok()) return Named(opened.status(), file);
  Description description;
  if (opened->object == nullptr) return AbsentError(file);
  const Result<ObjectStat> stat = store_->Stat(opened->fd.get());
  if (!stat.ok()) return Named(stat.status(), file);
  description.stat = *stat;
  Object& object = *opened->object;
  object.mutex.AssertHeld();
  description.sealed = object.checksums.sealed() && !object.lent;
  AccountFor(object, *stat);
  return description;
}

Result<uint64_t> ObjectEngine::Seek(FileId file, uint64_t offset, bool data) {
  auto opened = OpenToRead(file);
  if (!opened.ok()) return Named(opened.status(), file);
  if (opened->object == nullptr) return AbsentError(file);
  const Result<uint64_t> at = store_->Seek(opened->fd.get(), offset, data);
  if (at.status().code() == StatusCode::kNotFound)
    return Status(StatusCode::kOutOfRange, MessageOf(Named(at.status(), file)));
  if (!at.ok()) return Named(at.status(), file);
  return *at;
}

Status ObjectEngine::Admits(const Object& object, const Changer& changer) const {
  if (changer.generation > object.writer_generation || object.writer_generation == 0)
    return CheckRefusals(object.file, changer);
  if (changer.generation == object.writer_generation) return OkStatus();
  return AbortedError(fmt::format(
      "this node stores file {} by layout generation {}, not by {}: open the file again",
      object.file.value, object.writer_generation, changer.generation));
}

Status ObjectEngine::CheckRefusals(FileId file, const Changer& changer) const {
  if (!has_refusals_ || changer.is_order) return OkStatus();
  const SystemMutexLock lock(objects_mutex_);
  if (!IsRefused(file, changer)) return OkStatus();
  return AbortedError(fmt::format(
      "this node has dropped file {} at layout generation {}, and takes nothing by {}: open the "
      "file again",
      file.value, refusals_.at(file).generation, changer.generation));
}

bool ObjectEngine::IsRefused(FileId file, const Changer& changer) const {
  const auto refusal = refusals_.find(file);
  return !changer.is_order && refusal != refusals_.end() &&
         changer.generation <= refusal->second.generation;
}

Status ObjectEngine::CheckChanger(FileId file, const Changer& changer) {
  const ObjectRef object = Find(file);
  if (object == nullptr) return CheckRefusals(file, changer);
  const SystemMutexLock lock(object->mutex);
  return Admits(*object, changer);
}

}  // namespace mosa::node
