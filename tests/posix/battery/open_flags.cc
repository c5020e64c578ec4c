// open(2): what its flags promise.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {

POSIX_CHECK(OpenOfAnAbsentFileFailsWithENOENT) {
  MUST_FAIL(ENOENT, ::open(at("absent"), O_RDONLY));
  MUST_FAIL(ENOENT, ::open(at("absent/file"), O_RDWR | O_CREAT, 0644));
}

POSIX_CHECK(OpenWithCreateMakesAnEmptyRegularFile) {
  Open(at("f"), O_WRONLY | O_CREAT, 0640);
  const struct stat made = Stat(at("f"));
  WANT(S_ISREG(made.st_mode));
  WANT_EQ(0640u, made.st_mode & 07777);
  WANT_EQ(0, made.st_size);
  WANT_EQ(1, made.st_nlink);
  WANT_EQ(::geteuid(), made.st_uid);
}

POSIX_CHECK(OpenWithCreateLeavesAnExistingFileAsItIs) {
  Put(at("f"), "old");
  MUST(::chmod(at("f"), 0600));
  Open(at("f"), O_WRONLY | O_CREAT, 0644);
  WANT_EQ("old", Get(at("f")));
  WANT_EQ(0600u, ModeOf(at("f")));
}

POSIX_CHECK(ExclusiveCreateFailsOnAnythingThatExists) {
  Put(at("file"), "x");
  MakeDirectory(at("directory"));
  MUST(::symlink("nowhere", at("dangling")));
  for (const char* name : {"file", "directory", "dangling"}) {
    MUST_FAIL(EEXIST, ::open(at(name), O_WRONLY | O_CREAT | O_EXCL, 0644));
  }
  WANT(!Exists(at("nowhere")));
}

