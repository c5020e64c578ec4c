// Additions to the FUSE protocol after minor 38, the newest that the <linux/fuse.h> of all
// supported distributions describes. Layouts and numbers are those of Linux 6.18 (minor 45). The
// number on a line is the minor that introduced it.
#ifndef MOSA_CLIENT_SAI_FUSE_KERNEL_PROTOCOL_H_
#define MOSA_CLIENT_SAI_FUSE_KERNEL_PROTOCOL_H_

#include <linux/fuse.h>
#include <sys/ioctl.h>

#include <cstdint>

namespace mosa::sai::kernel {

inline constexpr uint32_t kMinorNewest = 45;

// Bits of FUSE_INIT's 64-bit flags.
inline constexpr uint64_t kDirectIoAllowMmap = uint64_t{1} << 36;  // 39
inline constexpr uint64_t kPassthrough = uint64_t{1} << 37;        // 40
inline constexpr uint64_t kNoExportSupport = uint64_t{1} << 38;    // 40

inline constexpr uint32_t kOpenPassthrough = 1U << 7;  // 40: FOPEN_PASSTHROUGH

// The FUSE_INIT flags of this file that a protocol with that minor version has.
inline constexpr uint64_t FlagsOfMinor(uint32_t minor) {
  uint64_t newer = 0;
  if (minor < 39) newer |= kDirectIoAllowMmap;
  if (minor < 40) newer |= kPassthrough | kNoExportSupport;
  return ~newer;
}

// The first minor whose kernels (6.6) drop the pages touched by a direct write before sending it.
// Older kernels drop none.
inline constexpr uint32_t kMinorOfDroppedPages = 39;

// The first minor with FUSE_NOTIFY_INC_EPOCH, which is not negotiated.
inline constexpr uint32_t kMinorOfEpoch = 44;
inline constexpr int32_t kNotifyIncrementEpoch = 8;  // 44

inline constexpr uint32_t kOpcodeStatx = 52;  // 39

struct InitOut {
  uint32_t major;
  uint32_t minor;
  uint32_t max_readahead;
  uint32_t flags;
  uint16_t max_background;
  uint16_t congestion_threshold;
  uint32_t max_write;
  uint32_t time_gran;
  uint16_t max_pages;
  uint16_t map_alignment;
  uint32_t flags2;
  uint32_t max_stack_depth;  // 40
  uint32_t unused[6];
};
static_assert(sizeof(InitOut) == 64);

struct OpenOut {
  uint64_t handle;
  uint32_t open_flags;
  int32_t backing_id;  // 40
};
static_assert(sizeof(OpenOut) == 16);

struct CreateOut {
  fuse_entry_out entry;
  OpenOut open;
};

struct BackingMap {  // 40
  int32_t descriptor;
  uint32_t flags;
  uint64_t padding;
};
inline constexpr unsigned long kBackingOpen = _IOW(229, 1, BackingMap);  // 40
inline constexpr unsigned long kBackingClose = _IOW(229, 2, uint32_t);   // 40

struct StatxTime {  // 39
  int64_t seconds;
  uint32_t nanoseconds;
  int32_t reserved;
};
struct Statx {  // 39: struct statx of statx(2)
  uint32_t mask;
  uint32_t block_bytes;
  uint64_t attributes;
  uint32_t link_count;
  uint32_t uid;
  uint32_t gid;
  uint16_t mode;
  uint16_t spare0;
  uint64_t inode;
  uint64_t size_bytes;
  uint64_t blocks;
  uint64_t attributes_mask;
  StatxTime access_time;
  StatxTime birth_time;
  StatxTime change_time;
  StatxTime modify_time;
  uint32_t device_major;
  uint32_t device_minor;
  uint32_t filesystem_major;
  uint32_t filesystem_minor;
  uint64_t spare1[14];
};
static_assert(sizeof(Statx) == 256);
struct StatxOut {  // 39
  uint64_t valid_seconds;
  uint32_t valid_nanoseconds;
  uint32_t flags;
  uint64_t spare[2];
  Statx statx;
};
static_assert(sizeof(StatxOut) == 288);

}  // namespace mosa::sai::kernel

#endif  // MOSA_CLIENT_SAI_FUSE_KERNEL_PROTOCOL_H_
