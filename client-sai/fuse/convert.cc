#include "client-sai/fuse/convert.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <climits>

namespace mosa::sai {

namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr uint64_t kStatBlockBytes = 512;
constexpr uint32_t kStatxBasicAndBirth = 0xfff;  // STATX_BASIC_STATS | STATX_BTIME

// The kernel takes whole seconds and nanoseconds below a second, never negative.
struct Validity {
  uint64_t seconds;
  uint32_t nanoseconds;
};
Validity ToValidity(Duration duration) {
  const int64_t ns = std::max<int64_t>(0, duration.ns);
  return {static_cast<uint64_t>(ns / kNanosecondsPerSecond),
          static_cast<uint32_t>(ns % kNanosecondsPerSecond)};
}

kernel::StatxTime ToStatxTime(Time time) {
  const timespec t = ToTimespec(time);
  return {t.tv_sec, static_cast<uint32_t>(t.tv_nsec), 0};
}

}  // namespace

timespec ToTimespec(Time time) {
  timespec result{};
  result.tv_sec = time.ns / kNanosecondsPerSecond;
  result.tv_nsec = time.ns % kNanosecondsPerSecond;
  if (result.tv_nsec < 0) {
    --result.tv_sec;
    result.tv_nsec += kNanosecondsPerSecond;
  }
  return result;
}

Time FromTimespec(const timespec& time) {
  // Times before 1677 or after 2262 are clamped to what 64 bits of nanoseconds hold.
  constexpr int64_t kSecondsMax = INT64_MAX / kNanosecondsPerSecond - 1;
  const int64_t seconds = std::clamp<int64_t>(time.tv_sec, -kSecondsMax, kSecondsMax);
  return {seconds * kNanosecondsPerSecond + time.tv_nsec};
}

double ToSeconds(Duration duration) {
  return static_cast<double>(std::max<int64_t>(0, duration.ns)) / 1e9;
}

uint32_t ModeOfType(FileType type) {
  switch (type) {
    case FileType::kRegular:
      return S_IFREG;
    case FileType::kDirectory:
      return S_IFDIR;
    case FileType::kSymlink:
      return S_IFLNK;
    case FileType::kFifo:
      return S_IFIFO;
    case FileType::kSocket:
      return S_IFSOCK;
    case FileType::kCharacterDevice:
      return S_IFCHR;
    case FileType::kBlockDevice:
      return S_IFBLK;
  }
  return 0;
}

struct stat ToStat(FileId file, const Attributes& attributes) {
  struct stat result {};
  result.st_ino = file.value;
  result.st_mode = ModeOfType(attributes.type) | attributes.permissions;
  result.st_nlink = attributes.link_count;
  result.st_uid = attributes.uid;
  result.st_gid = attributes.gid;
  result.st_rdev = attributes.device;
  result.st_size = static_cast<off_t>(attributes.size_bytes);
  result.st_blksize = kPreferredIoBytes;
  result.st_blocks =
      static_cast<blkcnt_t>((attributes.allocated_bytes + kStatBlockBytes - 1) / kStatBlockBytes);
  result.st_atim = ToTimespec(attributes.access_time);
  result.st_mtim = ToTimespec(attributes.modify_time);
  result.st_ctim = ToTimespec(attributes.change_time);
  return result;
}

fuse_entry_param ToEntryParam(const EntryResult& result) {
  fuse_entry_param entry{};
  entry.ino = result.entry.file.value;
  entry.attr = ToStat(result.entry.file, result.entry.attributes);
  entry.entry_timeout = ToSeconds(result.entry_valid);
  entry.attr_timeout = ToSeconds(result.attributes_valid);
  return entry;
}

