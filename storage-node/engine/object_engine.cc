#include "storage-node/engine/object_engine.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/model/checksum_blocks.h"
#include "proto/convert/residence.h"

namespace mosa::node {
namespace {

constexpr size_t kBudgetBytes = 32 << 20;
// One request of maximum size.
constexpr size_t kBudgetShareBytes = 8 << 20;

Status DroppedError(FileId file) {
  return NotFoundError(
      fmt::format("the object of file {} was dropped while it was being written", file.value));
}

Status CorruptError(FileId file, BlockIndex block) {
  return DataLossError(fmt::format(
      "block {} of the object of file {} is corrupt: checksum mismatch (offset {}, {} bytes)",
      block.value, file.value, BeginOf(block), kChecksumBlockBytes));
}

}  // namespace

Result<std::unique_ptr<ObjectEngine>> ObjectEngine::Open(std::unique_ptr<ObjectStore> store,
                                                         uint64_t limit_bytes, const Clock& clock) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<StoredObject> stored, store->List());
  SumsLog* const sums = store->sums();
  SumsFound known = sums == nullptr ? SumsFound() : sums->TakeFound();
  if (sums != nullptr && sums->found_damage())
    LogWarning("cannot read some of the checksums beside the objects");
  const bool is_suspect = store->is_after_crash() && sums != nullptr && sums->found_any();
  std::unique_ptr<ObjectEngine> engine(
      new ObjectEngine(std::move(store), limit_bytes, clock, is_suspect));
  for (const StoredObject& found : stored)
    engine->found_.Add(found, engine->found_.RecordOf(found.file, known.records),
                       known.generations[found.file]);
  MOSA_RETURN_IF_ERROR(engine->aside_.FindAll(known));
  MOSA_RETURN_IF_ERROR(engine->sealer_.RewriteRecords());
  const bool verifies = engine->records_.unverified_count > 0;
  MOSA_RETURN_IF_ERROR(
      engine->store_->MarkRun(verifies ? RunState::kVerifying : RunState::kVerified));
  return engine;
}

ObjectEngine::ObjectEngine(std::unique_ptr<ObjectStore> store, uint64_t limit_bytes,
                           const Clock& clock, bool is_suspect)
    : store_(std::move(store)),
      clock_(clock),
      budget_(kBudgetBytes, kBudgetShareBytes),
      room_(limit_bytes),
      table_(clock),
      sealing_(clock),
      records_(*store_),
      ledger_({*store_, clock, table_, room_, records_, sealing_, reports_, lent_, waiters_,
               counters_}),
      verifier_(*store_, records_, ledger_, sealing_),
      opener_(*store_, table_, records_, verifier_, ledger_),
      found_(*store_, table_, records_, ledger_, lent_, is_suspect),
      local_({*store_, clock, table_, opener_, verifier_, ledger_, sealing_, reports_, lent_,
              counters_}),
      sums_(*store_, table_, opener_, verifier_, ledger_, waiters_),
      aside_(*store_, table_, room_, records_, ledger_, verifier_, found_),
      sealer_(*store_, table_, records_, ledger_, verifier_, aside_, sealing_),
      scrubber_(*store_, table_, ledger_) {}

void ObjectEngine::End() {
  SyncRecords();
  const Status ended = store_->MarkRun(RunState::kEnded);
  if (!ended.ok()) LogWarning("{}", MessageOf(ended));
}

// ---- reading

