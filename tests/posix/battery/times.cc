// Times of files: what sets them and how exactly.
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

struct Times {
  int64_t access = 0;
  int64_t modify = 0;
  int64_t change = 0;
};

Times TimesOf(const Path& path) {
  const struct stat now = Lstat(path);
  return {Nanoseconds(now.st_atim), Nanoseconds(now.st_mtim), Nanoseconds(now.st_ctim)};
}

int SetTimes(const Path& path, timespec access, timespec modify, int flags = 0) {
  const timespec times[2] = {access, modify};
  return ::utimensat(AT_FDCWD, path, times, flags);
}

constexpr timespec kNow{.tv_sec = 0, .tv_nsec = UTIME_NOW};
constexpr timespec kOmit{.tv_sec = 0, .tv_nsec = UTIME_OMIT};

int64_t Clock() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return Nanoseconds(now);
}

// Does `act` and says which of the three times of `path` moved, as in "mc".
template <typename Act>
std::string MovedBy(const Path& path, Act act) {
  const Times before = TimesOf(path);
  SleepMs(30);
  act();
  const Times after = TimesOf(path);
  std::string moved;
  if (after.access > before.access) moved += 'a';
  if (after.modify > before.modify) moved += 'm';
  if (after.change > before.change) moved += 'c';
  return moved;
}

}  // namespace

POSIX_CHECK(TimesAreKeptToTheNanosecond) {
  Put(at("f"), "x");
  MUST(SetTimes(at("f"), {1'234'567'890, 123'456'789}, {1'600'000'000, 999'999'999}));
  const Times times = TimesOf(at("f"));
  WANT_EQ(1'234'567'890'123'456'789, times.access);
  WANT_EQ(1'600'000'000'999'999'999, times.modify);
}

