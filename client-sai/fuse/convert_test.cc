#include "client-sai/fuse/convert.h"

#include <fcntl.h>

#include <cerrno>

#include "client-sai/fuse/passthrough.h"
#include "client-sai/fuse/to_errno.h"
#include "gtest/gtest.h"

namespace mosa::sai {
namespace {

TEST(Convert, TimesGoThereAndBack) {
  for (const int64_t ns : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{-1'000'000'001},
                           int64_t{1'700'000'000'123'456'789}}) {
    const timespec t = ToTimespec({ns});
    EXPECT_GE(t.tv_nsec, 0) << ns;
    EXPECT_LT(t.tv_nsec, 1'000'000'000) << ns;
    EXPECT_EQ(FromTimespec(t).ns, ns);
  }
  EXPECT_GT(FromTimespec({INT64_MAX, 999'999'999}).ns, Seconds(9'000'000'000).ns);
}

TEST(Convert, AttributesKeepEveryField) {
  Attributes a;
  a.type = FileType::kDirectory;
  a.permissions = 01755;
  a.uid = 3;
  a.gid = 4;
  a.link_count = 5;
  a.size_bytes = 6;
  a.allocated_bytes = 513;
  a.access_time = {7};
  a.modify_time = {8};
  a.change_time = {9};
  a.birth_time = {10'000'000'011};
  const struct stat s = ToStat(FileId{12}, a);
  EXPECT_EQ(s.st_ino, 12U);
  EXPECT_EQ(s.st_mode, S_IFDIR | 01755U);
  EXPECT_EQ(s.st_uid, 3U);
  EXPECT_EQ(s.st_gid, 4U);
  EXPECT_EQ(s.st_nlink, 5U);
  EXPECT_EQ(s.st_size, 6);
  EXPECT_EQ(s.st_blocks, 2);
  EXPECT_EQ(s.st_atim.tv_nsec, 7);
  EXPECT_EQ(s.st_mtim.tv_nsec, 8);
  EXPECT_EQ(s.st_ctim.tv_nsec, 9);

  const fuse_entry_out e = ToEntryOut({{FileId{12}, a}, Milliseconds(1'500), Seconds(-1)});
  EXPECT_EQ(e.nodeid, 12U);
  EXPECT_EQ(e.entry_valid, 1U);
  EXPECT_EQ(e.entry_valid_nsec, 500'000'000U);
  EXPECT_EQ(e.attr_valid, 0U) << "a time in the past is no time";
  EXPECT_EQ(e.attr.mode, s.st_mode);
  EXPECT_EQ(e.attr.blocks, 2U);

  const kernel::StatxOut x = ToStatx(FileId{12}, {a, Seconds(2)});
  EXPECT_EQ(x.valid_seconds, 2U);
  EXPECT_EQ(x.statx.birth_time.seconds, 10);
  EXPECT_EQ(x.statx.birth_time.nanoseconds, 11U);
  EXPECT_EQ(x.statx.mode, s.st_mode);
}

TEST(Convert, LocksGoThereAndBack) {
  struct Row {
    off_t start;
    off_t length;
    uint64_t last;
  };
  for (const Row& row :
       {Row{0, 0, UINT64_MAX}, Row{0, 1, 0}, Row{10, 5, 14}, Row{7, 0, UINT64_MAX}}) {
    struct flock f {};
    f.l_type = F_WRLCK;
    f.l_start = row.start;
    f.l_len = row.length;
    f.l_pid = 77;
    const Lock lock = ToLock(f, 42);
    EXPECT_EQ(lock.type, LockType::kExclusive);
    EXPECT_EQ(lock.last, row.last);
    EXPECT_EQ(lock.owner, 42U);
    const struct flock back = FromLock(lock);
    EXPECT_EQ(back.l_type, F_WRLCK);
    EXPECT_EQ(back.l_start, row.start);
    EXPECT_EQ(back.l_len, row.length);
    EXPECT_EQ(back.l_pid, 77);
    EXPECT_EQ(NoLock(f).l_type, F_UNLCK);
  }
}

TEST(Convert, EveryReasonHasAnErrno) {
  for (int reason = 0; reason <= static_cast<int>(kErrorReasonLast); ++reason) {
    for (int code = 1; code <= 16; ++code) {
      const int error =
          ToErrno({static_cast<StatusCode>(code), static_cast<ErrorReason>(reason), ""});
      EXPECT_GT(error, 0) << reason << " " << code;
      EXPECT_NE(error, ENOSYS) << reason << " " << code;
    }
  }
  EXPECT_EQ(ToErrno({StatusCode::kInternal, ErrorReason::kNotEmpty, ""}), ENOTEMPTY);
  EXPECT_EQ(ToErrno({StatusCode::kNotFound, ErrorReason::kNone, ""}), ENOENT);
  EXPECT_EQ(ToErrno({StatusCode::kUnavailable, ErrorReason::kNone, ""}), EIO);
  EXPECT_EQ(ToErrno({StatusCode::kUnavailable, ErrorReason::kTimedOut, ""}), ETIMEDOUT);
  EXPECT_EQ(ToErrno({StatusCode::kDataLoss, ErrorReason::kCorrupt, ""}), EIO);
}

TEST(Passthrough, WhatWouldMapADroppedObjectOrStoreIntoOneUnseenIsNotOpened) {
  struct Row {
    bool is_linked, has_the_bytes, is_current;
    uint32_t flags;
    bool expected;
  };
  for (const Row& row :
       {Row{true, false, false, O_RDONLY, true}, Row{false, true, false, O_RDONLY, true},
        Row{false, false, true, O_RDONLY, false}, Row{true, false, true, O_RDWR, true},
        Row{true, true, false, O_RDWR, false}, Row{false, true, true, O_RDWR, false},
        Row{false, false, false, O_WRONLY, true}})
    EXPECT_EQ(MayBeJoined({row.is_linked, row.has_the_bytes, row.is_current}, row.flags),
              row.expected)
        << row.is_linked << row.has_the_bytes << row.is_current << row.flags;
}

TEST(Passthrough, AProtocolHasNothingThatCameWithANewerOne) {
  EXPECT_EQ(~kernel::FlagsOfMinor(38),
            kernel::kDirectIoAllowMmap | kernel::kPassthrough | kernel::kNoExportSupport);
  EXPECT_EQ(~kernel::FlagsOfMinor(39), kernel::kPassthrough | kernel::kNoExportSupport);
  EXPECT_EQ(~kernel::FlagsOfMinor(45), 0U);
}

}  // namespace
}  // namespace mosa::sai