Result<ReadPlan> ObjectEngine::PlanRead(const ReadRequest& request, std::span<std::byte> scratch) {
  ReadPlan plan;
  plan.offset_bytes = BeginOf(BlockOf(request.offset_bytes));
  const uint64_t end =
      BeginOf(BlockOf(request.offset_bytes + request.length_bytes + kChecksumBlockBytes - 1));
  bool has_buffer = false;
  while (true) {
    auto opened = opener_.ToRead(request.file);
    if (!opened.ok()) return Named(opened.status(), request.file);
    if (opened->object == nullptr) return AbsentError(request.file);
    Object& object = *opened->object;
    object.mutex.AssertHeld();
    const bool has_writers = ledger_.MayHaveWriters(object, opened->fd.get());
    const bool verify = request.verify || object.unverified;
    const bool buffered = has_writers || verify;
    if (buffered && !has_buffer && end > plan.offset_bytes) {
      opened->lock.unlock();
      MOSA_ASSIGN_OR_RETURN(plan.buffer,
                            budget_.Take(request.account, end - plan.offset_bytes, kBudgetWait));
      has_buffer = true;
      continue;  // What held before the wait may no longer hold.
    }
    if (buffered)
      MOSA_RETURN_IF_ERROR(Named(ledger_.RefreshSize(object, opened->fd.get()), request.file));
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
  if (changed) ledger_.NoteChange(object, kRestAfterWrite);
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
      ledger_.NoteCorrupt(object, block);
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
  // Usually there is room for the whole range, and no search for holes is needed.
  const uint64_t most = length + 2 * kPageBytes;
  if (room_.Reserve(file, most).ok()) return most;
  MOSA_ASSIGN_OR_RETURN(const uint64_t holes, HoleBytes(fd, offset, length));
  MOSA_RETURN_IF_ERROR(room_.Reserve(file, holes));
  return holes;
}

Result<ObjectEngine::Writer> ObjectEngine::BeginWrite(FileId file, const Changer& changer,
                                                      uint64_t offset, uint64_t length) {
  auto opened = opener_.ToChange(file, OpenMode::kCreate, changer);
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
    if (stat.ok()) engine_->ledger_.AccountFor(*object_, *stat);
    engine_->ledger_.NoteChange(*object_, kRestAfterWrite);
  }
  engine_->room_.GiveBack(reserved_);
}

Status ObjectEngine::Writer::WritePiece(uint64_t offset, std::span<const std::byte> data,
                                        std::span<const uint32_t> crcs) {
  if (data.empty()) return OkStatus();
  Object& object = *object_;
  const SystemMutexLock lock(object.mutex);
  if (object.dropped) return DroppedError(object.file);
  MOSA_RETURN_IF_ERROR(
      Named(engine_->opener_.BeginChange(object, fd_.get(), changer_), object.file));
  const Status written = engine_->store_->Write(fd_.get(), offset, data);
  if (!written.ok()) {
    // Some bytes may have been written, and the object may have grown.
    engine_->ledger_.ForgetChecksums(object);
    if (const auto stat = engine_->store_->Stat(fd_.get()); stat.ok())
      object.size_bytes = stat->size_bytes;
    return Named(written, object.file);
  }
  const uint64_t size_before = object.size_bytes;
  object.size_bytes = std::max(size_before, offset + data.size());
  if (!object.lent)
    object.checksums.Written(offset, data.size(), crcs, size_before, object.size_bytes);
  engine_->ledger_.NoteWritten(object, {offset, offset + data.size()});
  engine_->counters_.bytes_written_remote += data.size();
  return OkStatus();
}

Status ObjectEngine::Truncate(FileId file, const Changer& changer, uint64_t size_bytes) {
  auto opened = opener_.ToChange(file, OpenMode::kWrite, changer);
  if (!opened.ok()) return Named(opened.status(), file);
  if (opened->object == nullptr) return size_bytes == 0 ? OkStatus() : AbsentError(file);
  Object& object = *opened->object;
  object.mutex.AssertHeld();
  MOSA_RETURN_IF_ERROR(Named(ledger_.RefreshSize(object, opened->fd.get()), file));
  const uint64_t size_before = object.size_bytes;
  if (size_before <= size_bytes) return OkStatus();
  const Status cut = store_->Truncate(opened->fd.get(), size_bytes);
  if (cut.ok()) {
    object.checksums.Cut(size_before, size_bytes);
    ledger_.NoteWritten(object, {size_bytes, size_before});
  } else {
    ledger_.ForgetChecksums(object);
  }
  const Status refreshed = ledger_.RefreshSize(object, opened->fd.get());
  ledger_.NoteChange(object, kRestAfterWrite);
  return Named(cut.ok() ? refreshed : cut, file);
}

