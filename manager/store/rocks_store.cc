#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/experimental.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/rare_log.h"
#include "manager/store/metadata_store.h"
#include "manager/store/run_mark.h"

namespace mosa::manager {
namespace {

// The store's own record. Callers' keys never begin with a zero byte.
constexpr std::string_view kFormatKey{"\0mosa.format", 12};
// Format 2 adds a record of the recovery (and a RunMark beside the database). Format 1 is read and
// then raised to 2.
constexpr int kFormatVersion = 2;

rocksdb::Slice SliceOf(std::string_view text) { return {text.data(), text.size()}; }
std::string_view ViewOf(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// Replaces RocksDB's recovery, which would check for room every five seconds: Commit checks itself.
// Thread-safe.
class BackgroundErrors final : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status*) override {
    happened_ = true;
  }
  // Returns true once if an error has happened since the last call.
  bool Take() { return happened_.exchange(false); }
  void PutBack() { happened_ = true; }

 private:
  std::atomic<bool> happened_ = false;
};

// Logs RocksDB's errors, at most once a minute. RocksDB's own log would be a file beside the
// database, and writing to it after it found no room ends the process.
class ErrorLog final : public rocksdb::Logger {
 public:
  ErrorLog() : Logger(rocksdb::InfoLogLevel::ERROR_LEVEL) {}
  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    std::array<char, 500> line{};
    std::vsnprintf(line.data(), line.size(), format, arguments);
    lines_.Warning("RocksDB: {}", line.data());
  }
  void LogHeader(const char*, va_list) override {}

 private:
  RareLog lines_;
};

// Enough for the database's own threads to write before a batch is written.
constexpr uint64_t kRoomBytesMin = uint64_t{2} << 20;

// Returns true if the free space is unknown.
bool HasRoomFor(const std::string& path, uint64_t bytes) {
  struct statvfs room {};
  if (::statvfs(path.c_str(), &room) != 0) return true;
  return uint64_t{room.f_bavail} * room.f_frsize >= bytes + kRoomBytesMin;
}

Status NoRoom(const std::string& path, uint64_t bytes) {
  return ResourceExhaustedError(
      fmt::format("the metadata store {} has no room for {} bytes; free space on that file system",
                  path, bytes + kRoomBytesMin));
}

// Returns true if the process or machine cannot open more files. RocksDB has no code for this, and
// may report a table that it cannot open as damaged; only the error text tells.
bool IsWithoutDescriptor(const rocksdb::Status& status) {
  return !status.ok() && status.ToString().find("Too many open files") != std::string::npos;
}

// Returns true for errors that pass by themselves or when room is made. The database is then
// reopened and the same batch is written.
bool IsWithoutRoom(const rocksdb::Status& status) {
  return status.IsNoSpace() || IsWithoutDescriptor(status) ||
         (status.IsIOError() && status.subcode() == rocksdb::Status::kSpaceLimit);
}

// The image is small and read whole once; later reads are of single inline files. RocksDB gets
// little memory, because the manager keeps the whole state in its own.
rocksdb::Options DatabaseOptions(const RocksOptions& sizes, bool may_have_forgotten,
                                 const std::shared_ptr<BackgroundErrors>& listener) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = sizes.buffer_bytes;
  options.max_write_buffer_number = 3;
  options.max_total_wal_size = sizes.log_bytes;
  // With little room, a compaction rewrites little at once.
  options.target_file_size_base = std::max(sizes.log_bytes / 4, uint64_t{1} << 20);
  options.max_bytes_for_level_base = 2 * sizes.log_bytes;
  options.max_compaction_bytes = 2 * sizes.log_bytes;
  // On a full disk, opening writes no tables.
  options.avoid_flush_during_recovery = true;
  options.listeners.push_back(listener);
  options.max_open_files = 256;
  options.max_background_jobs = 2;
  options.info_log = std::make_shared<ErrorLog>();
  options.stats_dump_period_sec = 0;
  options.compression = rocksdb::kNoCompression;
  // A torn record at the log's end was never acknowledged; damage anywhere else must be detected.
  // After a crash of the machine a log without fsync may have holes: the records before the first
  // hole were true at some moment, and later ones must not be mixed in.
  options.wal_recovery_mode = may_have_forgotten
                                  ? rocksdb::WALRecoveryMode::kPointInTimeRecovery
                                  : rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(size_t{8} << 20);
  table.block_size = size_t{16} << 10;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

