#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/hash.h"
#include "common/base/mutex.h"
#include "storage-node/store/fd_operations.h"

// The directory, format 1:
//   mosa-node.json     the store's record; written under another name and renamed
//   lock               held with flock(2) by the process that uses the directory
//   objects/xx/<16 hexadecimal digits of the file id>, xx being one byte of a hash of the id
//   lost+found/<the same digits>   objects put aside
//   sums/<number>      checksums of objects, see sums_log.h
// The daemon's socket may be here too.
namespace mosa::node {
namespace {

constexpr int kFormat = 1;
constexpr const char* kRecordName = "mosa-node.json";
constexpr const char* kNewRecordName = "mosa-node.json.new";
constexpr const char* kLockName = "lock";
constexpr const char* kObjectsName = "objects";
constexpr const char* kAsideName = "lost+found";
constexpr const char* kSumsName = "sums";
constexpr int kFanOut = 256;

using Names = std::set<std::string>;

std::string ObjectName(FileId file) {
  return fmt::format("{:02x}/{:016x}", Mix64(file.value) & (kFanOut - 1), file.value);
}

std::string AsideName(FileId file) { return fmt::format("{:016x}", file.value); }

std::optional<FileId> ParseObjectName(std::string_view name) {
  FileId file;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, file.value, 16);
  if (name.size() != 16 || error != std::errc{} || stop != end) return std::nullopt;
  return file;
}

Result<Names> ListNames(int directory_fd, const char* name) {
  const int fd = ::openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const directory = fd < 0 ? nullptr : ::fdopendir(fd);
  if (directory == nullptr) {
    const int error = errno;
    UniqueFd unowned(fd);
    return ErrnoStatus(error, fmt::format("cannot list the directory '{}'", name));
  }
  Names names;
  errno = 0;  // Distinguishes a failure from the end.
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view entry_name = entry->d_name;
    if (entry_name != "." && entry_name != "..") names.emplace(entry_name);
    errno = 0;
  }
  const int error = errno;
  ::closedir(directory);
  if (error != 0) return ErrnoStatus(error, fmt::format("cannot list the directory '{}'", name));
  return names;
}

// Returns the object at `path` below `directory_fd`; nothing if it is not a file.
std::optional<StoredObject> LookAt(int directory_fd, const std::string& path, FileId file) {
  struct stat status {};
  if (::fstatat(directory_fd, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(status.st_mode))
    return std::nullopt;
  return StoredObject{file, static_cast<uint64_t>(status.st_size),
                      static_cast<uint64_t>(status.st_blocks) * 512,
                      Time{status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec}};
}

void SortByFile(std::vector<StoredObject>& objects) {
  std::sort(objects.begin(), objects.end(),
            [](const StoredObject& a, const StoredObject& b) { return a.file < b.file; });
}

Status WriteRecord(int directory_fd, const StoreRecord& record) {
  const std::string text = nlohmann::json{{"format", kFormat},
                                          {"cluster", record.cluster_name},
                                          {"node", record.node_name},
                                          {"incarnation", record.incarnation},
                                          {"boot", record.boot_id},
                                          {"ended", record.ended},
                                          {"verifying", record.verifying}}
                               .dump(2) +
                           "\n";
  UniqueFd fd(::openat(directory_fd, kNewRecordName, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                       S_IRUSR | S_IWUSR));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(fd.get()) != 0 ||
      ::renameat(directory_fd, kNewRecordName, directory_fd, kRecordName) != 0 ||
      ::fsync(directory_fd) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot write the record {}", kRecordName));
  }
  return OkStatus();
}

