// copy_file_range(2), sendfile(2), splice(2), and the programs that copy.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

// Copies all of `bytes` from `begin` of one file to `target` of the other in the kernel.
void CopyRange(int from, off_t begin, int to, off_t target, size_t bytes) {
  while (bytes > 0) {
    const ssize_t copied = MUST(::copy_file_range(from, &begin, to, &target, bytes, 0));
    WANT(copied > 0);
    bytes -= static_cast<size_t>(copied);
  }
}

}  // namespace

POSIX_CHECK(CopyFileRangeCopiesAWholeFile) {
  const std::string bytes = Bytes(3'000'001);
  Put(at("a"), bytes);
  const Fd from = Open(at("a"), O_RDONLY);
  const Fd to = Open(at("b"), O_WRONLY | O_CREAT);
  CopyRange(from, 0, to, 0, bytes.size());
  WANT_EQ(bytes, Get(at("b")));
}

POSIX_CHECK(CopyFileRangeCopiesAPartIntoTheMiddle) {
  const std::string bytes = Bytes(500'000);
  std::string expected(600'000, '.');
  Put(at("a"), bytes);
  Put(at("b"), expected);
  CopyRange(Open(at("a"), O_RDONLY), 1'234, Open(at("b"), O_RDWR), 99'999, 300'000);
  expected.replace(99'999, 300'000, bytes, 1'234, 300'000);
  WANT_EQ(expected, Get(at("b")));
}

POSIX_CHECK(CopyFileRangeStopsAtTheEndAndMovesTheOffsets) {
  Put(at("a"), "0123456789");
  const Fd from = Open(at("a"), O_RDONLY);
  const Fd to = Open(at("b"), O_RDWR | O_CREAT);
  MUST(::lseek(from, 4, SEEK_SET));
  WANT_EQ(6, MUST(::copy_file_range(from, nullptr, to, nullptr, 100, 0)));
  WANT_EQ(0, MUST(::copy_file_range(from, nullptr, to, nullptr, 100, 0)));
  WANT_EQ(6, MUST(::lseek(to, 0, SEEK_CUR)));
  WANT_EQ("456789", Get(at("b")));
}

POSIX_CHECK(CopyFileRangeWithinAFileRefusesOverlap) {
  Put(at("f"), Bytes(100'000));
  const Fd fd = Open(at("f"), O_RDWR);
  off_t begin = 0;
  off_t target = 50'000;
  MUST_FAIL(EINVAL, ::copy_file_range(fd, &begin, fd, &target, 60'000, 0));
  CopyRange(fd, 0, fd, 50'000, 50'000);
  WANT_EQ(Bytes(100'000).substr(0, 50'000), Get(at("f")).substr(50'000));
}

POSIX_CHECK(CopyFileRangeRefusesTheWrongDescriptors) {
  Put(at("a"), "x");
  const Fd reader = Open(at("a"), O_RDONLY);
  const Fd writer = Open(at("b"), O_WRONLY | O_CREAT);
  const Fd appender = Open(at("c"), O_WRONLY | O_CREAT | O_APPEND);
  MUST_FAIL(EBADF, ::copy_file_range(writer, nullptr, writer, nullptr, 1, 0));
  MUST_FAIL(EBADF, ::copy_file_range(reader, nullptr, reader, nullptr, 1, 0));
  MUST_FAIL(EBADF, ::copy_file_range(reader, nullptr, appender, nullptr, 1, 0));
}

POSIX_CHECK(CopyFileRangeSeesBytesWrittenAMomentAgo) {
  const Fd from = Open(at("a"), O_RDWR | O_CREAT);
  const Fd to = Open(at("b"), O_RDWR | O_CREAT);
  WriteAll(from, "unsynced");
  CopyRange(from, 0, to, 0, 8);
  WANT_EQ("unsynced", ReadAt(to, 0, 100));
}

POSIX_CHECK(SendfileSendsAFileThroughASocket) {
  const std::string bytes = Bytes(1'000'000);
  Put(at("f"), bytes);
  int ends[2];
  MUST(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  Fd sending(ends[0]);
  const Fd receiving(ends[1]);
  Child sender([&] {
    const Fd fd = Open(at("f"), O_RDONLY);
    off_t offset = 0;
    while (offset < 1'000'000) {
      const size_t rest = static_cast<size_t>(1'000'000 - offset);
      WANT(MUST(::sendfile(sending, fd, &offset, rest)) > 0);
    }
  });
  MUST(sending.Close());
  std::string received(bytes.size(), '\0');
  WANT_EQ(bytes.size(), MUST(::recv(receiving, received.data(), received.size(), MSG_WAITALL)));
  sender.Join();
  WANT_EQ(bytes, received);
}

POSIX_CHECK(SendfileCopiesBetweenFiles) {
  const std::string bytes = Bytes(700'000);
  Put(at("a"), bytes);
  const Fd from = Open(at("a"), O_RDONLY);
  const Fd to = Open(at("b"), O_WRONLY | O_CREAT);
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = MUST(::sendfile(to, from, nullptr, bytes.size() - sent));
    WANT(count > 0);
    sent += static_cast<size_t>(count);
  }
  WANT_EQ(bytes, Get(at("b")));
}

POSIX_CHECK(SpliceMovesBytesThroughAPipe) {
  const std::string bytes = Bytes(400'000);
  Put(at("a"), bytes);
  int ends[2];
  MUST(::pipe2(ends, O_CLOEXEC));
  const Fd out(ends[0]);
  const Fd in(ends[1]);
  const Fd from = Open(at("a"), O_RDONLY);
  const Fd to = Open(at("b"), O_WRONLY | O_CREAT);
  for (;;) {
    ssize_t piped = MUST(::splice(from, nullptr, in, nullptr, 32'768, 0));
    if (piped == 0) break;
    while (piped > 0) {
      piped -= MUST(::splice(out, nullptr, to, nullptr, static_cast<size_t>(piped), 0));
    }
  }
  WANT_EQ(bytes, Get(at("b")));
}

POSIX_CHECK(CpOfATreeIsIdentical) {
  MakeDirectory(at("d"));
  MakeDirectory(at("d/e"));
  Put(at("d/large"), Bytes(2'000'000));
  Put(at("d/e/small"), "small");
  MUST(::symlink("large", at("d/link")));
  MUST(::link(at("d/e/small"), at("d/hard")));
  MUST(::chmod(at("d/large"), 0604));
  WANT_EQ(0, RunProgram({"cp", "-a", at("d"), at("copy")}));
  WANT_EQ(0, RunProgram({"diff", "-r", at("d"), at("copy")}));
  WANT_EQ(Stat(at("copy/hard")).st_ino, Stat(at("copy/e/small")).st_ino);
  WANT(S_ISLNK(Lstat(at("copy/link")).st_mode));
  WANT_EQ(0604u, ModeOf(at("copy/large")));
  WANT_EQ(Nanoseconds(Stat(at("d/large")).st_mtim), Nanoseconds(Stat(at("copy/large")).st_mtim));
}

POSIX_CHECK(TarOfATreeIsIdentical) {
  MakeDirectory(at("d"));
  for (int index = 0; index < 50; ++index) {
    Put(at(fmt::format("d/f{}", index)), Bytes(static_cast<size_t>(index) * 1'000));
  }
  WANT_EQ(0, RunProgram({"tar", "-cf", at("d.tar"), "-C", at.a, "d"}));
  MakeDirectory(at("out"));
  WANT_EQ(0, RunProgram({"tar", "-xf", at("d.tar"), "-C", at("out")}));
  WANT_EQ(0, RunProgram({"diff", "-r", at("d"), at("out/d")}));
}

POSIX_CHECK(MvFromAnotherFileSystemKeepsBytesModeAndTime) {
  if (Stat("/tmp").st_dev == Stat(at.a).st_dev) Skip("/tmp is the same file system");
  const Path outside(fmt::format("/tmp/posix_battery.{}", ::getpid()));
  Put(outside, Bytes(100'000));
  MUST(::chmod(outside, 0640));
  const int64_t modified = Nanoseconds(Stat(outside).st_mtim);
  WANT_EQ(0, RunProgram({"mv", outside, at("f")}));
  WANT(!Exists(outside));
  WANT_EQ(Bytes(100'000), Get(at("f")));
  WANT_EQ(0640u, ModeOf(at("f")));
  WANT_EQ(modified, Nanoseconds(Stat(at("f")).st_mtim));
}

}  // namespace mosa::posix
