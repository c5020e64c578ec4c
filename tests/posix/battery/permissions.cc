// Modes, owners, and who may do what.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

// A directory that everybody may use.
Path Common(const Place& at, mode_t mode = 0777) {
  MakeDirectory(at("common"));
  MUST(::chmod(at("common"), mode));
  return at("common");
}

void PutOf(const Path& path, uid_t owner, mode_t mode) {
  Put(path, "content");
  MUST(::chown(path, owner, owner));
  MUST(::chmod(path, mode));
}

}  // namespace

POSIX_CHECK(ChmodSetsAllTwelveBits) {
  Put(at("f"), "x");
  for (const mode_t mode : {0u, 0777u, 0644u, 04755u, 02755u, 01644u, 07777u}) {
    MUST(::chmod(at("f"), mode));
    WANT_EQ(mode, ModeOf(at("f")));
  }
  const Fd fd = Open(at("f"), O_RDONLY);
  MUST(::fchmod(fd, 0640));
  WANT_EQ(0640u, ModeOf(at("f")));
}

POSIX_CHECK(TheUmaskIsTakenAwayAtCreation) {
  ::umask(027);
  Open(at("f"), O_WRONLY | O_CREAT, 0666);
  MakeDirectory(at("d"), 0777);
  MUST(::mkfifo(at("p"), 0666));
  WANT_EQ(0640u, ModeOf(at("f")));
  WANT_EQ(0750u, ModeOf(at("d")));
  WANT_EQ(0640u, ModeOf(at("p")));
  ::umask(0);
  Open(at("open"), O_WRONLY | O_CREAT, 0666);
  WANT_EQ(0666u, ModeOf(at("open")));
}

POSIX_CHECK(RootMayGiveFilesAway) {
  RequireRoot();
  Put(at("f"), "x");
  MUST(::chown(at("f"), 1234, 5678));
  WANT_EQ(1234, Stat(at("f")).st_uid);
  WANT_EQ(5678, Stat(at("f")).st_gid);
  MUST(::chown(at("f"), static_cast<uid_t>(-1), 99));
  WANT_EQ(1234, Stat(at("f")).st_uid);
  WANT_EQ(99, Stat(at("f")).st_gid);
}

POSIX_CHECK(LchownChangesTheSymbolicLinkItself) {
  RequireRoot();
  Put(at("f"), "x");
  MUST(::symlink("f", at("link")));
  MUST(::lchown(at("link"), 1234, 5678));
  WANT_EQ(1234, Lstat(at("link")).st_uid);
  WANT_EQ(::geteuid(), Stat(at("f")).st_uid);
}

