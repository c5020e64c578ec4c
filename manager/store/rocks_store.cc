#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/experimental.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "manager/store/metadata_store.h"
#include "manager/store/run_mark.h"

namespace mosa::manager {
namespace {

// The store's own record; callers' keys never begin with a zero byte.
constexpr std::string_view kFormatKey{"\0mosa.format", 12};
// 2 has a record of what was recovered (and a RunMark beside the database). What 1 wrote is read,
// and is of format 2 from then on.
constexpr int kFormatVersion = 2;

rocksdb::Slice SliceOf(std::string_view text) { return {text.data(), text.size()}; }
std::string_view ViewOf(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// RocksDB would look every five seconds whether there is room again; Commit does so itself.
class RecoversOnDemand final : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
};

// The image is small and read whole once; all later reads are of single inline files. So little
// memory is given to RocksDB: the manager's own working set is the cache.
rocksdb::Options DatabaseOptions(const RocksOptions& sizes, bool may_have_forgotten) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = sizes.buffer_bytes;
  options.max_write_buffer_number = 3;
  options.max_total_wal_size = sizes.log_bytes;
  // Where there is little room, a compaction rewrites little at once.
  options.target_file_size_base = std::min<uint64_t>(sizes.buffer_bytes * 8, sizes.log_bytes);
  options.max_bytes_for_level_base = 4 * options.target_file_size_base;
  // On a full disk a start writes no tables.
  options.avoid_flush_during_recovery = true;
  options.listeners.push_back(std::make_shared<RecoversOnDemand>());
  options.max_open_files = 256;
  options.max_background_jobs = 2;
  options.keep_log_file_num = 2;
  options.max_log_file_size = size_t{1} << 20;
  options.stats_dump_period_sec = 0;
  options.compression = rocksdb::kNoCompression;
  // A torn record at the log's end was never acknowledged; damage anywhere else must be noticed.
  // What a crash of the machine left of a log that was not synced may have holes: what is before
  // the first one was true at some moment, and what is behind it must not be mixed in.
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
  if (status.IsCorruption())
    return DataLossError(
        text +
        "; keep the directory as it is, put a good copy in another one and start with that, or "
        "start with an empty one: nodes then put their objects aside for 'mosa adopt'");
  // RocksDB has no code for it: these begin the sentence of a file locked elsewhere, and in here.
  const std::string why = status.ToString();
  if (status.IsBusy() || why.find("While lock file: ") != std::string::npos ||
      why.find("lock hold by current process") != std::string::npos)
    return UnavailableError(text + "; another manager may be running with it: stop it first");
  if (status.IsNoSpace()) return ResourceExhaustedError(text + "; free space on that file system");
  return InternalError(text + "; check that the directory exists, is writable and has room");
}

class RocksStore final : public MetadataStore {
 public:
  RocksStore(const RocksOptions& options, std::unique_ptr<rocksdb::DB> database)
      : path_(options.path),
        mark_{.boot_id = options.boot_id, .synced = options.fsync},
        database_(std::move(database)) {
    write_options_.sync = options.fsync;
  }

  ~RocksStore() override {
    if (!begun_) return;
    const rocksdb::Status synced = database_->SyncWAL();
    mark_.ended = synced.ok();
    const Status written = WriteRunMark(path_, mark_);
    if (!synced.ok() || !written.ok())
      LogWarning("the metadata store {} could not be closed in order; {}", path_,
                 synced.ok() ? MessageOf(written) : synced.ToString());
  }

  bool may_have_forgotten() const override { return mark_.behind; }

  // Notes that a run has begun, before it writes anything.
  Status Begin(bool may_have_forgotten) {
    mark_.behind = may_have_forgotten && !is_new_;
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
    rocksdb::Status written = database_->Write(write_options_, &writes);
    // Whatever found no room before, in the background too, has stopped the database. A log that
    // ends in the middle of this batch is replaced by a new one before anything else is written.
    if (written.IsNoSpace() && database_->Resume().ok())
      written = database_->Write(write_options_, &writes);
    MOSA_RETURN_IF_ERROR(StatusOf(written, path_, "cannot write to"));
    if (!mark_.behind) return OkStatus();
    mark_.behind = false;
    return WriteRunMark(path_, mark_);
  }