Status StatusOf(const rocksdb::Status& status, const std::string& path, std::string_view what) {
  if (status.ok()) return OkStatus();
  const std::string text =
      fmt::format("{} the metadata store {}: {}", what, path, status.ToString());
  if (IsWithoutDescriptor(status))
    return ResourceExhaustedError(text + "; raise the limit of open files (ulimit -n)");
  if (status.IsCorruption())
    return DataLossError(
        text +
        "; keep the directory as it is, put a good copy in another one and start with that, or "
        "start with an empty one: nodes then put their objects aside for 'mosa adopt'");
  // RocksDB has no code for a locked database. These texts begin its messages for locks of other
  // processes and of this one.
  const std::string why = status.ToString();
  if (status.IsBusy() || why.find("While lock file: ") != std::string::npos ||
      why.find("lock hold by current process") != std::string::npos)
    return UnavailableError(text + "; another manager may be running with it: stop it first");
  if (IsWithoutRoom(status))
    return ResourceExhaustedError(text + "; free space on that file system");
  return InternalError(text + "; check that the directory exists, is writable and has free space");
}

class RocksStore final : public MetadataStore {
 public:
  RocksStore(const RocksOptions& options, std::shared_ptr<BackgroundErrors> errors,
             std::unique_ptr<rocksdb::DB> database, bool has_unsynced_logs)
      : path_(options.path),
        options_(options),
        errors_(std::move(errors)),
        mark_{.boot_id = options.boot_id},
        has_unsynced_logs_(has_unsynced_logs),
        database_(std::move(database)) {
    write_options_.sync = options.fsync;
  }

  ~RocksStore() override {
    if (!begun_) return;
    mark_.ended = SyncAll();
    const Status written = WriteRunMark(path_, mark_);
    if (mark_.ended && written.ok()) return;
    LogWarning("the metadata store {} was not closed cleanly; {}", path_,
               written.ok() ? "parts of it may not be on disk" : MessageOf(written));
  }

  bool may_have_forgotten() const override { return mark_.behind; }

  // Records that a run has begun. Must be called before the run writes anything.
  Status Begin(bool may_have_forgotten) {
    mark_.behind = may_have_forgotten && !is_new_;
    mark_.synced = options_.fsync && HasSyncedLogs();
    MOSA_RETURN_IF_ERROR(WriteRunMark(path_, mark_));
    begun_ = true;
    return OkStatus();
  }

  Status Load(std::string_view skip_prefix, const Visitor& visitor) override {
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    options.readahead_size = size_t{2} << 20;
    const std::unique_ptr<rocksdb::Iterator> cursor(database_->NewIterator(options));
    const std::optional<std::string> behind = AfterPrefix(skip_prefix);
    cursor->SeekToFirst();
    while (cursor->Valid()) {
      const std::string_view key = ViewOf(cursor->key());
      if (!skip_prefix.empty() && key.starts_with(skip_prefix)) {
        if (!behind) break;
        cursor->Seek(SliceOf(*behind));
        continue;
      }
      if (key != kFormatKey) MOSA_RETURN_IF_ERROR(visitor(key, ViewOf(cursor->value())));
      cursor->Next();
    }
    return StatusOf(cursor->status(), path_, "cannot read");
  }

