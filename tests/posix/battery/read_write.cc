// read(2), write(2) and their relatives; appending; offsets; shared descriptors.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <limits>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {

POSIX_CHECK(WhatIsWrittenIsReadBackAtOnceThroughTheSameDescriptor) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  const std::string bytes = Bytes(3'000'001);
  WriteAll(fd, bytes);
  WANT_EQ(bytes, ReadAt(fd, 0, bytes.size() + 1));
}

POSIX_CHECK(WhatIsWrittenIsSeenByAnotherDescriptorBeforeClose) {
  const Fd writer = Open(at("f"), O_WRONLY | O_CREAT);
  const Fd reader = Open(at("f"), O_RDONLY);
  WriteAll(writer, "unclosed");
  WANT_EQ("unclosed", ReadAt(reader, 0, 100));
  WANT_EQ(8, Stat(at("f")).st_size);
}

POSIX_CHECK(WhatIsWrittenIsSeenByAnotherProcessBeforeClose) {
  const Fd writer = Open(at("f"), O_WRONLY | O_CREAT);
  WriteAll(writer, "first");
  InChild([&] { WANT_EQ("first", Get(at("f"))); });
  WriteAll(writer, " second");
  InChild([&] { WANT_EQ("first second", Get(at("f"))); });
}

POSIX_CHECK(ReadAtTheEndReturnsNothing) {
  Put(at("f"), "12345");
  const Fd fd = Open(at("f"), O_RDONLY);
  char buffer[10];
  WANT_EQ(5, MUST(::read(fd, buffer, sizeof buffer)));
  WANT_EQ(0, MUST(::read(fd, buffer, sizeof buffer)));
  WANT_EQ(0, MUST(::pread(fd, buffer, sizeof buffer, 1 << 20)));
}

POSIX_CHECK(ReadOfNoBytesSucceeds) {
  Put(at("f"), "12345");
  const Fd fd = Open(at("f"), O_RDWR);
  char byte = 0;
  WANT_EQ(0, MUST(::read(fd, &byte, 0)));
  WANT_EQ(0, MUST(::write(fd, &byte, 0)));
  WANT_EQ(5, SizeOf(at("f")));
}

POSIX_CHECK(AReaderAtTheEndSeesWhatIsAddedLater) {
  Put(at("f"), "one");
  const Fd reader = Open(at("f"), O_RDONLY);
  char buffer[10];
  WANT_EQ(3, MUST(::read(reader, buffer, sizeof buffer)));
  WANT_EQ(0, MUST(::read(reader, buffer, sizeof buffer)));
  const Fd writer = Open(at("f"), O_WRONLY | O_APPEND);
  WriteAll(writer, "two");
  WANT_EQ(3, MUST(::read(reader, buffer, sizeof buffer)));
  WANT_EQ("two", std::string(buffer, 3));
}

POSIX_CHECK(PositionedWritesLeaveTheOffsetAlone) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WriteAll(fd, "0123456789");
  WriteAt(fd, 2, "xx");
  WANT_EQ("89", ReadAt(fd, 8, 2));
  WANT_EQ(10, MUST(::lseek(fd, 0, SEEK_CUR)));
  WANT_EQ("01xx456789", Get(at("f")));
}

POSIX_CHECK(SeekReachesEveryPlaceAndRefusesNegativeOnes) {
  Put(at("f"), "0123456789");
  const Fd fd = Open(at("f"), O_RDONLY);
  WANT_EQ(7, MUST(::lseek(fd, -3, SEEK_END)));
  WANT_EQ(5, MUST(::lseek(fd, -2, SEEK_CUR)));
  WANT_EQ(1000, MUST(::lseek(fd, 1000, SEEK_SET)));
  MUST_FAIL(EINVAL, ::lseek(fd, -1, SEEK_SET));
  MUST_FAIL(EINVAL, ::lseek(fd, 0, 99));
  WANT_EQ(1000, MUST(::lseek(fd, 0, SEEK_CUR)));
}