  // What was removed goes when the tables that have it are written anew without it.
  void Reclaim() override {
    // A compaction that found no room stays stopped until then.
    database_->Resume().PermitUncheckedError();
    rocksdb::FlushOptions flush;
    flush.wait = false;
    flush.allow_write_stall = true;
    database_->Flush(flush).PermitUncheckedError();
    rocksdb::experimental::SuggestCompactRange(database_.get(), nullptr, nullptr)
        .PermitUncheckedError();
  }

  Result<std::string> Get(std::string_view key) override {
    std::string value;
    const rocksdb::Status read = database_->Get(rocksdb::ReadOptions(), SliceOf(key), &value);
    if (read.IsNotFound())
      return NotFoundError(
          fmt::format("no record of {} key bytes in the metadata store {}", key.size(), path_));
    if (!read.ok()) return StatusOf(read, path_, "cannot read");
    return value;
  }

  // Checks the format's number. An empty database is of none yet.
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
          fmt::format("the metadata store {} does not say its format in a way that this program "
                      "reads ({} bytes): keep it as it is, and start with a good copy of it",
                      path_, value.size()));
    if (version > kFormatVersion)
      return FailedPreconditionError(
          fmt::format("the metadata store {} has format {}, this program knows up to {}; start the "
                      "newer program that wrote it (nothing was changed)",
                      path_, version, kFormatVersion));
    found_version_ = version;
    return OkStatus();
  }

  // From now on older programs refuse the database, instead of taking its records for damage.
  Status RaiseFormat() {
    if (found_version_ == kFormatVersion) return OkStatus();
    return StatusOf(
        database_->Put(write_options_, SliceOf(kFormatKey), std::to_string(kFormatVersion)), path_,
        "cannot write to");
  }

 private:
  Status BeginFormat() {
    const std::unique_ptr<rocksdb::Iterator> cursor(database_->NewIterator(rocksdb::ReadOptions()));
    cursor->SeekToFirst();
    if (cursor->Valid())
      return DataLossError(
          fmt::format("the metadata store {} has records but does not say its format; it is "
                      "damaged or not Mosa's: "
                      "keep it as it is, and name another directory",
                      path_));
    is_new_ = true;
    return StatusOf(cursor->status(), path_, "cannot read");
  }

  // The smallest key behind all that begin with `prefix`, if there is one.
  static std::optional<std::string> AfterPrefix(std::string_view prefix) {
    std::string key(prefix);
    while (!key.empty() && static_cast<unsigned char>(key.back()) == 0xff) key.pop_back();
    if (key.empty()) return std::nullopt;
    key.back() = static_cast<char>(static_cast<unsigned char>(key.back()) + 1);
    return key;
  }

  const std::string path_;
  RunMark mark_;
  bool is_new_ = false, begun_ = false;
  int found_version_ = 0;
  const std::unique_ptr<rocksdb::DB> database_;
  rocksdb::WriteOptions write_options_;
};

}  // namespace

Result<std::unique_ptr<MetadataStore>> OpenRocksStore(const RocksOptions& options) {
  const bool may_have_forgotten = MayHaveForgotten(ReadRunMark(options.path), options.boot_id);
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(DatabaseOptions(options, may_have_forgotten), options.path, &opened);
  std::unique_ptr<rocksdb::DB> database(opened);
  MOSA_RETURN_IF_ERROR(StatusOf(status, options.path, "cannot open"));
  auto store = std::make_unique<RocksStore>(options, std::move(database));
  MOSA_RETURN_IF_ERROR(store->CheckFormat());
  MOSA_RETURN_IF_ERROR(store->Begin(may_have_forgotten));
  MOSA_RETURN_IF_ERROR(store->RaiseFormat());
  return std::unique_ptr<MetadataStore>(std::move(store));
}

}  // namespace mosa::manager
