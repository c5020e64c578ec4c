// Conversions between Mosa's values and the kernel's: attributes, times, locks. Pure.
#ifndef MOSA_CLIENT_SAI_FUSE_CONVERT_H_
#define MOSA_CLIENT_SAI_FUSE_CONVERT_H_

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>

#include "client-sai/fuse/fuse_api.h"
#include "client-sai/fuse/kernel_protocol.h"
#include "client-sai/sai/filesystem.h"

namespace mosa::sai {

// st_blksize: programs copy in pieces of this size.
inline constexpr uint32_t kPreferredIoBytes = 256 * 1024;

timespec ToTimespec(Time time);
Time FromTimespec(const timespec& time);
double ToSeconds(Duration duration);

// The type bits of st_mode.
uint32_t ModeOfType(FileType type);
struct stat ToStat(FileId file, const Attributes& attributes);
fuse_entry_param ToEntryParam(const EntryResult& result);
fuse_entry_out ToEntryOut(const EntryResult& result);
kernel::StatxOut ToStatx(FileId file, const AttributesResult& result);

// Precondition: `flock.l_whence` is SEEK_SET and l_len >= 0, as the kernel sends it.
Lock ToLock(const struct flock& flock, uint64_t owner);
struct flock FromLock(const Lock& lock);
// The reply to F_GETLK without a conflict.
struct flock NoLock(const struct flock& asked);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_CONVERT_H_