POSIX_CHECK(LargeUserIdsAreKept) {
  RequireRoot();
  Put(at("f"), "x");
  MUST(::chown(at("f"), 3'000'000'000, 4'000'000'000));
  WANT_EQ(3'000'000'000, Stat(at("f")).st_uid);
  WANT_EQ(4'000'000'000, Stat(at("f")).st_gid);
}

POSIX_CHECK(AFileBelongsToWhoMadeIt) {
  const Path common = Common(at);
  AsUser(kNobody, [&] {
    Put(at("common/f"), "mine");
    MakeDirectory(at("common/d"));
    MUST(::symlink("x", at("common/s")));
  });
  for (const char* name : {"common/f", "common/d", "common/s"}) {
    WANT_EQ(kNobody, Lstat(at(name)).st_uid);
    WANT_EQ(kNobody, Lstat(at(name)).st_gid);
  }
}

POSIX_CHECK(AStrangerMayNotReadWhatIsForTheOwner) {
  PutOf(at("f"), 0, 0600);
  AsUser(kNobody, [&] {
    MUST_FAIL(EACCES, ::open(at("f"), O_RDONLY));
    MUST_FAIL(EACCES, ::open(at("f"), O_WRONLY));
    MUST_FAIL(EACCES, ::access(at("f"), R_OK));
    WANT_EQ(7, SizeOf(at("f")));
  });
}

POSIX_CHECK(AStrangerMayReadButNotWriteAWorldReadableFile) {
  PutOf(at("f"), 0, 0644);
  AsUser(kNobody, [&] {
    WANT_EQ("content", Get(at("f")));
    MUST_FAIL(EACCES, ::open(at("f"), O_RDWR));
    MUST_FAIL(EACCES, ::open(at("f"), O_RDONLY | O_TRUNC));
    MUST_FAIL(EACCES, ::truncate(at("f"), 0));
  });
  WANT_EQ("content", Get(at("f")));
}

POSIX_CHECK(AGroupMemberHasTheRightsOfTheGroup) {
  RequireRoot();
  Put(at("f"), "content");
  MUST(::chown(at("f"), 0, 4242));
  MUST(::chmod(at("f"), 0640));
  AsUser(kNobody, [&] { WANT_EQ("content", Get(at("f"))); }, {4242});
  AsUser(kNobody, [&] { MUST_FAIL(EACCES, ::open(at("f"), O_RDONLY)); });
}

POSIX_CHECK(TheOwnerIsJudgedByTheOwnerBitsOnly) {
  RequireRoot();
  PutOf(at("f"), kNobody, 0077);
  AsUser(kNobody, [&] { MUST_FAIL(EACCES, ::open(at("f"), O_RDONLY)); });
  AsUser(kSomebody, [&] { WANT_EQ("content", Get(at("f"))); });
}

POSIX_CHECK(ADirectoryWithoutSearchRightHidesWhatIsBelow) {
  MakeDirectory(at("d"));
  Put(at("d/f"), "x");
  MUST(::chmod(at("d"), 0744));
  AsUser(kNobody, [&] {
    struct stat unused {};
    MUST_FAIL(EACCES, ::stat(at("d/f"), &unused));
    MUST_FAIL(EACCES, ::open(at("d/f"), O_RDONLY));
    MUST_FAIL(EACCES, ::chdir(at("d")));
    WANT_EQ(std::set<std::string>{"f"}, Names(at("d")));
  });
}

POSIX_CHECK(ADirectoryWithoutReadRightIsUsedByName) {
  MakeDirectory(at("d"));
  Put(at("d/f"), "x");
  MUST(::chmod(at("d"), 0711));
  AsUser(kNobody, [&] {
    MUST_FAIL(EACCES, ::open(at("d"), O_RDONLY | O_DIRECTORY));
    WANT_EQ("x", Get(at("d/f")));
  });
}

POSIX_CHECK(ADirectoryWithoutWriteRightTakesNoChange) {
  MakeDirectory(at("d"));
  Put(at("d/f"), "x");
  Common(at);
  AsUser(kNobody, [&] {
    Put(at("common/g"), "y");
    MUST_FAIL(EACCES, ::open(at("d/new"), O_WRONLY | O_CREAT, 0644));
    MUST_FAIL(EACCES, ::mkdir(at("d/new"), 0755));
    MUST_FAIL(EACCES, ::symlink("x", at("d/new")));
    MUST_FAIL(EACCES, ::mkfifo(at("d/new"), 0644));
    MUST_FAIL(EACCES, ::unlink(at("d/f")));
    MUST_FAIL(EACCES, ::rename(at("d/f"), at("common/f")));
    MUST_FAIL(EACCES, ::rename(at("common/g"), at("d/g")));
    MUST_FAIL(EACCES, ::link(at("common/g"), at("d/g")));
  });
  WANT_EQ(std::set<std::string>{"f"}, Names(at("d")));
}

POSIX_CHECK(AStrangerMayUnlinkFromAWritableDirectory) {
  Common(at);
  PutOf(at("common/f"), 0, 0600);
  AsUser(kNobody, [&] { MUST(::unlink(at("common/f"))); });
  WANT(!Exists(at("common/f")));
}

POSIX_CHECK(AStickyDirectoryKeepsStrangersFromOthersFiles) {
  Common(at, 01777);
  PutOf(at("common/f"), kSomebody, 0666);
  AsUser(kNobody, [&] {
    MUST_FAIL(EPERM, ::unlink(at("common/f")));
    MUST_FAIL(EPERM, ::rename(at("common/f"), at("common/g")));
    Put(at("common/mine"), "x");
    MUST_FAIL(EPERM, ::rename(at("common/mine"), at("common/f")));
    MUST(::unlink(at("common/mine")));
  });
  AsUser(kSomebody, [&] { MUST(::unlink(at("common/f"))); });
}

POSIX_CHECK(OnlyTheOwnerChangesTheMode) {
  PutOf(at("f"), kSomebody, 0666);
  AsUser(kNobody, [&] { MUST_FAIL(EPERM, ::chmod(at("f"), 0600)); });
  AsUser(kSomebody, [&] { MUST(::chmod(at("f"), 0600)); });
  WANT_EQ(0600u, ModeOf(at("f")));
}

POSIX_CHECK(OnlyRootGivesFilesAway) {
  RequireRoot();
  PutOf(at("f"), kNobody, 0666);
  AsUser(kNobody, [&] {
    MUST_FAIL(EPERM, ::chown(at("f"), kSomebody, static_cast<gid_t>(-1)));
    MUST_FAIL(EPERM, ::chown(at("f"), static_cast<uid_t>(-1), 4242));
  });
  AsUser(kNobody, [&] { MUST(::chown(at("f"), static_cast<uid_t>(-1), 4242)); }, {4242});
  WANT_EQ(4242, Stat(at("f")).st_gid);
}

POSIX_CHECK(OnlyTheOwnerSetsArbitraryTimes) {
  PutOf(at("f"), kSomebody, 0666);
  const timespec times[2] = {{1, 0}, {1, 0}};
  AsUser(kNobody, [&] {
    MUST_FAIL(EPERM, ::utimensat(AT_FDCWD, at("f"), times, 0));
    MUST(::utimensat(AT_FDCWD, at("f"), nullptr, 0));
  });
  MUST(::chmod(at("f"), 0644));
  AsUser(kNobody, [&] { MUST_FAIL(EACCES, ::utimensat(AT_FDCWD, at("f"), nullptr, 0)); });
  AsUser(kSomebody, [&] { MUST(::utimensat(AT_FDCWD, at("f"), times, 0)); });
}

POSIX_CHECK(AWriteByAStrangerClearsTheSetuidAndSetgidBits) {
  PutOf(at("f"), kSomebody, 06777);
  AsUser(kNobody, [&] { WriteAt(Open(at("f"), O_WRONLY), 0, "x"); });
  WANT_EQ(0777u, ModeOf(at("f")));
}

POSIX_CHECK(AWriteByTheOwnerClearsTheSetuidBit) {
  PutOf(at("f"), kNobody, 04755);
  AsUser(kNobody, [&] { WriteAt(Open(at("f"), O_WRONLY), 0, "x"); });
  WANT_EQ(0755u, ModeOf(at("f")));
}

POSIX_CHECK(ATruncationByAStrangerClearsTheSetuidBit) {
  PutOf(at("f"), kSomebody, 04777);
  AsUser(kNobody, [&] { MUST(::truncate(at("f"), 1)); });
  WANT_EQ(0777u, ModeOf(at("f")));
}

POSIX_CHECK(ChownByAUserClearsTheSetuidBit) {
  PutOf(at("f"), kNobody, 06755);
  AsUser(kNobody, [&] { MUST(::chown(at("f"), static_cast<uid_t>(-1), 4242)); }, {4242});
  WANT_EQ(0755u, ModeOf(at("f")));
}

POSIX_CHECK(ChmodByANonMemberOfTheGroupDropsTheSetgidBit) {
  RequireRoot();
  Put(at("f"), "x");
  MUST(::chown(at("f"), kNobody, 4242));
  AsUser(kNobody, [&] { MUST(::chmod(at("f"), 02755)); });
  WANT_EQ(0755u, ModeOf(at("f")));
}

POSIX_CHECK(ASetgidDirectoryPassesItsGroupOn) {
  RequireRoot();
  MakeDirectory(at("d"));
  MUST(::chown(at("d"), 0, 4242));
  MUST(::chmod(at("d"), 02777));
  AsUser(kNobody, [&] {
    Put(at("d/f"), "x");
    MakeDirectory(at("d/e"));
    Put(at("d/e/g"), "x");
  });
  WANT_EQ(4242, Stat(at("d/f")).st_gid);
  WANT_EQ(4242, Stat(at("d/e")).st_gid);
  WANT_EQ(02755u, ModeOf(at("d/e")));
  WANT_EQ(4242, Stat(at("d/e/g")).st_gid);
}

POSIX_CHECK(ADescriptorOpenedBeforeChmodKeepsItsRights) {
  Common(at);
  AsUser(kNobody, [&] {
    const Fd fd = Open(at("common/f"), O_RDWR | O_CREAT, 0600);
    MUST(::chmod(at("common/f"), 0));
    WriteAll(fd, "still");
    WANT_EQ("still", ReadAt(fd, 0, 10));
    MUST_FAIL(EACCES, ::open(at("common/f"), O_RDONLY));
  });
}

POSIX_CHECK(AFileCreatedReadOnlyByAUserIsWritableThroughItsDescriptor) {
  Common(at);
  AsUser(kNobody, [&] {
    const Fd fd = Open(at("common/f"), O_RDWR | O_CREAT | O_EXCL, 0400);
    WriteAll(fd, "pack file");
    MUST_FAIL(EACCES, ::open(at("common/f"), O_WRONLY));
    WANT_EQ("pack file", Get(at("common/f")));
  });
}

POSIX_CHECK(AccessAnswersByTheRealUser) {
  PutOf(at("f"), 0, 0750);
  WANT_EQ(0, ::access(at("f"), R_OK | W_OK | X_OK));
  MUST_FAIL(ENOENT, ::access(at("absent"), F_OK));
  AsUser(kNobody, [&] {
    WANT_EQ(0, ::access(at("f"), F_OK));
    MUST_FAIL(EACCES, ::access(at("f"), X_OK));
  });
}

POSIX_CHECK(AFileWithoutExecuteBitsIsNotExecuted) {
  Put(at("script"), "#!/bin/sh\nexit 0\n");
  MUST_FAIL(EACCES, ::access(at("script"), X_OK));
  char* const arguments[] = {nullptr};
  MUST_FAIL(EACCES, ::execv(at("script"), arguments));
}

}  // namespace mosa::posix