fuse_entry_out ToEntryOut(const EntryResult& result) {
  const struct stat attributes = ToStat(result.entry.file, result.entry.attributes);
  const Validity entry_valid = ToValidity(result.entry_valid);
  const Validity attributes_valid = ToValidity(result.attributes_valid);
  fuse_entry_out out{};
  out.nodeid = result.entry.file.value;
  out.entry_valid = entry_valid.seconds;
  out.entry_valid_nsec = entry_valid.nanoseconds;
  out.attr_valid = attributes_valid.seconds;
  out.attr_valid_nsec = attributes_valid.nanoseconds;
  out.attr.ino = attributes.st_ino;
  out.attr.size = static_cast<uint64_t>(attributes.st_size);
  out.attr.blocks = static_cast<uint64_t>(attributes.st_blocks);
  out.attr.atime = static_cast<uint64_t>(attributes.st_atim.tv_sec);
  out.attr.mtime = static_cast<uint64_t>(attributes.st_mtim.tv_sec);
  out.attr.ctime = static_cast<uint64_t>(attributes.st_ctim.tv_sec);
  out.attr.atimensec = static_cast<uint32_t>(attributes.st_atim.tv_nsec);
  out.attr.mtimensec = static_cast<uint32_t>(attributes.st_mtim.tv_nsec);
  out.attr.ctimensec = static_cast<uint32_t>(attributes.st_ctim.tv_nsec);
  out.attr.mode = attributes.st_mode;
  out.attr.nlink = static_cast<uint32_t>(attributes.st_nlink);
  out.attr.uid = attributes.st_uid;
  out.attr.gid = attributes.st_gid;
  out.attr.rdev = static_cast<uint32_t>(attributes.st_rdev);
  out.attr.blksize = kPreferredIoBytes;
  return out;
}

kernel::StatxOut ToStatx(FileId file, const AttributesResult& result) {
  const Attributes& attributes = result.attributes;
  const Validity valid = ToValidity(result.attributes_valid);
  kernel::StatxOut out{};
  out.valid_seconds = valid.seconds;
  out.valid_nanoseconds = valid.nanoseconds;
  out.statx.mask = kStatxBasicAndBirth;
  out.statx.block_bytes = kPreferredIoBytes;
  out.statx.link_count = attributes.link_count;
  out.statx.uid = attributes.uid;
  out.statx.gid = attributes.gid;
  out.statx.mode = static_cast<uint16_t>(ModeOfType(attributes.type) | attributes.permissions);
  out.statx.inode = file.value;
  out.statx.size_bytes = attributes.size_bytes;
  out.statx.blocks = (attributes.allocated_bytes + kStatBlockBytes - 1) / kStatBlockBytes;
  out.statx.access_time = ToStatxTime(attributes.access_time);
  out.statx.birth_time = ToStatxTime(attributes.birth_time);
  out.statx.change_time = ToStatxTime(attributes.change_time);
  out.statx.modify_time = ToStatxTime(attributes.modify_time);
  out.statx.device_major = major(attributes.device);
  out.statx.device_minor = minor(attributes.device);
  return out;
}

Lock ToLock(const struct flock& flock, uint64_t owner) {
  Lock lock;
  lock.type = flock.l_type == F_RDLCK   ? LockType::kShared
              : flock.l_type == F_WRLCK ? LockType::kExclusive
                                        : LockType::kUnlock;
  lock.begin = static_cast<uint64_t>(flock.l_start);
  lock.last = flock.l_len == 0 ? UINT64_MAX : lock.begin + static_cast<uint64_t>(flock.l_len) - 1;
  lock.owner = owner;
  lock.pid = static_cast<uint32_t>(flock.l_pid);
  return lock;
}

struct flock FromLock(const Lock& lock) {
  struct flock result {};
  result.l_type = lock.type == LockType::kShared      ? F_RDLCK
                  : lock.type == LockType::kExclusive ? F_WRLCK
                                                      : F_UNLCK;
  result.l_whence = SEEK_SET;
  result.l_start = static_cast<off_t>(lock.begin);
  result.l_len = lock.last >= INT64_MAX ? 0 : static_cast<off_t>(lock.last - lock.begin + 1);
  result.l_pid = static_cast<pid_t>(lock.pid);
  return result;
}

struct flock NoLock(const struct flock& asked) {
  struct flock result = asked;
  result.l_type = F_UNLCK;
  return result;
}

}  // namespace mosa::sai
