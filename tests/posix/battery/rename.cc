// rename(2) and renameat2(2).
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

int Rename(const Path& from, const Path& to, unsigned flags) {
  return ::renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
}

}  // namespace

POSIX_CHECK(RenameMovesBytesModeAndIdentity) {
  Put(at("a"), "bytes");
  MUST(::chmod(at("a"), 0604));
  const ino_t inode = Stat(at("a")).st_ino;
  MUST(::rename(at("a"), at("b")));
  WANT(!Exists(at("a")));
  WANT_EQ("bytes", Get(at("b")));
  WANT_EQ(inode, Stat(at("b")).st_ino);
  WANT_EQ(0604u, ModeOf(at("b")));
}

POSIX_CHECK(RenameOfAnAbsentNameFails) {
  Put(at("b"), "kept");
  MUST_FAIL(ENOENT, ::rename(at("a"), at("b")));
  MUST_FAIL(ENOENT, ::rename(at("b"), at("absent/b")));
  WANT_EQ("kept", Get(at("b")));
}

POSIX_CHECK(RenameReplacesAFile) {
  Put(at("a"), "new");
  Put(at("b"), "old and longer");
  MUST(::rename(at("a"), at("b")));
  WANT_EQ("new", Get(at("b")));
  WANT_EQ(1, Names(at.a).size());
}

