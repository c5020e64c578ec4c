// truncate(2), fallocate(2), holes.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

constexpr uint64_t kMiB = 1 << 20;

int64_t Allocated(int fd) { return Fstat(fd).st_blocks * 512; }

// fallocate(2); skips where the file system has no such mode.
void Fallocate(int fd, int mode, uint64_t begin, uint64_t bytes, Where where = Where::current()) {
  if (::fallocate(fd, mode, static_cast<off_t>(begin), static_cast<off_t>(bytes)) == 0) return;
  if (errno == EOPNOTSUPP) Skip(fmt::format("no fallocate mode {}", mode));
  Fail(where.file_name(), where.line(),
       fmt::format("fallocate failed: {}", ::strerrorname_np(errno)));
}

}  // namespace

POSIX_CHECK(TruncationCutsTheEndOff) {
  const std::string bytes = Bytes(3'000'000);
  Put(at("f"), bytes);
  MUST(::truncate(at("f"), 1'234'567));
  WANT_EQ(bytes.substr(0, 1'234'567), Get(at("f")));
}

POSIX_CHECK(TruncationUpwardAddsZeroes) {
  Put(at("f"), "head");
  MUST(::truncate(at("f"), 2'000'000));
  WANT_EQ("head" + std::string(1'999'996, '\0'), Get(at("f")));
}