POSIX_CHECK(ExclusiveCreateHasOneWinnerAmongProcesses) {
  MakeDirectory(at("won"));
  constexpr int kRounds = 40;
  std::vector<Child> racers;
  for (int racer = 0; racer < 4; ++racer) {
    racers.emplace_back([&at, racer] {
      for (int round = 0; round < kRounds; ++round) {
        const int fd = ::open(at(fmt::format("f{}", round)), O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (fd < 0) {
          WANT_EQ(EEXIST, errno);
          continue;
        }
        ::close(fd);
        Put(at(fmt::format("won/{}.{}", round, racer)), "");
      }
    });
  }
  for (Child& racer : racers) racer.Join();
  WANT_EQ(kRounds, Names(at("won")).size());
}

POSIX_CHECK(OpenWithCreateFollowsADanglingSymbolicLink) {
  MUST(::symlink("target", at("link")));
  Put(at("link"), "through the link");
  WANT_EQ("through the link", Get(at("target")));
  WANT(S_ISLNK(Lstat(at("link")).st_mode));
}

POSIX_CHECK(OpenWithTruncateEmptiesTheFileForEveryDescriptor) {
  Put(at("f"), Bytes(100'000));
  const Fd reader = Open(at("f"), O_RDONLY);
  Open(at("f"), O_WRONLY | O_TRUNC);
  WANT_EQ(0, Fstat(reader).st_size);
  WANT_EQ("", ReadAt(reader, 0, 10));
}

POSIX_CHECK(ADescriptorForReadingRefusesWrites) {
  Put(at("f"), "abc");
  const Fd fd = Open(at("f"), O_RDONLY);
  MUST_FAIL(EBADF, ::write(fd, "x", 1));
  MUST_FAIL(EBADF, ::pwrite(fd, "x", 1, 0));
  MUST_FAIL(EINVAL, ::ftruncate(fd, 0));
  WANT_EQ("abc", Get(at("f")));
}

POSIX_CHECK(ADescriptorForWritingRefusesReads) {
  Put(at("f"), "abc");
  const Fd fd = Open(at("f"), O_WRONLY);
  char byte = 0;
  MUST_FAIL(EBADF, ::read(fd, &byte, 1));
  MUST_FAIL(EBADF, ::pread(fd, &byte, 1, 0));
}

POSIX_CHECK(AClosedDescriptorFailsWithEBADF) {
  Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  const int number = fd;
  WANT_EQ(0, fd.Close());
  char byte = 0;
  MUST_FAIL(EBADF, ::read(number, &byte, 1));
  MUST_FAIL(EBADF, ::fsync(number));
  MUST_FAIL(EBADF, ::close(number));
}

POSIX_CHECK(OpenOfADirectoryForWritingFailsWithEISDIR) {
  MakeDirectory(at("d"));
  MUST_FAIL(EISDIR, ::open(at("d"), O_WRONLY));
  MUST_FAIL(EISDIR, ::open(at("d"), O_RDWR));
  MUST_FAIL(EISDIR, ::open(at("d"), O_RDONLY | O_CREAT, 0644));
}

POSIX_CHECK(ADirectoryOpensForReadingAndRefusesRead) {
  MakeDirectory(at("d"));
  const Fd fd = Open(at("d"), O_RDONLY | O_DIRECTORY);
  char byte = 0;
  MUST_FAIL(EISDIR, ::read(fd, &byte, 1));
}

POSIX_CHECK(OpenWithDirectoryFlagRefusesOtherTypes) {
  Put(at("f"), "");
  MUST(::symlink("f", at("link")));
  MUST_FAIL(ENOTDIR, ::open(at("f"), O_RDONLY | O_DIRECTORY));
  MUST_FAIL(ENOTDIR, ::open(at("link"), O_RDONLY | O_DIRECTORY));
}

POSIX_CHECK(AFileAsAnIntermediateComponentFailsWithENOTDIR) {
  Put(at("f"), "");
  struct stat unused {};
  MUST_FAIL(ENOTDIR, ::open(at("f/x"), O_RDONLY));
  MUST_FAIL(ENOTDIR, ::open(at("f/x"), O_WRONLY | O_CREAT, 0644));
  MUST_FAIL(ENOTDIR, ::stat(at("f/"), &unused));
  MUST_FAIL(ENOTDIR, ::mkdir(at("f/x"), 0755));
}

POSIX_CHECK(OpenWithNoFollowRefusesALinkAtTheEndOnly) {
  MakeDirectory(at("d"));
  Put(at("d/f"), "inside");
  MUST(::symlink("d", at("to_directory")));
  MUST(::symlink("d/f", at("to_file")));
  MUST_FAIL(ELOOP, ::open(at("to_file"), O_RDONLY | O_NOFOLLOW));
  const Fd through = Open(at("to_directory/f"), O_RDONLY | O_NOFOLLOW);
  WANT_EQ("inside", ReadAt(through, 0, 100));
}

POSIX_CHECK(APathDescriptorServesStatAndOpenAtButNoData) {
  MakeDirectory(at("d"));
  Put(at("d/f"), "data");
  const Fd directory = Open(at("d"), O_PATH);
  const Fd file(MUST(::openat(directory, "f", O_RDONLY | O_CLOEXEC)));
  WANT_EQ("data", ReadAt(file, 0, 10));
  const Fd path = Open(at("d/f"), O_PATH);
  WANT_EQ(4, Fstat(path).st_size);
  char byte = 0;
  MUST_FAIL(EBADF, ::read(path, &byte, 1));
  MUST_FAIL(EBADF, ::fchmod(path, 0600));
}

POSIX_CHECK(APathDescriptorOfASymbolicLinkIsTheLink) {
  MUST(::symlink("somewhere", at("link")));
  const Fd link = Open(at("link"), O_PATH | O_NOFOLLOW);
  WANT(S_ISLNK(Fstat(link).st_mode));
  std::string text(100, '\0');
  text.resize(static_cast<size_t>(MUST(::readlinkat(link, "", text.data(), text.size()))));
  WANT_EQ("somewhere", text);
}

POSIX_CHECK(ADirectDescriptorReadsAndWritesAlignedBlocks) {
  const int number = ::open(at("f"), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0644);
  if (number < 0 && errno == EINVAL) Skip("no O_DIRECT here");
  const Fd fd(MUST(number));
  constexpr size_t kBytes = 1 << 20;
  const std::unique_ptr<char, void (*)(void*)> buffer(
      static_cast<char*>(std::aligned_alloc(4096, kBytes)), &std::free);
  const std::string bytes = Bytes(kBytes);
  bytes.copy(buffer.get(), kBytes);
  WANT_EQ(kBytes, MUST(::pwrite(fd, buffer.get(), kBytes, 0)));
  WANT_EQ(4096, MUST(::pwrite(fd, buffer.get(), 4096, 8192)));
  std::fill_n(buffer.get(), kBytes, '\0');
  WANT_EQ(kBytes, MUST(::pread(fd, buffer.get(), kBytes, 0)));
  std::string expected = bytes;
  expected.replace(8192, 4096, bytes, 0, 4096);
  WANT_EQ(expected, std::string(buffer.get(), kBytes));
  WANT_EQ(expected, Get(at("f")));
}

POSIX_CHECK(ADirectDescriptorSeesWhatBufferedOnesWroteAndTheReverse) {
  Put(at("f"), std::string(16384, 'a'));
  const int number = ::open(at("f"), O_RDWR | O_DIRECT | O_CLOEXEC);
  if (number < 0 && errno == EINVAL) Skip("no O_DIRECT here");
  const Fd direct(MUST(number));
  const Fd buffered = Open(at("f"), O_RDWR);
  const std::unique_ptr<char, void (*)(void*)> buffer(
      static_cast<char*>(std::aligned_alloc(4096, 4096)), &std::free);
  WriteAt(buffered, 4096, std::string(4096, 'b'));
  WANT_EQ(4096, MUST(::pread(direct, buffer.get(), 4096, 4096)));
  WANT(buffer.get()[4095] == 'b');
  std::fill_n(buffer.get(), 4096, 'c');
  WANT_EQ(4096, MUST(::pwrite(direct, buffer.get(), 4096, 8192)));
  WANT_EQ(std::string(4096, 'c'), ReadAt(buffered, 8192, 4096));
}

// Where the store has no O_TMPFILE it must say EOPNOTSUPP, and programs then use a name.
POSIX_CHECK(ATemporaryFileWithoutANameWorksOrIsRefusedClearly) {
  const int number = ::open(at.a.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (number < 0) {
    WANT_EQ(EOPNOTSUPP, errno);
    return;
  }
  const Fd fd(number);
  WriteAll(fd, "nameless");
  WANT_EQ("nameless", ReadAt(fd, 0, 100));
  WANT_EQ(0, Fstat(fd).st_nlink);
  WANT_EQ(0, Names(at.a).size());
}

POSIX_CHECK(ATemporaryFileWithoutANameCanBeGivenOne) {
  const int number = ::open(at.a.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (number < 0 && errno == EOPNOTSUPP) Skip("no O_TMPFILE here");
  const Fd fd(MUST(number));
  WriteAll(fd, "now named");
  const std::string self = fmt::format("/proc/self/fd/{}", static_cast<int>(fd));
  MUST(::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, at("named"), AT_SYMLINK_FOLLOW));
  WANT_EQ("now named", Get(at("named")));
  WANT_EQ(1, Stat(at("named")).st_nlink);
}

POSIX_CHECK(TheStatusFlagsAreThoseOfTheOpen) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT | O_APPEND);
  const int flags = MUST(::fcntl(fd, F_GETFL));
  WANT_EQ(O_RDWR, flags & O_ACCMODE);
  WANT((flags & O_APPEND) != 0);
  MUST(::fcntl(fd, F_SETFL, flags & ~O_APPEND));
  WANT((MUST(::fcntl(fd, F_GETFL)) & O_APPEND) == 0);
}

POSIX_CHECK(AFileCreatedReadOnlyIsWritableThroughItsFirstDescriptor) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT | O_EXCL, 0444);
  WriteAll(fd, "written once");
  WANT_EQ("written once", Get(at("f")));
  WANT_EQ(0444u, ModeOf(at("f")));
}