  Status Commit(const KvBatch& batch) override {
    rocksdb::WriteBatch writes;
    for (const KvBatch::Write& write : batch.writes) {
      MOSA_CHECK(!write.key.empty() && write.key[0] != '\0');
      const rocksdb::Status added =
          write.value ? writes.Put(write.key, *write.value) : writes.Delete(write.key);
      if (!added.ok()) return StatusOf(added, path_, "cannot write to");
    }
    if (database_ == nullptr) {
      if (!HasRoomFor(path_, 0)) return NoRoom(path_, 0);
      MOSA_RETURN_IF_ERROR(OpenAgain());
    }
    // First, because what it resumes may free room.
    ResumeIfStopped();
    // A log that ends within a record accepts no more, so do not begin what may not fit.
    if (!HasRoomFor(path_, writes.GetDataSize())) return NoRoom(path_, writes.GetDataSize());
    const rocksdb::Status written = database_->Write(write_options_, &writes);
    write_failed_ = !written.ok();
    // Reopening starts a new log. A batch that was not written whole is not in it.
    if (IsWithoutRoom(written)) database_.reset();
    MOSA_RETURN_IF_ERROR(StatusOf(written, path_, "cannot write to"));
    if (!mark_.behind) return OkStatus();
    RunMark mark = mark_;
    mark.behind = false;
    const Status marked = WriteRunMark(path_, mark);
    // The batch is in the store already; writing it again changes nothing.
    if (marked.code() == StatusCode::kUnavailable) return ResourceExhaustedError(MessageOf(marked));
    if (marked.ok()) mark_ = mark;
    return marked;
  }

  // Removed records disappear when their tables are rewritten.
  void Reclaim() override {
    // A compaction without enough room would only take the rest from the commits.
    if (database_ == nullptr || !HasRoomFor(path_, 2 * options_.log_bytes)) return;
    rocksdb::FlushOptions flush;
    flush.wait = false;
    flush.allow_write_stall = true;
    database_->Flush(flush).PermitUncheckedError();
    rocksdb::experimental::SuggestCompactRange(database_.get(), nullptr, nullptr)
        .PermitUncheckedError();
  }

  Result<std::string> Get(std::string_view key) override {
    if (database_ == nullptr)
      return ResourceExhaustedError(
          fmt::format("the metadata store {} is waiting for free space; free some there", path_));
    std::string value;
    const rocksdb::Status read = database_->Get(rocksdb::ReadOptions(), SliceOf(key), &value);
    if (read.IsNotFound())
      return NotFoundError(
          fmt::format("no record of {} key bytes in the metadata store {}", key.size(), path_));
    if (!read.ok()) return StatusOf(read, path_, "cannot read");
    return value;
  }