POSIX_CHECK(TruncationDownAndUpShowsZeroesNotTheOldBytes) {
  Put(at("f"), std::string(100'000, 'x'));
  MUST(::truncate(at("f"), 50'001));
  MUST(::truncate(at("f"), 100'000));
  WANT_EQ(std::string(50'001, 'x') + std::string(49'999, '\0'), Get(at("f")));
}

POSIX_CHECK(ManyTruncationsOfAnOpenFileKeepItsBytesRight) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  std::string expected;
  for (uint64_t turn = 1; turn <= 100; ++turn) {
    const size_t bytes = (turn * 7919 * 97) % 3'000'000;
    MUST(::ftruncate(fd, static_cast<off_t>(bytes)));
    expected.resize(bytes);
    WriteAt(fd, bytes / 2, "mark");
    if (expected.size() < bytes / 2 + 4) expected.resize(bytes / 2 + 4);
    expected.replace(bytes / 2, 4, "mark");
    if (turn % 10 == 0) WANT_EQ(expected, Get(at("f")));
  }
}

POSIX_CHECK(TruncationOfAnOpenFileIsSeenByEveryDescriptor) {
  Put(at("f"), "0123456789");
  const Fd one = Open(at("f"), O_RDWR);
  const Fd two = Open(at("f"), O_RDONLY);
  WANT_EQ("0123456789", ReadAt(two, 0, 100));
  MUST(::ftruncate(one, 4));
  WANT_EQ("0123", ReadAt(two, 0, 100));
  WANT_EQ(4, Fstat(two).st_size);
}

POSIX_CHECK(AWriteAtAnOldOffsetAfterTruncationLeavesAHole) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WriteAll(fd, "0123456789");
  MUST(::ftruncate(fd, 0));
  WriteAll(fd, "x");
  WANT_EQ(std::string(10, '\0') + "x", Get(at("f")));
}

POSIX_CHECK(TruncationRefusesWhatIsNotAFile) {
  MakeDirectory(at("d"));
  Put(at("f"), "1234");
  MUST_FAIL(EISDIR, ::truncate(at("d"), 0));
  MUST_FAIL(ENOENT, ::truncate(at("absent"), 0));
  MUST_FAIL(EINVAL, ::truncate(at("f"), -1));
  WANT_EQ("1234", Get(at("f")));
}

POSIX_CHECK(TruncationToTheSameSizeKeepsEverything) {
  const std::string bytes = Bytes(70'000);
  Put(at("f"), bytes);
  MUST(::truncate(at("f"), 70'000));
  WANT_EQ(bytes, Get(at("f")));
}

POSIX_CHECK(TruncationGivesBlocksBack) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WriteAll(fd, Bytes(8 * kMiB));
  MUST(::fsync(fd));
  WANT(Allocated(fd) >= static_cast<int64_t>(8 * kMiB));
  MUST(::ftruncate(fd, kMiB));
  MUST(::fsync(fd));
  WANT(Allocated(fd) <= static_cast<int64_t>(2 * kMiB));
}

POSIX_CHECK(ASparseFileTakesNoSpaceForItsHoles) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  MUST(::ftruncate(fd, 1 << 30));
  WriteAt(fd, 512 * kMiB, "island");
  MUST(::fsync(fd));
  WANT_EQ(1 << 30, Fstat(fd).st_size);
  WANT(Allocated(fd) <= static_cast<int64_t>(4 * kMiB));
  WANT_EQ(std::string(6, '\0') + "island", ReadAt(fd, 512 * kMiB - 6, 12));
}

POSIX_CHECK(AnAllocationGrowsTheFileWithZeroes) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WriteAll(fd, "abc");
  Fallocate(fd, 0, 0, 2 * kMiB);
  WANT_EQ(2 * kMiB, Fstat(fd).st_size);
  WANT_EQ("abc" + std::string(2 * kMiB - 3, '\0'), Get(at("f")));
}

POSIX_CHECK(AnAllocationInsideTheFileKeepsItsBytes) {
  const std::string bytes = Bytes(kMiB);
  Put(at("f"), bytes);
  const Fd fd = Open(at("f"), O_RDWR);
  Fallocate(fd, 0, 1000, 5000);
  WANT_EQ(bytes, Get(at("f")));
}

POSIX_CHECK(AnAllocationThatKeepsTheSizeKeepsIt) {
  Put(at("f"), "abc");
  const Fd fd = Open(at("f"), O_RDWR);
  Fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 2 * kMiB);
  WANT_EQ(3, Fstat(fd).st_size);
  WANT_EQ("abc", Get(at("f")));
}

POSIX_CHECK(PosixFallocateGrowsTheFile) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WANT_EQ(0, ::posix_fallocate(fd, 100, 10'000));
  WANT_EQ(10'100, Fstat(fd).st_size);
  WANT_EQ(std::string(10'100, '\0'), Get(at("f")));
}

POSIX_CHECK(AllocationRefusesWrongArguments) {
  Put(at("f"), "abc");
  const Fd reader = Open(at("f"), O_RDONLY);
  const Fd fd = Open(at("f"), O_RDWR);
  MUST_FAIL(EBADF, ::fallocate(reader, 0, 0, 10));
  MUST_FAIL(EINVAL, ::fallocate(fd, 0, 0, 0));
  MUST_FAIL(EINVAL, ::fallocate(fd, 0, -1, 10));
  WANT_EQ("abc", Get(at("f")));
}

POSIX_CHECK(APunchedHoleReadsAsZeroes) {
  std::string expected = Bytes(4 * kMiB);
  Put(at("f"), expected);
  const Fd fd = Open(at("f"), O_RDWR);
  Fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kMiB - 100, kMiB + 5000);
  expected.replace(kMiB - 100, kMiB + 5000, kMiB + 5000, '\0');
  WANT_EQ(expected, Get(at("f")));
}

POSIX_CHECK(APunchedHoleGivesBlocksBack) {
  Put(at("f"), Bytes(8 * kMiB));
  const Fd fd = Open(at("f"), O_RDWR);
  const int64_t before = Allocated(fd);
  Fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 7 * kMiB);
  MUST(::fsync(fd));
  WANT(Allocated(fd) <= before - static_cast<int64_t>(6 * kMiB));
  WANT_EQ(8 * kMiB, Fstat(fd).st_size);
}

POSIX_CHECK(AHoleAcrossTheEndKeepsTheSize) {
  Put(at("f"), std::string(10'000, 'x'));
  const Fd fd = Open(at("f"), O_RDWR);
  Fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 9'000, kMiB);
  WANT_EQ(10'000, Fstat(fd).st_size);
  WANT_EQ(std::string(9'000, 'x') + std::string(1'000, '\0'), Get(at("f")));
}

POSIX_CHECK(AHoleIsSeenThroughAMapping) {
  Put(at("f"), std::string(kMiB, 'x'));
  const Fd fd = Open(at("f"), O_RDWR);
  const Mapping map(fd, kMiB, PROT_READ, MAP_SHARED);
  WANT_EQ("xxxx", map.Text(100'000, 4));
  Fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096 * 10, 4096 * 20);
  WANT_EQ(std::string(4, '\0'), map.Text(100'000, 4));
}

POSIX_CHECK(AHoleCanBeFilledAgain) {
  Put(at("f"), std::string(2 * kMiB, 'x'));
  const Fd fd = Open(at("f"), O_RDWR);
  Fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kMiB);
  WriteAt(fd, 1000, "filled");
  std::string expected(2 * kMiB, 'x');
  expected.replace(0, kMiB, kMiB, '\0');
  expected.replace(1000, 6, "filled");
  WANT_EQ(expected, Get(at("f")));
}

POSIX_CHECK(AZeroedRangeReadsAsZeroes) {
  std::string expected = Bytes(kMiB);
  Put(at("f"), expected);
  const Fd fd = Open(at("f"), O_RDWR);
  Fallocate(fd, FALLOC_FL_ZERO_RANGE, 5'000, 100'000);
  expected.replace(5'000, 100'000, 100'000, '\0');
  WANT_EQ(expected, Get(at("f")));
}

POSIX_CHECK(SeekFindsDataAndHolesOfASparseFile) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  MUST(::ftruncate(fd, 8 * kMiB));
  WriteAt(fd, 2 * kMiB, Bytes(kMiB));
  WANT_EQ(2 * kMiB, MUST(::lseek(fd, 0, SEEK_DATA)));
  WANT_EQ(3 * kMiB, MUST(::lseek(fd, 2 * kMiB, SEEK_HOLE)));
  WANT_EQ(0, MUST(::lseek(fd, 0, SEEK_HOLE)));
  MUST_FAIL(ENXIO, ::lseek(fd, 3 * kMiB, SEEK_DATA));
}

POSIX_CHECK(SeekFindsTheEndOfAFileWithoutHoles) {
  Put(at("f"), Bytes(kMiB + 5));
  const Fd fd = Open(at("f"), O_RDONLY);
  WANT_EQ(kMiB + 5, MUST(::lseek(fd, 0, SEEK_HOLE)));
  WANT_EQ(100, MUST(::lseek(fd, 100, SEEK_DATA)));
  MUST_FAIL(ENXIO, ::lseek(fd, kMiB + 5, SEEK_DATA));
  MUST_FAIL(ENXIO, ::lseek(fd, kMiB + 5, SEEK_HOLE));
}

POSIX_CHECK(SeekFindsAPunchedHole) {
  Put(at("f"), Bytes(4 * kMiB));
  const Fd fd = Open(at("f"), O_RDWR);
  Fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kMiB, kMiB);
  WANT_EQ(kMiB, MUST(::lseek(fd, 0, SEEK_HOLE)));
  WANT_EQ(2 * kMiB, MUST(::lseek(fd, kMiB, SEEK_DATA)));
}

POSIX_CHECK(SeekFindsDataThatIsNotYetSynced) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WriteAt(fd, kMiB, "fresh");
  const off_t data = MUST(::lseek(fd, 0, SEEK_DATA));
  WANT(data <= static_cast<off_t>(kMiB));
  WANT_EQ(kMiB + 5, MUST(::lseek(fd, kMiB, SEEK_HOLE)));
}

POSIX_CHECK(CpKeepsASparseFileSparse) {
  {
    const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
    MUST(::ftruncate(fd, 64 * kMiB));
    WriteAt(fd, 32 * kMiB, "island");
  }
  WANT_EQ(0, RunProgram({"cp", "--sparse=auto", at("f"), at("copy")}));
  WANT_EQ(64 * kMiB, SizeOf(at("copy")));
  WANT(Stat(at("copy")).st_blocks * 512 < static_cast<int64_t>(8 * kMiB));
  WANT_EQ(0, RunProgram({"cmp", at("f"), at("copy")}));
}

}  // namespace mosa::posix