POSIX_CHECK(RenameOverAnOpenFileKeepsTheOldBytesReadable) {
  Put(at("a"), "new");
  Put(at("b"), Bytes(500'000));
  const Fd old = Open(at("b"), O_RDWR);
  MUST(::rename(at("a"), at("b")));
  WANT_EQ(Bytes(500'000), ReadAt(old, 0, 500'001));
  WANT_EQ(0, Fstat(old).st_nlink);
  WriteAt(old, 0, "still writable");
  WANT_EQ("new", Get(at("b")));
}

POSIX_CHECK(RenameOfAnOpenFileLeavesItsDescriptorsWorking) {
  const Fd fd = Open(at("a"), O_RDWR | O_CREAT);
  WriteAll(fd, "before ");
  MUST(::rename(at("a"), at("b")));
  WriteAll(fd, "after");
  WANT_EQ("before after", Get(at("b")));
}

POSIX_CHECK(RenameBetweenDirectoriesMovesTheName) {
  MakeDirectory(at("d"));
  MakeDirectory(at("e"));
  Put(at("d/f"), "moved");
  MUST(::rename(at("d/f"), at("e/g")));
  WANT_EQ(0, Names(at("d")).size());
  WANT_EQ(std::set<std::string>{"g"}, Names(at("e")));
  WANT_EQ("moved", Get(at("e/g")));
}

POSIX_CHECK(RenameToItselfChangesNothing) {
  Put(at("a"), "same");
  MUST(::rename(at("a"), at("a")));
  WANT_EQ("same", Get(at("a")));
}

POSIX_CHECK(RenameBetweenTwoLinksOfOneFileChangesNothing) {
  Put(at("a"), "same");
  MUST(::link(at("a"), at("b")));
  MUST(::rename(at("a"), at("b")));
  WANT(Exists(at("a")));
  WANT_EQ(2, Stat(at("b")).st_nlink);
}

POSIX_CHECK(RenameNoReplaceRefusesAnExistingTarget) {
  Put(at("a"), "a");
  Put(at("b"), "b");
  MUST_FAIL(EEXIST, Rename(at("a"), at("b"), RENAME_NOREPLACE));
  WANT_EQ("a", Get(at("a")));
  WANT_EQ("b", Get(at("b")));
}

POSIX_CHECK(RenameNoReplaceMovesToAFreeName) {
  Put(at("a"), "a");
  MUST(Rename(at("a"), at("b"), RENAME_NOREPLACE));
  WANT(!Exists(at("a")));
  WANT_EQ("a", Get(at("b")));
}

POSIX_CHECK(RenameNoReplaceHasOneWinnerAmongProcesses) {
  constexpr int kRounds = 30;
  std::vector<Child> racers;
  for (int racer = 0; racer < 3; ++racer) {
    racers.emplace_back([&at, racer] {
      for (int round = 0; round < kRounds; ++round) {
        const Path mine = at(fmt::format("tmp{}.{}", racer, round));
        Put(mine, "");
        if (Rename(mine, at(fmt::format("final{}", round)), RENAME_NOREPLACE) == 0) {
          Put(at(fmt::format("won{}.{}", round, racer)), "");
        } else {
          WANT_EQ(EEXIST, errno);
          MUST(::unlink(mine));
        }
      }
    });
  }
  for (Child& racer : racers) racer.Join();
  WANT_EQ(2 * kRounds, Names(at.a).size());
}

POSIX_CHECK(RenameExchangeSwapsFiles) {
  Put(at("a"), "was a");
  Put(at("b"), "was b");
  MUST(Rename(at("a"), at("b"), RENAME_EXCHANGE));
  WANT_EQ("was b", Get(at("a")));
  WANT_EQ("was a", Get(at("b")));
}

POSIX_CHECK(RenameExchangeSwapsAFileAndADirectory) {
  Put(at("f"), "file");
  MakeDirectory(at("d"));
  Put(at("d/x"), "inside");
  MUST(Rename(at("f"), at("d"), RENAME_EXCHANGE));
  WANT_EQ("inside", Get(at("f/x")));
  WANT_EQ("file", Get(at("d")));
}

POSIX_CHECK(RenameExchangeBetweenDirectoriesKeepsLinkCounts) {
  MakeDirectory(at("p"));
  MakeDirectory(at("p/sub"));
  MakeDirectory(at("q"));
  Put(at("q/f"), "file");
  MUST(Rename(at("p/sub"), at("q/f"), RENAME_EXCHANGE));
  WANT_EQ("file", Get(at("p/sub")));
  WANT(S_ISDIR(Stat(at("q/f")).st_mode));
  WANT_EQ(2, Stat(at("p")).st_nlink);
  WANT_EQ(3, Stat(at("q")).st_nlink);
}

POSIX_CHECK(RenameExchangeNeedsBothNames) {
  Put(at("a"), "a");
  MUST_FAIL(ENOENT, Rename(at("a"), at("absent"), RENAME_EXCHANGE));
  WANT_EQ("a", Get(at("a")));
}

POSIX_CHECK(RenameRefusesContradictingFlags) {
  Put(at("a"), "a");
  Put(at("b"), "b");
  MUST_FAIL(EINVAL, Rename(at("a"), at("b"), RENAME_EXCHANGE | RENAME_NOREPLACE));
}

POSIX_CHECK(RenameMovesADirectoryWithAllBelowIt) {
  MakeDirectory(at("d"));
  MakeDirectory(at("d/e"));
  Put(at("d/e/f"), "deep");
  const Fd open_file = Open(at("d/e/f"), O_RDWR);
  MUST(::rename(at("d"), at("moved")));
  WANT(!Exists(at("d")));
  WANT_EQ("deep", Get(at("moved/e/f")));
  WriteAt(open_file, 0, "DEEP");
  WANT_EQ("DEEP", Get(at("moved/e/f")));
}

POSIX_CHECK(RenameOfADirectoryReplacesAnEmptyOne) {
  MakeDirectory(at("d"));
  Put(at("d/f"), "x");
  MakeDirectory(at("empty"));
  MUST(::rename(at("d"), at("empty")));
  WANT_EQ(std::set<std::string>{"f"}, Names(at("empty")));
}

POSIX_CHECK(RenameOfADirectoryRefusesAFullOne) {
  MakeDirectory(at("d"));
  MakeDirectory(at("full"));
  Put(at("full/f"), "x");
  MUST_FAIL(ENOTEMPTY, ::rename(at("d"), at("full")));
  WANT(Exists(at("full/f")));
}

POSIX_CHECK(RenameBetweenFileAndDirectoryFails) {
  MakeDirectory(at("d"));
  Put(at("f"), "x");
  MUST_FAIL(ENOTDIR, ::rename(at("d"), at("f")));
  MUST_FAIL(EISDIR, ::rename(at("f"), at("d")));
}

POSIX_CHECK(RenameOfADirectoryIntoItselfFails) {
  MakeDirectory(at("d"));
  MakeDirectory(at("d/e"));
  MakeDirectory(at("d/e/f"));
  MUST_FAIL(EINVAL, ::rename(at("d"), at("d/x")));
  MUST_FAIL(EINVAL, ::rename(at("d"), at("d/e/f/g")));
  MUST_FAIL(ENOTEMPTY, ::rename(at("d/e/f"), at("d")));
  MUST_FAIL(EINVAL, Rename(at("d"), at("d/e/f"), RENAME_EXCHANGE));
}

POSIX_CHECK(RenameOfADirectoryUpdatesParentAndLinkCounts) {
  MakeDirectory(at("p"));
  MakeDirectory(at("q"));
  MakeDirectory(at("p/d"));
  WANT_EQ(3, Stat(at("p")).st_nlink);
  MUST(::rename(at("p/d"), at("q/d")));
  WANT_EQ(2, Stat(at("p")).st_nlink);
  WANT_EQ(3, Stat(at("q")).st_nlink);
  WANT_EQ(Stat(at("q")).st_ino, Stat(at("q/d/..")).st_ino);
}

POSIX_CHECK(RenameOfDotAndDotDotFails) {
  MakeDirectory(at("d"));
  MUST_FAIL(EBUSY, ::rename(at("d/."), at("e")));
  MUST_FAIL(EBUSY, ::rename(at("d/.."), at("e")));
}

POSIX_CHECK(RenameMovesTheSymbolicLinkNotItsTarget) {
  Put(at("target"), "x");
  MUST(::symlink("target", at("link")));
  MUST(::rename(at("link"), at("moved")));
  WANT(S_ISLNK(Lstat(at("moved")).st_mode));
  Put(at("f"), "file");
  MUST(::rename(at("f"), at("moved")));
  WANT(S_ISREG(Lstat(at("moved")).st_mode));
  WANT_EQ("x", Get(at("target")));
}

POSIX_CHECK(RenameReducesTheLinkCountOfTheReplacedFile) {
  Put(at("a"), "new");
  Put(at("b"), "old");
  MUST(::link(at("b"), at("other")));
  MUST(::rename(at("a"), at("b")));
  WANT_EQ(1, Stat(at("other")).st_nlink);
  WANT_EQ("old", Get(at("other")));
}

POSIX_CHECK(RenameMovesTheTimesOfBothDirectoriesAndTheChangeTime) {
  MakeDirectory(at("d"));
  MakeDirectory(at("e"));
  Put(at("d/f"), "x");
  const struct stat d = Stat(at("d"));
  const struct stat e = Stat(at("e"));
  const struct stat f = Stat(at("d/f"));
  SleepMs(30);
  MUST(::rename(at("d/f"), at("e/f")));
  WANT(Nanoseconds(Stat(at("d")).st_mtim) > Nanoseconds(d.st_mtim));
  WANT(Nanoseconds(Stat(at("e")).st_mtim) > Nanoseconds(e.st_mtim));
  WANT(Nanoseconds(Stat(at("e/f")).st_ctim) > Nanoseconds(f.st_ctim));
  WANT_EQ(Nanoseconds(f.st_mtim), Nanoseconds(Stat(at("e/f")).st_mtim));
}

POSIX_CHECK(RenameReplacesAtomicallyUnderAConcurrentReader) {
  Put(at("current"), std::string(20'000, 'a'));
  Signal done;
  Child reader([&] {
    int reads = 0;
    while (!done.WaitMs(0)) {
      const std::string text = Get(at("current"));
      WANT_EQ(20'000, text.size());
      WANT(text.find_first_not_of(text[0]) == std::string::npos);
      ++reads;
    }
    WANT(reads > 0);
  });
  for (int turn = 0; turn < 200; ++turn) {
    Put(at("next"), std::string(20'000, static_cast<char>('a' + turn % 26)));
    MUST(::rename(at("next"), at("current")));
  }
  SleepMs(20);
  done.Raise();
  reader.Join();
}

POSIX_CHECK(RenamesOfCrossingDirectoriesNeverMakeACycle) {
  MakeDirectory(at("a"));
  MakeDirectory(at("b"));
  const auto shuffle = [&at](const char* mine, const char* other) {
    const Path inside = at(fmt::format("{}/{}", other, mine));
    for (int turn = 0; turn < 200; ++turn) {
      if (::rename(at(mine), inside) == 0) {
        MUST(::rename(inside, at(mine)));
      } else {
        WANT(errno == ENOENT || errno == EINVAL);
      }
    }
  };
  Child one([&] { shuffle("a", "b"); });
  Child two([&] { shuffle("b", "a"); });
  one.Join();
  two.Join();
  WANT_EQ((std::set<std::string>{"a", "b"}), Names(at.a));
}

}  // namespace mosa::posix