POSIX_CHECK(WritesBeyondTheEndLeaveZeroesBetween) {
  Put(at("f"), "head");
  const Fd fd = Open(at("f"), O_RDWR);
  WriteAt(fd, 100'000, "tail");
  std::string expected(100'000, '\0');
  expected.replace(0, 4, "head");
  WANT_EQ(expected + "tail", Get(at("f")));
}

POSIX_CHECK(OverlappingWritesKeepTheLastBytes) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  std::string expected(2 << 20, '\0');
  for (uint64_t turn = 0; turn < 200; ++turn) {
    const size_t begin = (turn * 7919 * 131) % (expected.size() - 30'000);
    const std::string bytes = Bytes(1 + (turn * 977) % 30'000, turn);
    WriteAt(fd, begin, bytes);
    expected.replace(begin, bytes.size(), bytes);
  }
  expected.resize(static_cast<size_t>(Fstat(fd).st_size));
  WANT_EQ(expected, Get(at("f")));
}

POSIX_CHECK(WritesInReverseOrderMakeTheSameFile) {
  const std::string bytes = Bytes(1 << 20);
  {
    const Fd fd = Open(at("f"), O_WRONLY | O_CREAT);
    for (size_t begin = bytes.size(); begin > 0;) {
      begin -= 4096;
      WriteAt(fd, begin, std::string_view(bytes).substr(begin, 4096));
    }
  }
  WANT_EQ(bytes, Get(at("f")));
}

POSIX_CHECK(BytesWrittenOneByOneReadBack) {
  const std::string bytes = Bytes(20'000);
  Fd fd = Open(at("f"), O_WRONLY | O_CREAT);
  for (const char byte : bytes) WANT_EQ(1, MUST(::write(fd, &byte, 1)));
  MUST(fd.Close());
  WANT_EQ(bytes, Get(at("f")));
}

POSIX_CHECK(GatheredWritesAndScatteredReadsKeepTheirOrder) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  std::string parts[3] = {Bytes(5, 1), Bytes(70'000, 2), Bytes(1, 3)};
  iovec out[3];
  for (int part = 0; part < 3; ++part) out[part] = {parts[part].data(), parts[part].size()};
  WANT_EQ(70'006, MUST(::writev(fd, out, 3)));
  std::string first(30'000, '\0');
  std::string rest(40'006, '\0');
  const iovec in[2] = {{first.data(), first.size()}, {rest.data(), rest.size()}};
  WANT_EQ(70'006, MUST(::preadv(fd, in, 2, 0)));
  WANT_EQ(parts[0] + parts[1] + parts[2], first + rest);
  WANT_EQ(70'006, MUST(::pwritev(fd, out, 3, 10)));
  WANT_EQ(parts[0], ReadAt(fd, 10, 5));
}

POSIX_CHECK(AppendedBytesGoToTheEndWhereverTheOffsetIs) {
  Put(at("f"), "start");
  const Fd fd = Open(at("f"), O_RDWR | O_APPEND);
  MUST(::lseek(fd, 0, SEEK_SET));
  WriteAll(fd, "+end");
  WANT_EQ(9, MUST(::lseek(fd, 0, SEEK_CUR)));
  WANT_EQ("start+end", Get(at("f")));
}

POSIX_CHECK(AppendAfterAnotherWriterGrewTheFileLosesNothing) {
  const Fd one = Open(at("f"), O_WRONLY | O_CREAT | O_APPEND);
  const Fd two = Open(at("f"), O_WRONLY | O_APPEND);
  std::string expected;
  for (int turn = 0; turn < 100; ++turn) {
    const std::string line = fmt::format("line {}\n", turn);
    WriteAll(turn % 2 == 0 ? one : two, line);
    expected += line;
  }
  WANT_EQ(expected, Get(at("f")));
}

POSIX_CHECK(AppendsOfTwoProcessesNeverOverlap) {
  constexpr int kLines = 500;
  const auto append = [&at](char letter) {
    const Fd fd = Open(at("f"), O_WRONLY | O_CREAT | O_APPEND);
    for (int line = 0; line < kLines; ++line) WriteAll(fd, std::string(63, letter) + "\n");
  };
  Child one([&] { append('a'); });
  Child two([&] { append('b'); });
  one.Join();
  two.Join();
  const std::string text = Get(at("f"));
  WANT_EQ(2 * kLines * 64, text.size());
  int of_a = 0;
  for (size_t begin = 0; begin < text.size(); begin += 64) {
    const std::string line = text.substr(begin, 64);
    WANT(line == std::string(63, 'a') + "\n" || line == std::string(63, 'b') + "\n");
    if (line[0] == 'a') ++of_a;
  }
  WANT_EQ(kLines, of_a);
}

POSIX_CHECK(AppendAfterTruncationStartsAtTheNewEnd) {
  const Fd fd = Open(at("f"), O_WRONLY | O_CREAT | O_APPEND);
  WriteAll(fd, "0123456789");
  MUST(::truncate(at("f"), 3));
  WriteAll(fd, "abc");
  WANT_EQ("012abc", Get(at("f")));
}

POSIX_CHECK(AppendModeCanBeTurnedOnLater) {
  Put(at("f"), "12345");
  const Fd fd = Open(at("f"), O_WRONLY);
  MUST(::fcntl(fd, F_SETFL, O_APPEND));
  WriteAll(fd, "6");
  MUST(::fcntl(fd, F_SETFL, 0));
  WriteAt(fd, 0, "x");
  WANT_EQ("x23456", Get(at("f")));
}

POSIX_CHECK(ADuplicatedDescriptorSharesTheOffset) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  Fd copy(MUST(::dup(fd)));
  WriteAll(fd, "abc");
  WriteAll(copy, "def");
  WANT_EQ(6, MUST(::lseek(fd, 0, SEEK_CUR)));
  MUST(copy.Close());
  WriteAll(fd, "g");
  WANT_EQ("abcdefg", Get(at("f")));
}

POSIX_CHECK(AForkedProcessSharesTheOffset) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WriteAll(fd, "parent ");
  InChild([&] { WriteAll(fd, "child "); });
  WriteAll(fd, "parent");
  WANT_EQ("parent child parent", Get(at("f")));
}

POSIX_CHECK(TheDescriptorOfAnExitedProcessLeavesItsBytes) {
  InChild([&] {
    const int fd = ::open(at("f"), O_WRONLY | O_CREAT, 0644);
    WriteAll(fd, Bytes(700'000));
  });
  WANT_EQ(Bytes(700'000), Get(at("f")));
}

POSIX_CHECK(AKilledWriterLeavesWhatItHadWritten) {
  Signal written;
  Child writer([&] {
    const Fd fd = Open(at("f"), O_WRONLY | O_CREAT);
    WriteAll(fd, Bytes(300'000));
    written.Raise();
    ::pause();
  });
  written.Wait();
  MUST(::kill(writer.pid(), SIGKILL));
  bool killed = false;
  try {
    writer.Join();
  } catch (const Failure&) {
    killed = true;
  }
  WANT(killed);
  WANT_EQ(Bytes(300'000), Get(at("f")));
}

POSIX_CHECK(LargeOffsetsAreKeptExactly) {
  constexpr uint64_t kFar = (uint64_t{5} << 32) + 4097;
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WriteAt(fd, kFar, "far");
  WANT_EQ(kFar + 3, Stat(at("f")).st_size);
  WANT_EQ("far", ReadAt(fd, kFar, 10));
  WANT_EQ(std::string(100, '\0'), ReadAt(fd, kFar - 100, 100));
  WANT_EQ(std::string(100, '\0'), ReadAt(fd, uint64_t{1} << 32, 100));
  WANT(Stat(at("f")).st_blocks * 512 < (64 << 20));
}

POSIX_CHECK(AWriteBeyondTheLargestOffsetFails) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  const off_t largest = std::numeric_limits<off_t>::max();
  errno = 0;
  WANT(::pwrite(fd, "xy", 2, largest) < 0);
  WANT(errno == EFBIG || errno == EINVAL);
  MUST_FAIL(EINVAL, ::pwrite(fd, "xy", 2, -1));
  WANT_EQ(0, SizeOf(at("f")));
}

POSIX_CHECK(TheFileSizeLimitOfTheProcessHolds) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 10'000, .rlim_max = 10'000};
  MUST(::setrlimit(RLIMIT_FSIZE, &limit));
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WANT_EQ(10'000, MUST(::write(fd, Bytes(20'000).data(), 20'000)));
  MUST_FAIL(EFBIG, ::write(fd, "x", 1));
  MUST_FAIL(EFBIG, ::ftruncate(fd, 10'001));
  WANT_EQ(10'000, SizeOf(at("f")));
}

POSIX_CHECK(AWriteFromAnUnmappedAddressFails) {
  Put(at("f"), "kept");
  const Fd fd = Open(at("f"), O_RDWR);
  const Mapping unreadable(-1, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);
  MUST_FAIL(EFAULT, ::pwrite(fd, unreadable.data(), 10, 0));
  WANT_EQ("kept", Get(at("f")));
}

POSIX_CHECK(SyncCallsSucceedOnFilesAndDirectories) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WriteAll(fd, "synced");
  MUST(::fsync(fd));
  MUST(::fdatasync(fd));
  MUST(::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
  const Fd directory = Open(at.a, O_RDONLY | O_DIRECTORY);
  MUST(::fsync(directory));
  MUST(::syncfs(directory));
  const Fd reader = Open(at("f"), O_RDONLY);
  MUST(::fsync(reader));
}

POSIX_CHECK(AdviceAndReadAheadChangeNoBytes) {
  const std::string bytes = Bytes(2 << 20);
  Put(at("f"), bytes);
  const Fd fd = Open(at("f"), O_RDONLY);
  for (const int advice : {POSIX_FADV_SEQUENTIAL, POSIX_FADV_RANDOM, POSIX_FADV_WILLNEED,
                           POSIX_FADV_DONTNEED, POSIX_FADV_NOREUSE}) {
    WANT_EQ(0, ::posix_fadvise(fd, 0, 0, advice));
    WANT_EQ(bytes, ReadAt(fd, 0, bytes.size()));
  }
}

POSIX_CHECK(ASixtyFourMegabyteFileReadsBackWhole) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  constexpr uint64_t kPiece = 4 << 20;
  for (uint64_t piece = 0; piece < 16; ++piece) WriteAll(fd, Bytes(kPiece, piece));
  for (uint64_t piece = 16; piece-- > 0;) {
    WANT_EQ(Bytes(kPiece, piece), ReadAt(fd, piece * kPiece, kPiece));
  }
}

POSIX_CHECK(ParallelReadersOfOneFileAllGetItsBytes) {
  const std::string bytes = Bytes(5'000'000);
  Put(at("f"), bytes);
  std::vector<Child> readers;
  for (int count = 0; count < 4; ++count) {
    readers.emplace_back([&] { WANT_EQ(bytes, Get(at("f"))); });
  }
  for (Child& reader : readers) reader.Join();
}

POSIX_CHECK(ParallelWritersOfDisjointRangesAllArrive) {
  Put(at("f"), "");
  constexpr uint64_t kStride = 300'001;
  std::vector<Child> writers;
  for (uint64_t index = 0; index < 4; ++index) {
    writers.emplace_back([&at, index] {
      const Fd fd = Open(at("f"), O_WRONLY);
      WriteAt(fd, index * kStride, Bytes(kStride, index));
    });
  }
  for (Child& writer : writers) writer.Join();
  std::string expected;
  for (uint64_t index = 0; index < 4; ++index) expected += Bytes(kStride, index);
  WANT_EQ(expected, Get(at("f")));
}

}  // namespace mosa::posix