Result<std::string> ReadSmallFile(int directory_fd, const char* name) {
  const UniqueFd fd(::openat(directory_fd, name, O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t size = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  if (size < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", name));
  text.resize(static_cast<size_t>(size));
  return text;
}

Result<StoreRecord> ParseRecord(const std::string& text, const std::string& path) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool readable = json.is_object() && json.contains("format") &&
                        json["format"].is_number_integer() && json.contains("cluster") &&
                        json["cluster"].is_string() && json.contains("node") &&
                        json["node"].is_string() && json.contains("incarnation") &&
                        json["incarnation"].is_number_unsigned();
  if (json.is_object() && json.contains("format") && json["format"].is_number_integer() &&
      json["format"].get<int64_t>() > kFormat) {
    return FailedPreconditionError(
        fmt::format("the object directory {} has format {}, but this program reads format {}: use "
                    "the newer program, or another directory",
                    path, json["format"].get<int64_t>(), kFormat));
  }
  if (!readable) {
    return DataLossError(fmt::format(
        "the record {}/{} is damaged ({} bytes): keep the directory, and name a new one; 'mosa "
        "adopt' recovers objects that you move from it into the new one's lost+found",
        path, kRecordName, text.size()));
  }
  StoreRecord record;
  record.cluster_name = json["cluster"].get<std::string>();
  record.node_name = json["node"].get<std::string>();
  record.incarnation = json["incarnation"].get<uint64_t>();
  // Older directories do not have these fields.
  if (json.contains("boot") && json["boot"].is_string())
    record.boot_id = json["boot"].get<std::string>();
  const auto flag = [&json](const char* name, bool absent) {
    return json.contains(name) && json[name].is_boolean() ? json[name].get<bool>() : absent;
  };
  record.ended = flag("ended", false);
  record.verifying = flag("verifying", false);
  return record;
}

// Returns true for file systems that do not survive the machine.
bool IsInMemory(int directory_fd) {
  constexpr uint64_t kTmpfs = 0x01021994, kRamfs = 0x858458f6;
  struct statfs status {};
  if (::fstatfs(directory_fd, &status) != 0) return false;
  const auto type = static_cast<uint64_t>(status.f_type);
  return type == kTmpfs || type == kRamfs;
}

class DirectoryStore final : public FdObjectStore {
 public:
  DirectoryStore(std::string path, UniqueFd directory, UniqueFd lock)
      : path_(std::move(path)), directory_(std::move(directory)), lock_(std::move(lock)) {}

  // Reads the record, or makes an empty store.
  Status Prepare(const std::string& node_name, const std::string& boot_id) {
    const SystemMutexLock lock(mutex_);
    boot_id_ = boot_id;
    MOSA_ASSIGN_OR_RETURN(const Names names, ListNames(directory_.get(), "."));
    if (names.contains(kRecordName)) {
      MOSA_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(directory_.get(), kRecordName));
      MOSA_ASSIGN_OR_RETURN(record_, ParseRecord(text, path_));
      if (record_.node_name != node_name) {
        return FailedPreconditionError(
            fmt::format("the object directory {} belongs to node '{}', not to '{}'", path_,
                        record_.node_name, node_name));
      }
    } else {
      for (const std::string& name : names) {
        if (name == kLockName || name == kNewRecordName || name == kObjectsName ||
            name == kAsideName || name == kSumsName)
          continue;
        return FailedPreconditionError(
            fmt::format("the directory {} is not an object directory and holds other files, such "
                        "as '{}': name an empty one",
                        path_, name));
      }
      record_.node_name = node_name;
      MOSA_CHECK(::getrandom(&record_.incarnation, sizeof record_.incarnation, 0) ==
                 sizeof record_.incarnation);
    }
    MOSA_RETURN_IF_ERROR(MakeFanOut());
    syncs_ = !IsInMemory(directory_.get());
    is_after_crash_ = !record_.boot_id.empty() && record_.boot_id != boot_id_ && !record_.ended;
    MOSA_ASSIGN_OR_RETURN(sums_, SumsLog::Open(directory_.get(), kSumsName, is_after_crash_));
    return WriteRecord(directory_.get(), record_);
  }

  SumsLog* sums() override { return sums_.get(); }
  bool is_after_crash() const override { return is_after_crash_; }
  bool syncs() const override { return syncs_; }

  Status MarkRun(RunState state) override {
    const SystemMutexLock lock(mutex_);
    if (state == RunState::kEnded && syncs_ && ::syncfs(directory_.get()) != 0)
      return ErrnoStatus(errno, fmt::format("cannot sync the objects in {}", path_));
    StoreRecord changed = record_;
    changed.boot_id = boot_id_;
    changed.ended = state == RunState::kEnded;
    if (state != RunState::kEnded) changed.verifying = state == RunState::kVerifying;
    MOSA_RETURN_IF_ERROR(WriteRecord(directory_.get(), changed));
    record_ = std::move(changed);
    return OkStatus();
  }

  StoreRecord record() const override {
    const SystemMutexLock lock(mutex_);
    return record_;
  }

  Status SetCluster(const std::string& cluster_name) override {
    const SystemMutexLock lock(mutex_);
    if (record_.cluster_name == cluster_name) return OkStatus();
    if (!record_.cluster_name.empty()) {
      return FailedPreconditionError(
          fmt::format("the object directory {} belongs to cluster '{}', not to '{}'", path_,
                      record_.cluster_name, cluster_name));
    }
    StoreRecord changed = record_;
    changed.cluster_name = cluster_name;
    MOSA_RETURN_IF_ERROR(WriteRecord(directory_.get(), changed));
    record_ = std::move(changed);
    return OkStatus();
  }

  Result<std::vector<StoredObject>> List() override {
    std::vector<StoredObject> objects;
    for (int i = 0; i < kFanOut; ++i) {
      const std::string directory = fmt::format("{:02x}", i);
      MOSA_ASSIGN_OR_RETURN(const Names names, ListNames(objects_.get(), directory.c_str()));
      for (const std::string& name : names) {
        const std::string object_path = fmt::format("{}/{}", directory, name);
        const auto file = ParseObjectName(name);
        const auto object = file && ObjectName(*file) == object_path
                                ? LookAt(objects_.get(), object_path, *file)
                                : std::nullopt;
        if (!object) {
          return FailedPreconditionError(fmt::format("{}/{}/{} is not an object: remove it", path_,
                                                     kObjectsName, object_path));
        }
        objects.push_back(*object);
      }
    }
    SortByFile(objects);
    return objects;
  }

  // Other files in the directory belong to someone else and are left alone.
  Result<std::vector<StoredObject>> ListAside() override {
    std::vector<StoredObject> objects;
    MOSA_ASSIGN_OR_RETURN(const Names names, ListNames(aside_.get(), "."));
    for (const std::string& name : names) {
      const auto file = ParseObjectName(name);
      const auto object =
          file && AsideName(*file) == name ? LookAt(aside_.get(), name, *file) : std::nullopt;
      if (object) objects.push_back(*object);
    }
    SortByFile(objects);
    return objects;
  }

  Status SetAside(FileId file) override {
    return Move(file, {objects_.get(), ObjectName(file)}, {aside_.get(), AsideName(file)}, true);
  }
  Status RestoreAside(FileId file) override {
    return Move(file, {aside_.get(), AsideName(file)}, {objects_.get(), ObjectName(file)}, false);
  }
  Status DiscardAside(FileId file) override {
    if (::unlinkat(aside_.get(), AsideName(file).c_str(), 0) != 0 && errno != ENOENT)
      return ErrnoStatus(
          errno, fmt::format("cannot remove file {} from {}/{}", file.value, path_, kAsideName));
    return OkStatus();
  }
  Result<UniqueFd> OpenAside(FileId file) override {
    UniqueFd fd(::openat(aside_.get(), AsideName(file).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (fd) return fd;
    if (errno == ENOENT) return NotFoundError(fmt::format("file {} is not put aside", file.value));
    return ErrnoStatus(
        errno, fmt::format("cannot open the object of file {} that was put aside", file.value));
  }

  Result<UniqueFd> Open(FileId file, OpenMode mode) override {
    const bool make = mode == OpenMode::kCreate;
    UniqueFd fd(::openat(objects_.get(), ObjectName(file).c_str(),
                         OpenFlags(mode) | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0),
                         S_IRUSR | S_IWUSR));
    if (fd) return fd;
    if (errno == ENOENT)
      return NotFoundError(fmt::format("there is no object of file {}", file.value));
    return ErrnoStatus(errno, fmt::format("cannot open the object of file {}", file.value));
  }

  Status Drop(FileId file) override {
    if (::unlinkat(objects_.get(), ObjectName(file).c_str(), 0) != 0 && errno != ENOENT)
      return ErrnoStatus(errno, fmt::format("cannot remove the object of file {}", file.value));
    return OkStatus();
  }

 private:
  struct Place {
    int directory = -1;
    std::string name;
  };
  // Never replaces an existing object.
  Status Move(FileId file, const Place& from, const Place& to, bool may_be_absent) {
    if (::renameat2(from.directory, from.name.c_str(), to.directory, to.name.c_str(),
                    RENAME_NOREPLACE) == 0)
      return OkStatus();
    if (errno == ENOENT && may_be_absent) return OkStatus();
    if (errno == ENOENT) return NotFoundError(fmt::format("file {} is not put aside", file.value));
    const int error = errno;
    if (error == EEXIST)
      return FailedPreconditionError(
          fmt::format("cannot move the object of file {} in {}: another one is in its place; move "
                      "one of them elsewhere by hand",
                      file.value, path_));
    return ErrnoStatus(error, fmt::format("cannot move the object of file {}", file.value));
  }

  Status MakeFanOut() {
    if (::mkdirat(directory_.get(), kObjectsName, S_IRWXU) != 0 && errno != EEXIST)
      return ErrnoStatus(errno, fmt::format("cannot create {}/{}", path_, kObjectsName));
    objects_ = UniqueFd(
        ::openat(directory_.get(), kObjectsName, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!objects_) return ErrnoStatus(errno, fmt::format("cannot open {}/{}", path_, kObjectsName));
    if (::mkdirat(directory_.get(), kAsideName, S_IRWXU) != 0 && errno != EEXIST)
      return ErrnoStatus(errno, fmt::format("cannot create {}/{}", path_, kAsideName));
    aside_ = UniqueFd(
        ::openat(directory_.get(), kAsideName, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!aside_) return ErrnoStatus(errno, fmt::format("cannot open {}/{}", path_, kAsideName));
    for (int i = 0; i < kFanOut; ++i) {
      const std::string name = fmt::format("{:02x}", i);
      if (::mkdirat(objects_.get(), name.c_str(), S_IRWXU) != 0 && errno != EEXIST)
        return ErrnoStatus(errno, fmt::format("cannot create {}/{}/{}", path_, kObjectsName, name));
    }
    return OkStatus();
  }

  // Constant after Prepare.
  const std::string path_;
  const UniqueFd directory_;
  const UniqueFd lock_;
  UniqueFd objects_;
  UniqueFd aside_;
  std::string boot_id_;
  bool syncs_ = false, is_after_crash_ = false;
  std::unique_ptr<SumsLog> sums_;

  mutable SystemMutex mutex_;
  StoreRecord record_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<ObjectStore>> OpenDirectoryStore(const DirectoryStoreOptions& options) {
  const std::string& path = options.path;
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return ErrnoStatus(errno, fmt::format("cannot create the object directory {}", path));
  UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory)
    return ErrnoStatus(errno, fmt::format("cannot open the object directory {}", path));
  // Checked before the lock file is made, so that a foreign directory stays unchanged.
  MOSA_ASSIGN_OR_RETURN(const Names names, ListNames(directory.get(), "."));
  if (!names.empty() && !names.contains(kRecordName) && !names.contains(kLockName)) {
    return FailedPreconditionError(
        fmt::format("the directory {} is not an object directory and holds other files, such as "
                    "'{}': name an empty one",
                    path, *names.begin()));
  }
  if (::fchmod(directory.get(), S_IRWXU) != 0)
    return ErrnoStatus(errno, fmt::format("cannot make {} private (mode 0700)", path));
  UniqueFd lock(::openat(directory.get(), kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                         S_IRUSR | S_IWUSR));
  if (!lock) return ErrnoStatus(errno, fmt::format("cannot create {}/{}", path, kLockName));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return FailedPreconditionError(
        fmt::format("the object directory {} is in use by another storage node", path));
  }
  auto store = std::make_unique<DirectoryStore>(path, std::move(directory), std::move(lock));
  MOSA_RETURN_IF_ERROR(store->Prepare(options.node_name, options.boot_id));
  return store;
}

}  // namespace mosa::node