POSIX_CHECK(TimesOfDirectoriesAreKeptToTheNanosecond) {
  MakeDirectory(at("d"));
  MUST(SetTimes(at("d"), {1, 2}, {3, 4}));
  const Times times = TimesOf(at("d"));
  WANT_EQ(1'000'000'002, times.access);
  WANT_EQ(3'000'000'004, times.modify);
}

POSIX_CHECK(TimesOfASymbolicLinkAreItsOwn) {
  Put(at("f"), "x");
  MUST(::symlink("f", at("link")));
  const Times before = TimesOf(at("f"));
  MUST(SetTimes(at("link"), {5, 6}, {7, 8}, AT_SYMLINK_NOFOLLOW));
  WANT_EQ(7'000'000'008, TimesOf(at("link")).modify);
  WANT_EQ(before.modify, TimesOf(at("f")).modify);
  MUST(SetTimes(at("link"), {9, 0}, {10, 0}));
  WANT_EQ(10'000'000'000, TimesOf(at("f")).modify);
}

POSIX_CHECK(TimesBefore1970AndAfter2038AreKept) {
  Put(at("f"), "x");
  MUST(SetTimes(at("f"), {-100, 500}, {5'000'000'000, 1}));
  const struct stat now = Stat(at("f"));
  WANT_EQ(-100, now.st_atim.tv_sec);
  WANT_EQ(500, now.st_atim.tv_nsec);
  WANT_EQ(5'000'000'000, now.st_mtim.tv_sec);
}

POSIX_CHECK(OmittedTimesStayAsTheyWere) {
  Put(at("f"), "x");
  MUST(SetTimes(at("f"), {100, 1}, {200, 2}));
  MUST(SetTimes(at("f"), kOmit, {300, 3}));
  WANT_EQ(100'000'000'001, TimesOf(at("f")).access);
  WANT_EQ(300'000'000'003, TimesOf(at("f")).modify);
  MUST(SetTimes(at("f"), {400, 4}, kOmit));
  WANT_EQ(400'000'000'004, TimesOf(at("f")).access);
  WANT_EQ(300'000'000'003, TimesOf(at("f")).modify);
}

POSIX_CHECK(TheTimeNowIsBetweenBeforeAndAfter) {
  Put(at("f"), "x");
  MUST(SetTimes(at("f"), {1, 0}, {1, 0}));
  const int64_t before = Clock() - 50'000'000;
  MUST(SetTimes(at("f"), kNow, kNow));
  const int64_t after = Clock() + 50'000'000;
  const Times times = TimesOf(at("f"));
  WANT(times.access >= before && times.access <= after);
  WANT(times.modify >= before && times.modify <= after);
}

POSIX_CHECK(WrongNanosecondsAreRefused) {
  Put(at("f"), "x");
  MUST_FAIL(EINVAL, SetTimes(at("f"), {0, 1'000'000'000}, {0, 0}));
  MUST_FAIL(EINVAL, SetTimes(at("f"), {0, 0}, {0, -1}));
  MUST_FAIL(ENOENT, SetTimes(at("absent"), kNow, kNow));
}

POSIX_CHECK(SettingTimesMovesTheChangeTime) {
  Put(at("f"), "x");
  const int64_t before = TimesOf(at("f")).change;
  SleepMs(30);
  MUST(SetTimes(at("f"), {1, 0}, {1, 0}));
  WANT(TimesOf(at("f")).change > before);
}

POSIX_CHECK(TimesSetThroughADescriptorSurviveItsClose) {
  {
    const Fd fd = Open(at("f"), O_WRONLY | O_CREAT);
    WriteAll(fd, "written before");
    const timespec times[2] = {{11, 1}, {22, 2}};
    MUST(::futimens(fd, times));
  }
  WANT_EQ(11'000'000'001, TimesOf(at("f")).access);
  WANT_EQ(22'000'000'002, TimesOf(at("f")).modify);
}

POSIX_CHECK(TimesSetWhileAnotherDescriptorHasWrittenSurvive) {
  {
    const Fd fd = Open(at("f"), O_WRONLY | O_CREAT);
    WriteAll(fd, Bytes(300'000));
    MUST(SetTimes(at("f"), {11, 1}, {22, 2}));
    WANT_EQ(22'000'000'002, Nanoseconds(Fstat(fd).st_mtim));
  }
  WANT_EQ(22'000'000'002, TimesOf(at("f")).modify);
}

POSIX_CHECK(ANewFileHasThreeTimesOfNow) {
  const int64_t before = Clock() - 50'000'000;
  Put(at("f"), "");
  const int64_t after = Clock() + 50'000'000;
  const Times times = TimesOf(at("f"));
  for (const int64_t time : {times.access, times.modify, times.change}) {
    WANT(time >= before && time <= after);
  }
}

POSIX_CHECK(AWriteMovesModifyAndChange) {
  Put(at("f"), "x");
  WANT_EQ("mc", MovedBy(at("f"), [&] { WriteAt(Open(at("f"), O_WRONLY), 0, "y"); }));
}

POSIX_CHECK(AWriteThroughADescriptorHeldOpenMovesTheTimesAtOnce) {
  const Fd fd = Open(at("f"), O_WRONLY | O_CREAT);
  WriteAll(fd, "x");
  WANT_EQ("mc", MovedBy(at("f"), [&] { WriteAll(fd, "y"); }));
  WANT_EQ("", MovedBy(at("f"), [&] { Stat(at("f")); }));
}

POSIX_CHECK(CloseWithoutAWriteMovesNothing) {
  Put(at("f"), "x");
  WANT_EQ("", MovedBy(at("f"), [&] { Open(at("f"), O_RDWR); }));
}

POSIX_CHECK(TruncationMovesModifyAndChange) {
  Put(at("f"), "12345");
  WANT_EQ("mc", MovedBy(at("f"), [&] { MUST(::truncate(at("f"), 2)); }));
  WANT_EQ("mc", MovedBy(at("f"), [&] { Open(at("f"), O_WRONLY | O_TRUNC); }));
}

POSIX_CHECK(ChmodMovesOnlyTheChangeTime) {
  Put(at("f"), "x");
  WANT_EQ("c", MovedBy(at("f"), [&] { MUST(::chmod(at("f"), 0600)); }));
}

POSIX_CHECK(ChownMovesOnlyTheChangeTime) {
  Put(at("f"), "x");
  WANT_EQ("c", MovedBy(at("f"), [&] { MUST(::chown(at("f"), ::geteuid(), ::getegid())); }));
}

POSIX_CHECK(CreateAndUnlinkMoveTheDirectory) {
  MakeDirectory(at("d"));
  WANT_EQ("mc", MovedBy(at("d"), [&] { Put(at("d/f"), "x"); }));
  WANT_EQ("mc", MovedBy(at("d"), [&] { MUST(::unlink(at("d/f"))); }));
  WANT_EQ("mc", MovedBy(at("d"), [&] { MakeDirectory(at("d/e")); }));
  WANT_EQ("mc", MovedBy(at("d"), [&] { MUST(::rmdir(at("d/e"))); }));
  WANT_EQ("mc", MovedBy(at("d"), [&] { MUST(::symlink("x", at("d/s"))); }));
}

POSIX_CHECK(AWriteIntoAFileDoesNotMoveItsDirectory) {
  MakeDirectory(at("d"));
  Put(at("d/f"), "x");
  WANT_EQ("", MovedBy(at("d"), [&] { Put(at("d/f"), "yy"); }));
}

POSIX_CHECK(AReadNeverMovesModifyOrChange) {
  Put(at("f"), "x");
  const std::string moved = MovedBy(at("f"), [&] { Get(at("f")); });
  WANT(moved.empty() || moved == "a");
}

POSIX_CHECK(ANewerFileHasALaterModificationTime) {
  Put(at("source"), "x");
  int64_t last = TimesOf(at("source")).modify;
  for (int turn = 0; turn < 20; ++turn) {
    SleepMs(30);
    Put(at("output"), "y");
    const int64_t now = TimesOf(at("output")).modify;
    WANT(now > last);
    last = now;
  }
}

POSIX_CHECK(TouchAndCpKeepTimes) {
  Put(at("f"), "x");
  WANT_EQ(0, RunProgram({"touch", "-d", "2001-02-03 04:05:06.789012345 UTC", at("f")}));
  WANT_EQ(981'173'106'789'012'345, TimesOf(at("f")).modify);
  WANT_EQ(0, RunProgram({"cp", "-p", at("f"), at("copy")}));
  WANT_EQ(981'173'106'789'012'345, TimesOf(at("copy")).modify);
}

POSIX_CHECK(StatxGivesAllBasicFields) {
  Put(at("f"), "12345");
  struct statx all {};
  MUST(::statx(AT_FDCWD, at("f"), 0, STATX_BASIC_STATS, &all));
  WANT_EQ(STATX_BASIC_STATS, all.stx_mask & STATX_BASIC_STATS);
  WANT_EQ(5, all.stx_size);
  WANT_EQ(Stat(at("f")).st_ino, all.stx_ino);
  WANT_EQ(Stat(at("f")).st_mtim.tv_nsec, all.stx_mtime.tv_nsec);
}

}  // namespace mosa::posix