POSIX_CHECK(AFileCreatedWithModeZeroIsWritableThroughItsFirstDescriptor) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT | O_EXCL, 0);
  WriteAll(fd, "secret");
  WANT_EQ("secret", ReadAt(fd, 0, 10));
  WANT_EQ(0u, ModeOf(at("f")));
}

POSIX_CHECK(ManyDescriptorsOfOneFileSeeTheSameBytes) {
  Put(at("f"), "0");
  std::vector<Fd> descriptors;
  for (int count = 0; count < 100; ++count) descriptors.push_back(Open(at("f"), O_RDWR));
  WriteAt(descriptors[57], 0, "new bytes");
  for (const Fd& fd : descriptors) WANT_EQ("new bytes", ReadAt(fd, 0, 100));
}

POSIX_CHECK(OpenAtResolvesRelativeToTheDirectoryEvenWhenItMoved) {
  MakeDirectory(at("d"));
  const Fd directory = Open(at("d"), O_RDONLY | O_DIRECTORY);
  MUST(::rename(at("d"), at("moved")));
  const Fd file(MUST(::openat(directory, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)));
  WriteAll(file, "here");
  WANT_EQ("here", Get(at("moved/f")));
}

POSIX_CHECK(SynchronousWritesReadBack) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT | O_SYNC);
  const Fd data = Open(at("g"), O_RDWR | O_CREAT | O_DSYNC);
  for (int count = 0; count < 10; ++count) {
    WriteAll(fd, "line\n");
    WriteAll(data, "line\n");
  }
  WANT_EQ(50, SizeOf(at("f")));
  WANT_EQ(Get(at("f")), Get(at("g")));
}

}  // namespace mosa::posix
