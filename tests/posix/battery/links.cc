// Hard and symbolic links; unlinking.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

std::string LinkText(const std::string& path) {
  std::string text(PATH_MAX, '\0');
  text.resize(static_cast<size_t>(MUST(::readlink(path.c_str(), text.data(), text.size()))));
  return text;
}

}  // namespace

POSIX_CHECK(AHardLinkIsTheSameFile) {
  Put(at("a"), "one");
  MUST(::link(at("a"), at("b")));
  WANT_EQ(Stat(at("a")).st_ino, Stat(at("b")).st_ino);
  WANT_EQ(2, Stat(at("a")).st_nlink);
  Put(at("b"), "changed");
  WANT_EQ("changed", Get(at("a")));
  MUST(::chmod(at("a"), 0600));
  WANT_EQ(0600u, ModeOf(at("b")));
}

POSIX_CHECK(TheLastNameOfALinkedFileKeepsItsBytes) {
  Put(at("a"), Bytes(200'000));
  MUST(::link(at("a"), at("b")));
  MUST(::unlink(at("a")));
  WANT_EQ(1, Stat(at("b")).st_nlink);
  WANT_EQ(Bytes(200'000), Get(at("b")));
}

POSIX_CHECK(AHardLinkMovesTheChangeTimeOnly) {
  Put(at("a"), "x");
  const struct stat before = Stat(at("a"));
  SleepMs(30);
  MUST(::link(at("a"), at("b")));
  const struct stat after = Stat(at("a"));
  WANT(Nanoseconds(after.st_ctim) > Nanoseconds(before.st_ctim));
  WANT_EQ(Nanoseconds(before.st_mtim), Nanoseconds(after.st_mtim));
}

POSIX_CHECK(AHardLinkRefusesExistingNamesAndDirectories) {
  Put(at("a"), "x");
  Put(at("b"), "y");
  MakeDirectory(at("d"));
  MUST_FAIL(EEXIST, ::link(at("a"), at("b")));
  MUST_FAIL(EEXIST, ::link(at("a"), at("d")));
  MUST_FAIL(EPERM, ::link(at("d"), at("e")));
  MUST_FAIL(ENOENT, ::link(at("absent"), at("c")));
}

POSIX_CHECK(AHardLinkOfASymbolicLinkIsThatLink) {
  MUST(::symlink("nowhere", at("link")));
  MUST(::link(at("link"), at("other")));
  WANT_EQ("nowhere", LinkText(at("other")));
  WANT_EQ(2, Lstat(at("link")).st_nlink);
}

POSIX_CHECK(AFileCanHaveAThousandNames) {
  Put(at("f"), "many");
  for (int count = 0; count < 1000; ++count) {
    MUST(::link(at("f"), at(fmt::format("name{}", count))));
  }
  WANT_EQ(1001, Stat(at("f")).st_nlink);
  WANT_EQ("many", Get(at("name999")));
}

POSIX_CHECK(AnUnlinkedOpenFileCannotBeLinkedAgainByProc) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  MUST(::unlink(at("f")));
  const std::string self = fmt::format("/proc/self/fd/{}", static_cast<int>(fd));
  MUST_FAIL(ENOENT, ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, at("back"), AT_SYMLINK_FOLLOW));
}

POSIX_CHECK(ASymbolicLinkKeepsItsTextExactly) {
  for (const std::string text :
       {"a", "../b/./c//d", "/absolute/path", "ends with space ", "\xff\x01"}) {
    MUST(::symlink(text.c_str(), at("link")));
    WANT_EQ(text, LinkText(at("link")));
    WANT_EQ(text.size(), Lstat(at("link")).st_size);
    MUST(::unlink(at("link")));
  }
}

POSIX_CHECK(ASymbolicLinkOfTheLongestLengthReadsBack) {
  const std::string text(PATH_MAX - 1, 'x');
  MUST(::symlink(text.c_str(), at("link")));
  WANT_EQ(text, LinkText(at("link")));
  const std::string longer(PATH_MAX, 'x');
  MUST_FAIL(ENAMETOOLONG, ::symlink(longer.c_str(), at("other")));
}

POSIX_CHECK(AnEmptySymbolicLinkIsRefused) { MUST_FAIL(ENOENT, ::symlink("", at("link"))); }

POSIX_CHECK(ReadLinkCutsTheTextAtTheBuffer) {
  MUST(::symlink("0123456789", at("link")));
  char buffer[4];
  WANT_EQ(4, MUST(::readlink(at("link"), buffer, sizeof buffer)));
  WANT_EQ("0123", std::string(buffer, 4));
}

POSIX_CHECK(ReadLinkRefusesFilesAndDirectories) {
  Put(at("f"), "");
  char buffer[4];
  MUST_FAIL(EINVAL, ::readlink(at("f"), buffer, sizeof buffer));
  MUST_FAIL(EINVAL, ::readlink(at.a.c_str(), buffer, sizeof buffer));
}

POSIX_CHECK(ALoopOfSymbolicLinksFailsWithELOOP) {
  MUST(::symlink("b", at("a")));
  MUST(::symlink("a", at("b")));
  struct stat unused {};
  MUST_FAIL(ELOOP, ::stat(at("a"), &unused));
  MUST_FAIL(ELOOP, ::open(at("a"), O_RDONLY));
  MUST_FAIL(ELOOP, ::open(at("a/x"), O_RDONLY));
  WANT(S_ISLNK(Lstat(at("a")).st_mode));
}

POSIX_CHECK(AChainOfThirtyNineSymbolicLinksIsFollowed) {
  Put(at("0"), "end of the chain");
  for (int count = 1; count < 40; ++count) {
    MUST(::symlink(fmt::format("{}", count - 1).c_str(), at(fmt::format("{}", count))));
  }
  WANT_EQ("end of the chain", Get(at("39")));
}

POSIX_CHECK(ADanglingSymbolicLinkExistsAndLeadsNowhere) {
  MUST(::symlink("absent", at("link")));
  struct stat unused {};
  MUST_FAIL(ENOENT, ::stat(at("link"), &unused));
  WANT(Exists(at("link")));
  Put(at("absent"), "now there");
  WANT_EQ("now there", Get(at("link")));
}

POSIX_CHECK(ARelativeSymbolicLinkIsResolvedFromItsOwnDirectory) {
  MakeDirectory(at("d"));
  MakeDirectory(at("e"));
  Put(at("d/f"), "neighbour");
  MUST(::symlink("../d/f", at("e/link")));
  WANT_EQ("neighbour", Get(at("e/link")));
}

POSIX_CHECK(UnlinkRemovesTheSymbolicLinkNotItsTarget) {
  Put(at("f"), "kept");
  MUST(::symlink("f", at("link")));
  MUST(::unlink(at("link")));
  WANT(!Exists(at("link")));
  WANT_EQ("kept", Get(at("f")));
}

POSIX_CHECK(ASymbolicLinkRefusesAnExistingName) {
  Put(at("f"), "");
  MUST_FAIL(EEXIST, ::symlink("x", at("f")));
  MUST(::symlink("x", at("link")));
  MUST_FAIL(EEXIST, ::symlink("y", at("link")));
  WANT_EQ("x", LinkText(at("link")));
}

POSIX_CHECK(UnlinkOfAnAbsentNameFails) {
  MUST_FAIL(ENOENT, ::unlink(at("absent")));
  Put(at("f"), "");
  MUST(::unlink(at("f")));
  MUST_FAIL(ENOENT, ::unlink(at("f")));
}

POSIX_CHECK(UnlinkOfADirectoryFails) {
  MakeDirectory(at("d"));
  MUST_FAIL(EISDIR, ::unlink(at("d")));
  WANT(Exists(at("d")));
}

POSIX_CHECK(AnUnlinkedOpenFileStaysReadableAndWritable) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WriteAll(fd, Bytes(400'000));
  MUST(::unlink(at("f")));
  WANT(!Exists(at("f")));
  WANT_EQ(Bytes(400'000), ReadAt(fd, 0, 400'001));
  WriteAt(fd, 400'000, "more");
  MUST(::ftruncate(fd, 400'002));
  WANT_EQ("mo", ReadAt(fd, 400'000, 10));
  WANT_EQ(0, Fstat(fd).st_nlink);
  MUST(::fchmod(fd, 0600));
  WANT_EQ(0600u, Fstat(fd).st_mode & 07777);
}

POSIX_CHECK(ANewFileOfAnUnlinkedNameIsAnotherFile) {
  Put(at("f"), "old");
  const Fd old = Open(at("f"), O_RDWR);
  MUST(::unlink(at("f")));
  Put(at("f"), "brand new");
  WANT_EQ("old", ReadAt(old, 0, 100));
  WriteAt(old, 0, "OLD");
  WANT_EQ("brand new", Get(at("f")));
  WANT(Fstat(old).st_ino != Stat(at("f")).st_ino);
}

POSIX_CHECK(AnUnlinkedOpenFileLeavesNoTraceInItsDirectory) {
  MakeDirectory(at("d"));
  const Fd fd = Open(at("d/f"), O_RDWR | O_CREAT);
  WriteAll(fd, "x");
  MUST(::unlink(at("d/f")));
  WANT_EQ(0, Names(at("d")).size());
  MUST(::rmdir(at("d")));
  WriteAll(fd, "y");
  WANT_EQ("xy", ReadAt(fd, 0, 10));
}

POSIX_CHECK(UnlinkMovesTheChangeTimeOfTheRemainingName) {
  Put(at("a"), "x");
  MUST(::link(at("a"), at("b")));
  const int64_t before = Nanoseconds(Stat(at("b")).st_ctim);
  SleepMs(30);
  MUST(::unlink(at("a")));
  WANT(Nanoseconds(Stat(at("b")).st_ctim) > before);
}

}  // namespace mosa::posix