  // Checks the format version. An empty database has none yet.
  Status CheckFormat() {
    std::string value;
    const rocksdb::Status read =
        database_->Get(rocksdb::ReadOptions(), SliceOf(kFormatKey), &value);
    if (read.IsNotFound()) return BeginFormat();
    if (!read.ok()) return StatusOf(read, path_, "cannot read");
    int version = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), version);
    if (error != std::errc() || end != value.data() + value.size() || version < 1)
      return DataLossError(
          fmt::format("the metadata store {} has an unreadable format number ({} bytes): keep it "
                      "as it is, and start with a good copy of it",
                      path_, value.size()));
    if (version > kFormatVersion)
      return FailedPreconditionError(
          fmt::format("the metadata store {} has format {}, but this program reads formats up to "
                      "{}; start the newer program that wrote it (nothing was changed)",
                      path_, version, kFormatVersion));
    found_version_ = version;
    return OkStatus();
  }

  // Makes older programs refuse the database, instead of taking its records for damage.
  Status RaiseFormat() {
    if (found_version_ == kFormatVersion) return OkStatus();
    return StatusOf(
        database_->Put(write_options_, SliceOf(kFormatKey), std::to_string(kFormatVersion)), path_,
        "cannot write to");
  }

 private:
  static constexpr std::chrono::seconds kResumeEvery{1};

  // Returns true if everything committed is on disk. A log that has had an error must not be
  // synced: RocksDB would end the process. A write is refused in that case, and otherwise syncs
  // everything before it too.
  bool SyncAll() {
    if (database_ == nullptr || write_failed_) return false;
    if (mark_.synced) return true;
    if (!HasRoomFor(path_, 0)) return false;
    rocksdb::WriteOptions synced;
    synced.sync = true;
    return database_->Put(synced, SliceOf(kFormatKey), std::to_string(kFormatVersion)).ok() &&
           HasSyncedLogs();
  }

  // A log replayed at the opening is not synced together with newer ones; its content reaches the
  // disk with a table. Returns false if there is no room for that.
  bool HasSyncedLogs() {
    if (!has_unsynced_logs_) return true;
    uint64_t bytes = 0;
    database_->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &bytes);
    has_unsynced_logs_ =
        !HasRoomFor(path_, bytes) || !database_->Flush(rocksdb::FlushOptions()).ok();
    return !has_unsynced_logs_;
  }

  // Resumes flushes and compactions that stopped for lack of room or another error.
  void ResumeIfStopped() {
    const auto now = std::chrono::steady_clock::now();
    if (now - resumed_at_ < kResumeEvery || !errors_->Take()) return;
    resumed_at_ = now;
    if (!database_->Resume().ok()) errors_->PutBack();
  }

  Status OpenAgain() {
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status =
        rocksdb::DB::Open(DatabaseOptions(options_, false, errors_), path_, &opened);
    database_.reset(opened);
    has_unsynced_logs_ = has_unsynced_logs_ || !options_.fsync;
    return StatusOf(status, path_, "cannot reopen");
  }

  Status BeginFormat() {
    const std::unique_ptr<rocksdb::Iterator> cursor(database_->NewIterator(rocksdb::ReadOptions()));
    cursor->SeekToFirst();
    if (cursor->Valid())
      return DataLossError(
          fmt::format("the metadata store {} has records but no format number, so it is damaged or "
                      "not Mosa's: keep it as it is, and name another directory",
                      path_));
    is_new_ = true;
    return StatusOf(cursor->status(), path_, "cannot read");
  }

  // Returns the smallest key after all keys that begin with `prefix`, if there is one.
  static std::optional<std::string> AfterPrefix(std::string_view prefix) {
    std::string key(prefix);
    while (!key.empty() && static_cast<unsigned char>(key.back()) == 0xff) key.pop_back();
    if (key.empty()) return std::nullopt;
    key.back() = static_cast<char>(static_cast<unsigned char>(key.back()) + 1);
    return key;
  }

  const std::string path_;
  const RocksOptions options_;
  const std::shared_ptr<BackgroundErrors> errors_;
  RunMark mark_;
  bool is_new_ = false, begun_ = false;
  bool write_failed_ = false;  // The last write failed.
  bool has_unsynced_logs_;     // Logs from before the database was opened.
  int found_version_ = 0;
  std::unique_ptr<rocksdb::DB>
      database_;  // Null from a write that found no room to the next write.
  std::chrono::steady_clock::time_point resumed_at_;
  rocksdb::WriteOptions write_options_;
};

}  // namespace

Result<std::unique_ptr<MetadataStore>> OpenRocksStore(const RocksOptions& options) {
  const std::optional<RunMark> last = ReadRunMark(options.path);
  const bool may_have_forgotten = MayHaveForgotten(last, options.boot_id);
  rocksdb::DB* opened = nullptr;
  if (!HasRoomFor(options.path, 0)) return NoRoom(options.path, 0);
  auto errors = std::make_shared<BackgroundErrors>();
  const rocksdb::Status status = rocksdb::DB::Open(
      DatabaseOptions(options, may_have_forgotten, errors), options.path, &opened);
  std::unique_ptr<rocksdb::DB> database(opened);
  MOSA_RETURN_IF_ERROR(StatusOf(status, options.path, "cannot open"));
  const bool has_unsynced_logs = !last || (!last->synced && !last->ended);
  auto store = std::make_unique<RocksStore>(options, std::move(errors), std::move(database),
                                            has_unsynced_logs);
  MOSA_RETURN_IF_ERROR(store->CheckFormat());
  MOSA_RETURN_IF_ERROR(store->Begin(may_have_forgotten));
  MOSA_RETURN_IF_ERROR(store->RaiseFormat());
  return std::unique_ptr<MetadataStore>(std::move(store));
}

}  // namespace mosa::manager