Status ObjectEngine::Allocate(FileId file, const Changer& changer, int mode, ByteRange range) {
  const bool punch = mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
  if (!punch && mode != 0 && mode != FALLOC_FL_KEEP_SIZE) {
    return UnimplementedError(
        fmt::format("file {}: objects do not support fallocate mode {:#x}", file.value, mode));
  }
  if (range.size() == 0) return InvalidArgumentError("fallocate needs a length above 0");
  auto opened = opener_.ToChange(file, punch ? OpenMode::kWrite : OpenMode::kCreate, changer);
  if (!opened.ok()) return Named(opened.status(), file);
  if (opened->object == nullptr) return AbsentError(file);
  Object& object = *opened->object;
  object.mutex.AssertHeld();
  const int fd = opened->fd.get();
  uint64_t reserved = 0;
  if (!punch) {
    MOSA_ASSIGN_OR_RETURN(const uint64_t holes, HoleBytes(fd, range.begin, range.size()));
    MOSA_RETURN_IF_ERROR(room_.Reserve(file, holes));
    reserved = holes;
  }
  const Status done = store_->Allocate(fd, mode | FALLOC_FL_KEEP_SIZE, range.begin, range.size());
  if (!done.ok()) {
    if (punch) ledger_.ForgetChecksums(object);
  } else if (punch) {
    object.checksums.Punched(range.begin, range.size(), object.size_bytes);
    ledger_.NoteWritten(object, range);
  }
  const Status refreshed = ledger_.RefreshSize(object, fd);
  ledger_.NoteChange(object, kRestAfterWrite);
  room_.GiveBack(reserved);
  return Named(done.ok() ? refreshed : done, file);
}

// ---- queries

Result<ObjectEngine::Description> ObjectEngine::Describe(FileId file) {
  auto opened = opener_.ToRead(file);
  if (!opened.ok()) return Named(opened.status(), file);
  Description description;
  if (opened->object == nullptr) return AbsentError(file);
  const Result<ObjectStat> stat = store_->Stat(opened->fd.get());
  if (!stat.ok()) return Named(stat.status(), file);
  description.stat = *stat;
  Object& object = *opened->object;
  object.mutex.AssertHeld();
  description.sealed = object.checksums.sealed() && !object.lent;
  ledger_.AccountFor(object, *stat);
  return description;
}

Result<uint64_t> ObjectEngine::Seek(FileId file, uint64_t offset, bool data) {
  auto opened = opener_.ToRead(file);
  if (!opened.ok()) return Named(opened.status(), file);
  if (opened->object == nullptr) return AbsentError(file);
  const Result<uint64_t> at = store_->Seek(opened->fd.get(), offset, data);
  if (at.status().code() == StatusCode::kNotFound)
    return Status(StatusCode::kOutOfRange, MessageOf(Named(at.status(), file)));
  if (!at.ok()) return Named(at.status(), file);
  return *at;
}

// ---- dropping and accounting

bool ObjectEngine::DropOne(FileId file) {
  const ObjectRef object = table_.Find(file);
  if (object == nullptr) return true;
  const SystemMutexLock lock(object->mutex);
  if (object->dropped) return true;
  // An old record must not be found with a new object of the same file.
  Status dropped = records_.Log(*object, LoggedState::kNothing);
  if (dropped.ok()) dropped = store_->Drop(file);
  if (!dropped.ok()) {
    LogError("{}; it will be tried again", MessageOf(dropped));
    return false;
  }
  records_.SetGeneration(*object, 0);
  ledger_.Remove(*object);
  return true;
}

void ObjectEngine::Drop(std::span<const FileId> files, uint64_t number) {
  std::set<FileId> failed;
  for (const FileId file : files)
    if (!DropOne(file)) failed.insert(file);
  reports_.NoteDropOrder(number, failed);
}

void ObjectEngine::Account() {
  table_.EndRefusals();
  for (const FileId file : reports_.drops_to_repeat())
    if (DropOne(file)) reports_.NoteDropped(file);
  local_.LookAtAll();
  ++counters_.measurements;
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
  files = table_.List();
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
  // In this order: the bytes used are measured after the drops and measurements that are reported.
  reports_.Take(clock_.Monotonic(), heartbeat);
  heartbeat.measurements = counters_.measurements;
  heartbeat.object_count = table_.size();
  heartbeat.used_bytes = room_.used_bytes();
  heartbeat.limit_bytes = room_.limit_bytes();
  heartbeat.bytes_read_remote = counters_.bytes_read_remote;
  heartbeat.bytes_written_remote = counters_.bytes_written_remote;
  heartbeat.bytes_written_local = counters_.bytes_written_local;
  heartbeat.descriptors_passed = counters_.descriptors_passed;
  heartbeat.unsealed_objects = unsealed_objects();
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
  add("bytes_read_remote", counters_.bytes_read_remote, true);
  add("bytes_written_remote", counters_.bytes_written_remote, true);
  add("bytes_written_local", counters_.bytes_written_local, true);
  add("descriptors_passed", counters_.descriptors_passed, true);
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
  add("objects", table_.size(), false);
  add("used_bytes", room_.used_bytes(), false);
  add("limit_bytes", room_.limit_bytes(), false);
  return snapshot;
}

}  // namespace mosa::node
