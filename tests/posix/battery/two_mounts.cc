// One store, two mounts: what is done through one is seen through the other at once.
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

// The same check in both directions: `one` acts, `two` looks.
template <typename Act>
void BothWays(const Place& at, Act act) {
  const Place there{.a = at.b, .b = at.a, .absolute = at.b};
  MakeDirectory(at("ab"));
  MakeDirectory(at("ba"));
  const auto below = [](const Place& place, const char* name) {
    return Place{.a = place(name), .b = place.Other(name), .absolute = place(name)};
  };
  act(below(at, "ab"));
  act(below(there, "ba"));
}

int RangeLock(int fd, short type, off_t begin, off_t bytes, int command = F_SETLK) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = begin;
  range.l_len = bytes;
  return ::fcntl(fd, command, &range);
}

}  // namespace

POSIX_TWO_MOUNTS_CHECK(AFileWrittenAndClosedIsReadOnTheOtherMount) {
  BothWays(at, [](const Place& place) {
    for (const size_t bytes :
         std::initializer_list<size_t>{0, 1, 1'000, 16'384, 16'385, 3'000'000}) {
      const std::string name = fmt::format("f{}", bytes);
      Put(place(name), Bytes(bytes));
      WANT_EQ(bytes, SizeOf(place.Other(name)));
      WANT_EQ(Bytes(bytes), Get(place.Other(name)));
    }
  });
}

// The kernel clears set-user-id bits only for who has no privileges, in the midst of a write.
POSIX_TWO_MOUNTS_CHECK(AnOrdinaryUsersSmallWritesGoOnWhileTheOtherMountChangesTheFile) {
  Put(at("f"), std::string(64 * 1024, '.'));
  MUST(::chmod(at("f"), 0666));
  Child other([&] {
    for (int turn = 0; turn < 200; ++turn) {
      const Fd fd = Open(at.Other("f"), O_RDWR);
      WriteAt(fd, 60'000, fmt::format("{:04}", turn));
    }
  });
  AsUser(kNobody, [&] {
    for (int turn = 0; turn < 200; ++turn) {
      const Fd fd = Open(at("f"), O_RDWR);
      for (uint64_t page = 0; page < 8; ++page)
        WriteAt(fd, page * 4096 + 100, fmt::format("{:04}", turn));
    }
  });
  other.Join();
  for (const std::string& path : {at("f"), at.Other("f")}) {
    const std::string bytes = Get(path);
    for (uint64_t page = 0; page < 8; ++page) WANT_EQ("0199", bytes.substr(page * 4096 + 100, 4));
    WANT_EQ("0199", bytes.substr(60'000, 4));
  }
}

POSIX_TWO_MOUNTS_CHECK(ANameFoundAbsentIsSeenOnceItIsMade) {
  BothWays(at, [](const Place& place) {
    for (int turn = 0; turn < 30; ++turn) {
      const std::string name = fmt::format("f{}", turn);
      WANT(!Exists(place.Other(name)));
      Put(place(name), name);
      WANT(Exists(place.Other(name)));
      WANT_EQ(name, Get(place.Other(name)));
    }
  });
}

POSIX_TWO_MOUNTS_CHECK(AnUnlinkedNameIsGoneOnTheOtherMount) {
  BothWays(at, [](const Place& place) {
    for (int turn = 0; turn < 30; ++turn) {
      Put(place("f"), "x");
      WANT_EQ("x", Get(place.Other("f")));
      MUST(::unlink(place("f")));
      WANT(!Exists(place.Other("f")));
      MUST_FAIL(ENOENT, ::open(place.Other("f"), O_RDONLY));
    }
  });
}

POSIX_TWO_MOUNTS_CHECK(ARenamedFileIsSeenUnderItsNewNameOnly) {
  BothWays(at, [](const Place& place) {
    Put(place("name0"), "travels");
    for (int turn = 0; turn < 30; ++turn) {
      const std::string old_name = fmt::format("name{}", turn);
      const std::string new_name = fmt::format("name{}", turn + 1);
      WANT(Exists(place.Other(old_name)));
      WANT(!Exists(place.Other(new_name)));
      MUST(::rename(place(old_name), place(new_name)));
      WANT(!Exists(place.Other(old_name)));
      WANT_EQ("travels", Get(place.Other(new_name)));
    }
  });
}

POSIX_TWO_MOUNTS_CHECK(AnExchangeIsSeenOnTheOtherMount) {
  BothWays(at, [](const Place& place) {
    Put(place("a"), "was a");
    Put(place("b"), "was b");
    WANT_EQ("was a", Get(place.Other("a")));
    MUST(::renameat2(AT_FDCWD, place("a"), AT_FDCWD, place("b"), RENAME_EXCHANGE));
    WANT_EQ("was b", Get(place.Other("a")));
    WANT_EQ("was a", Get(place.Other("b")));
  });
}

POSIX_TWO_MOUNTS_CHECK(MadeAndRemovedDirectoriesAreSeenOnTheOtherMount) {
  BothWays(at, [](const Place& place) {
    for (int turn = 0; turn < 20; ++turn) {
      WANT(!Exists(place.Other("d")));
      MakeDirectory(place("d"));
      WANT(S_ISDIR(Stat(place.Other("d")).st_mode));
      Put(place.Other("d/f"), "from the other side");
      WANT_EQ("from the other side", Get(place("d/f")));
      MUST_FAIL(ENOTEMPTY, ::rmdir(place("d")));
      MUST(::unlink(place("d/f")));
      MUST(::rmdir(place.Other("d")));
      WANT(!Exists(place("d")));
    }
  });
}

POSIX_TWO_MOUNTS_CHECK(ARenamedDirectoryTakesItsFilesAlongOnTheOtherMount) {
  BothWays(at, [](const Place& place) {
    MakeDirectory(place("d"));
    Put(place("d/f"), "inside");
    WANT_EQ("inside", Get(place.Other("d/f")));
    MUST(::rename(place("d"), place("e")));
    WANT(!Exists(place.Other("d/f")));
    WANT_EQ("inside", Get(place.Other("e/f")));
  });
}

POSIX_TWO_MOUNTS_CHECK(ListingsAgreeAfterEveryChange) {
  std::set<std::string> names;
  for (int turn = 0; turn < 40; ++turn) {
    const std::string name = fmt::format("f{}", turn);
    Put(turn % 2 == 0 ? at(name) : at.Other(name), "");
    names.insert(name);
    if (turn % 5 == 4) {
      const std::string gone = *names.begin();
      MUST(::unlink(turn % 2 == 0 ? at.Other(gone) : at(gone)));
      names.erase(gone);
    }
    WANT_EQ(names, Names(at.a));
    WANT_EQ(names, Names(at.b));
  }
}

POSIX_TWO_MOUNTS_CHECK(ChangedModesOwnersAndTimesAreSeenOnTheOtherMount) {
  BothWays(at, [](const Place& place) {
    Put(place("f"), "x");
    WANT_EQ(0644u, ModeOf(place.Other("f")));
    MUST(::chmod(place("f"), 0600));
    WANT_EQ(0600u, ModeOf(place.Other("f")));
    const timespec times[2] = {{11, 1}, {22, 2}};
    MUST(::utimensat(AT_FDCWD, place("f"), times, 0));
    WANT_EQ(22'000'000'002, Nanoseconds(Stat(place.Other("f")).st_mtim));
    if (::geteuid() != 0) return;
    MUST(::chown(place("f"), 1234, 5678));
    WANT_EQ(1234, Stat(place.Other("f")).st_uid);
  });
}

POSIX_TWO_MOUNTS_CHECK(RightsTakenAwayHoldOnTheOtherMount) {
  RequireRoot();
  const Path there = at.Other("f");
  const Fd directory = Open(at.b, O_PATH);
  Put(at("f"), "secret");
  AsUser(kNobody, [&] { Fd(MUST(::openat(directory, "f", O_RDONLY))); });
  MUST(::chmod(at("f"), 0600));
  AsUser(kNobody, [&] { MUST_FAIL(EACCES, ::openat(directory, "f", O_RDONLY)); });
  MUST(::chmod(there, 0644));
  AsUser(kNobody, [&] { WANT_EQ("secret", Get(at("f"))); });
}

POSIX_TWO_MOUNTS_CHECK(ATruncationIsSeenOnTheOtherMount) {
  BothWays(at, [](const Place& place) {
    Put(place("f"), std::string(100'000, 'x'));
    WANT_EQ(100'000, Get(place.Other("f")).size());
    MUST(::truncate(place("f"), 10));
    WANT_EQ(std::string(10, 'x'), Get(place.Other("f")));
    MUST(::truncate(place("f"), 50'000));
    WANT_EQ(std::string(10, 'x') + std::string(49'990, '\0'), Get(place.Other("f")));
  });
}

POSIX_TWO_MOUNTS_CHECK(AnOverwrittenFileOfEqualSizeShowsItsNewBytes) {
  BothWays(at, [](const Place& place) {
    for (const size_t bytes : std::initializer_list<size_t>{100, 100'000, 2'000'000}) {
      for (uint64_t turn = 0; turn < 5; ++turn) {
        Put(place("f"), Bytes(bytes, turn));
        WANT_EQ(Bytes(bytes, turn), Get(place.Other("f")));
      }
    }
  });
}

POSIX_TWO_MOUNTS_CHECK(AFileOverwrittenInPlaceShowsItsNewBytes) {
  BothWays(at, [](const Place& place) {
    std::string expected = Bytes(1'000'000);
    Put(place("f"), expected);
    for (uint64_t turn = 0; turn < 10; ++turn) {
      WANT_EQ(expected, Get(place.Other("f")));
      {
        const Fd fd = Open(place("f"), O_WRONLY);
        WriteAt(fd, turn * 90'000, Bytes(5'000, 50 + turn));
      }
      expected.replace(turn * 90'000, 5'000, Bytes(5'000, 50 + turn));
    }
  });
}

POSIX_TWO_MOUNTS_CHECK(MountsTakeTurnsAtOneFile) {
  std::string expected;
  for (int turn = 0; turn < 40; ++turn) {
    const std::string line = fmt::format("turn {}\n", turn);
    const Path path = turn % 2 == 0 ? at("f") : at.Other("f");
    {
      const Fd fd = Open(path, O_RDWR | O_CREAT);
      WANT_EQ(expected, ReadAt(fd, 0, 100'000));
      WriteAt(fd, expected.size(), line);
    }
    expected += line;
  }
}

POSIX_TWO_MOUNTS_CHECK(AppendsOfTwoMountsNeverOverlap) {
  constexpr int kLines = 200;
  const auto append = [](const Path& path, char letter) {
    const Fd fd = Open(path, O_WRONLY | O_CREAT | O_APPEND);
    for (int line = 0; line < kLines; ++line) WriteAll(fd, std::string(63, letter) + "\n");
  };
  Child one([&] { append(at("f"), 'a'); });
  Child two([&] { append(at.Other("f"), 'b'); });
  one.Join();
  two.Join();
  const std::string text = Get(at("f"));
  WANT_EQ(2 * kLines * 64, text.size());
  for (size_t begin = 0; begin < text.size(); begin += 64) {
    const std::string line = text.substr(begin, 64);
    WANT(line == std::string(63, 'a') + "\n" || line == std::string(63, 'b') + "\n");
  }
  WANT_EQ(text, Get(at.Other("f")));
}

POSIX_TWO_MOUNTS_CHECK(ExclusiveCreateHasOneWinnerAcrossMounts) {
  constexpr int kRounds = 40;
  const auto race = [&at](const std::string& directory, const char* racer) {
    for (int round = 0; round < kRounds; ++round) {
      const std::string path = fmt::format("{}/f{}", directory, round);
      const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
      if (fd < 0) {
        WANT_EQ(EEXIST, errno);
        continue;
      }
      ::close(fd);
      Put(at(fmt::format("won{}.{}", round, racer)), "");
    }
  };
  Child one([&] { race(at.a, "a"); });
  Child two([&] { race(at.b, "b"); });
  one.Join();
  two.Join();
  WANT_EQ(2 * kRounds, Names(at.b).size());
}

POSIX_TWO_MOUNTS_CHECK(ARenameOverAFileOpenOnTheOtherMountKeepsItsBytes) {
  BothWays(at, [](const Place& place) {
    Put(place("f"), Bytes(500'000, 1));
    const Fd old = Open(place.Other("f"), O_RDONLY);
    WANT_EQ(Bytes(500'000, 1).substr(0, 10), ReadAt(old, 0, 10));
    Put(place("new"), Bytes(500'000, 2));
    MUST(::rename(place("new"), place("f")));
    WANT_EQ(Bytes(500'000, 1), ReadAt(old, 0, 500'000));
    WANT_EQ(Bytes(500'000, 2), Get(place.Other("f")));
  });
}

POSIX_TWO_MOUNTS_CHECK(AnUnlinkOfAFileOpenOnTheOtherMountKeepsItsBytes) {
  BothWays(at, [](const Place& place) {
    Put(place("f"), Bytes(500'000));
    const Fd open_file = Open(place.Other("f"), O_RDWR);
    MUST(::unlink(place("f")));
    WANT(!Exists(place.Other("f")));
    SleepMs(1'500);
    WANT_EQ(Bytes(500'000), ReadAt(open_file, 0, 500'001));
    WriteAt(open_file, 0, "writable");
    WANT_EQ("writable", ReadAt(open_file, 0, 8));
  });
}

POSIX_TWO_MOUNTS_CHECK(ANewFileOfTheSameNameIsNotTakenForTheOldOne) {
  BothWays(at, [](const Place& place) {
    for (uint64_t turn = 0; turn < 20; ++turn) {
      Put(place("f"), Bytes(10'000, turn));
      WANT_EQ(Bytes(10'000, turn), Get(place.Other("f")));
      MUST(::unlink(turn % 2 == 0 ? place("f") : place.Other("f")));
    }
  });
}

POSIX_TWO_MOUNTS_CHECK(ADirectoryReplacedByAFileIsSeenSo) {
  BothWays(at, [](const Place& place) {
    MakeDirectory(place("x"));
    WANT(S_ISDIR(Stat(place.Other("x")).st_mode));
    MUST(::rmdir(place("x")));
    Put(place("x"), "now a file");
    WANT(S_ISREG(Stat(place.Other("x")).st_mode));
    WANT_EQ("now a file", Get(place.Other("x")));
  });
}

POSIX_TWO_MOUNTS_CHECK(LinksAndTheirCountsAreSeenOnTheOtherMount) {
  BothWays(at, [](const Place& place) {
    Put(place("f"), "x");
    WANT_EQ(1, Stat(place.Other("f")).st_nlink);
    MUST(::link(place("f"), place("g")));
    WANT_EQ(2, Stat(place.Other("f")).st_nlink);
    MUST(::symlink("g", place("s")));
    WANT_EQ("x", Get(place.Other("s")));
    MUST(::unlink(place.Other("g")));
    WANT_EQ(1, Stat(place("f")).st_nlink);
  });
}

POSIX_TWO_MOUNTS_CHECK(AttributesAreSeenOnTheOtherMount) {
  Put(at("f"), "x");
  if (::setxattr(at("f"), "user.a", "1", 1, 0) != 0 && errno == EOPNOTSUPP) {
    Skip("no user attributes here");
  }
  char value = 0;
  WANT_EQ(1, MUST(::getxattr(at.Other("f"), "user.a", &value, 1)));
  MUST(::setxattr(at.Other("f"), "user.a", "2", 1, 0));
  WANT_EQ(1, MUST(::getxattr(at("f"), "user.a", &value, 1)));
  WANT(value == '2');
  MUST(::removexattr(at("f"), "user.a"));
  MUST_FAIL(ENODATA, ::getxattr(at.Other("f"), "user.a", &value, 1));
}

POSIX_TWO_MOUNTS_CHECK(FlockHoldsAcrossMounts) {
  BothWays(at, [](const Place& place) {
    Put(place("f"), "x");
    Fd one = Open(place("f"), O_RDWR);
    const Fd two = Open(place.Other("f"), O_RDWR);
    MUST(::flock(one, LOCK_EX | LOCK_NB));
    MUST_FAIL(EWOULDBLOCK, ::flock(two, LOCK_SH | LOCK_NB));
    MUST(::flock(one, LOCK_SH | LOCK_NB));
    MUST(::flock(two, LOCK_SH | LOCK_NB));
    MUST_FAIL(EWOULDBLOCK, ::flock(two, LOCK_EX | LOCK_NB));
    MUST(one.Close());
    MUST(::flock(two, LOCK_EX));
  });
}

POSIX_TWO_MOUNTS_CHECK(AFlockWaiterOnTheOtherMountIsWoken) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(::flock(fd, LOCK_EX));
  Signal granted;
  Child waiter([&] {
    const Fd own = Open(at.Other("f"), O_RDWR);
    MUST(::flock(own, LOCK_EX));
    granted.Raise();
  });
  WANT(!granted.WaitMs(300));
  MUST(::flock(fd, LOCK_UN));
  WANT(granted.WaitMs(5'000));
  waiter.Join();
}

POSIX_TWO_MOUNTS_CHECK(RangeLocksHoldAcrossMounts) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(RangeLock(fd, F_WRLCK, 0, 100));
  InChild([&] {
    const Fd own = Open(at.Other("f"), O_RDWR);
    errno = 0;
    WANT(RangeLock(own, F_RDLCK, 50, 1) < 0);
    WANT(errno == EAGAIN || errno == EACCES);
    MUST(RangeLock(own, F_WRLCK, 100, 10));
    struct flock range {};
    range.l_type = F_WRLCK;
    MUST(::fcntl(own, F_GETLK, &range));
    WANT_EQ(F_WRLCK, range.l_type);
    WANT_EQ(0, range.l_start);
    WANT_EQ(100, range.l_len);
  });
  MUST(RangeLock(fd, F_UNLCK, 0, 100));
  InChild([&] { MUST(RangeLock(Open(at.Other("f"), O_RDWR), F_WRLCK, 0, 0)); });
}

POSIX_TWO_MOUNTS_CHECK(ARangeLockWaiterOnTheOtherMountIsWoken) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(RangeLock(fd, F_WRLCK, 0, 0));
  Signal granted;
  Child waiter([&] {
    const Fd own = Open(at.Other("f"), O_RDWR);
    MUST(RangeLock(own, F_WRLCK, 10, 10, F_SETLKW));
    granted.Raise();
  });
  WANT(!granted.WaitMs(300));
  MUST(RangeLock(fd, F_UNLCK, 0, 0));
  WANT(granted.WaitMs(5'000));
  waiter.Join();
}

// Granting a lock shows what was written under it, without close on either side.
POSIX_TWO_MOUNTS_CHECK(ALockProtectsACounterOfTwoMounts) {
  Put(at("counter"), "00000");
  constexpr int kTurns = 40;
  const auto count = [](const Path& path) {
    const Fd fd = Open(path, O_RDWR);
    for (int turn = 0; turn < kTurns; ++turn) {
      MUST(RangeLock(fd, F_WRLCK, 0, 0, F_SETLKW));
      WriteAt(fd, 0, fmt::format("{:05}", std::stoi(ReadAt(fd, 0, 5)) + 1));
      MUST(RangeLock(fd, F_UNLCK, 0, 0));
    }
  };
  Child one([&] { count(at("counter")); });
  Child two([&] { count(at.Other("counter")); });
  one.Join();
  two.Join();
  WANT_EQ(fmt::format("{:05}", 2 * kTurns), Get(at("counter")));
}

POSIX_TWO_MOUNTS_CHECK(AMappingMadeAfterReopenShowsTheOtherMountsStores) {
  BothWays(at, [](const Place& place) {
    Put(place("f"), std::string(100'000, '.'));
    for (uint64_t turn = 0; turn < 5; ++turn) {
      {
        const Fd fd = Open(place("f"), O_RDWR);
        const Mapping map(fd, 100'000, PROT_READ | PROT_WRITE, MAP_SHARED);
        map.Write(turn * 10'000, Bytes(5'000, turn));
        MUST(::msync(map.data(), 100'000, MS_SYNC));
      }
      const Fd fd = Open(place.Other("f"), O_RDONLY);
      const Mapping map(fd, 100'000, PROT_READ, MAP_SHARED);
      WANT_EQ(Bytes(5'000, turn), map.Text(turn * 10'000, 5'000));
    }
  });
}

POSIX_TWO_MOUNTS_CHECK(SyncedBytesOfAnOpenFileAreReadOnTheOtherMount) {
  BothWays(at, [](const Place& place) {
    const Fd writer = Open(place("f"), O_WRONLY | O_CREAT);
    WriteAll(writer, Bytes(200'000));
    MUST(::fsync(writer));
    WANT_EQ(Bytes(200'000), Get(place.Other("f")));
    WANT_EQ(200'000, SizeOf(place.Other("f")));
  });
}

POSIX_TWO_MOUNTS_CHECK(AProgramMadeOnOneMountRunsOnTheOther) {
  BothWays(at, [](const Place& place) {
    for (int turn = 0; turn < 5; ++turn) {
      Put(place("script"), fmt::format("#!/bin/sh\nexit {}\n", turn));
      MUST(::chmod(place("script"), 0755));
      WANT_EQ(turn, RunProgram({place.Other("script")}));
    }
  });
}

POSIX_TWO_MOUNTS_CHECK(InodesAreTheSameOnBothMounts) {
  for (int index = 0; index < 50; ++index) {
    const std::string name = fmt::format("f{}", index);
    Put(at(name), "x");
    WANT_EQ(Stat(at(name)).st_ino, Stat(at.Other(name)).st_ino);
  }
}

POSIX_TWO_MOUNTS_CHECK(BothMountsTellTheSameTimes) {
  BothWays(at, [](const Place& place) {
    Put(place("f"), "x");
    const struct stat here = Stat(place("f"));
    const struct stat there = Stat(place.Other("f"));
    WANT_EQ(Nanoseconds(here.st_mtim), Nanoseconds(there.st_mtim));
    WANT_EQ(Nanoseconds(here.st_ctim), Nanoseconds(there.st_ctim));
  });
}

POSIX_TWO_MOUNTS_CHECK(CreatesOfBothMountsInOneDirectoryAllArrive) {
  MakeDirectory(at("d"));
  const auto make = [](const std::string& directory, const char* maker) {
    for (int index = 0; index < 200; ++index) {
      Put(fmt::format("{}/{}{}", directory, maker, index), maker);
    }
  };
  Child one([&] { make(at("d"), "a"); });
  Child two([&] { make(at.Other("d"), "b"); });
  one.Join();
  two.Join();
  WANT_EQ(400, Names(at("d")).size());
  WANT_EQ(Names(at("d")), Names(at.Other("d")));
}

POSIX_TWO_MOUNTS_CHECK(AReaderOnTheOtherMountNeverSeesHalfAReplacement) {
  Put(at("current"), std::string(20'000, 'a'));
  Signal done;
  Child reader([&] {
    while (!done.WaitMs(0)) {
      const std::string text = Get(at.Other("current"));
      WANT_EQ(20'000, text.size());
      WANT(text.find_first_not_of(text[0]) == std::string::npos);
    }
  });
  for (int turn = 0; turn < 100; ++turn) {
    Put(at("next"), std::string(20'000, static_cast<char>('a' + turn % 26)));
    MUST(::rename(at("next"), at("current")));
  }
  done.Raise();
  reader.Join();
}

}  // namespace mosa::posix
