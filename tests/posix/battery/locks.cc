// flock(2) and fcntl(2) locks between processes.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

struct flock Range(short type, off_t begin, off_t bytes) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = begin;
  range.l_len = bytes;
  return range;
}

int Lock(int fd, short type, off_t begin, off_t bytes, int command = F_SETLK) {
  struct flock range = Range(type, begin, bytes);
  return ::fcntl(fd, command, &range);
}

// What another process would meet: "free", or type, begin, length and holder of a conflicting lock.
std::string Conflict(int fd, short type, off_t begin, off_t bytes) {
  struct flock range = Range(type, begin, bytes);
  MUST(::fcntl(fd, F_GETLK, &range));
  if (range.l_type == F_UNLCK) return "free";
  return fmt::format("{} {}+{}", range.l_type == F_WRLCK ? "write" : "read", range.l_start,
                     range.l_len);
}

// Whether another process gets this lock at once.
bool OtherGets(const Path& path, short type, off_t begin, off_t bytes) {
  bool granted = true;
  try {
    InChild([&] {
      const Fd fd = Open(path, O_RDWR);
      if (Lock(fd, type, begin, bytes) == 0) return;
      WANT(errno == EAGAIN || errno == EACCES);
      Fail("", 0, "refused");
    });
  } catch (const Failure& failure) {
    if (std::string_view(failure.what()).find("refused") == std::string_view::npos) throw;
    granted = false;
  }
  return granted;
}

}  // namespace

POSIX_CHECK(FlockExclusiveKeepsOthersOut) {
  Put(at("f"), "x");
  const Fd one = Open(at("f"), O_RDWR);
  const Fd two = Open(at("f"), O_RDWR);
  MUST(::flock(one, LOCK_EX | LOCK_NB));
  MUST_FAIL(EWOULDBLOCK, ::flock(two, LOCK_EX | LOCK_NB));
  MUST_FAIL(EWOULDBLOCK, ::flock(two, LOCK_SH | LOCK_NB));
  InChild([&] {
    const Fd other = Open(at("f"), O_RDONLY);
    MUST_FAIL(EWOULDBLOCK, ::flock(other, LOCK_SH | LOCK_NB));
  });
  MUST(::flock(one, LOCK_UN));
  MUST(::flock(two, LOCK_EX | LOCK_NB));
}

POSIX_CHECK(FlockSharedAdmitsReadersOnly) {
  Put(at("f"), "x");
  const Fd one = Open(at("f"), O_RDONLY);
  const Fd two = Open(at("f"), O_RDONLY);
  const Fd three = Open(at("f"), O_RDONLY);
  MUST(::flock(one, LOCK_SH | LOCK_NB));
  MUST(::flock(two, LOCK_SH | LOCK_NB));
  MUST_FAIL(EWOULDBLOCK, ::flock(three, LOCK_EX | LOCK_NB));
}

POSIX_CHECK(FlockIsUpgradedWhenTheOthersLeft) {
  Put(at("f"), "x");
  const Fd one = Open(at("f"), O_RDWR);
  Fd two = Open(at("f"), O_RDWR);
  MUST(::flock(one, LOCK_SH));
  MUST(::flock(two, LOCK_SH));
  MUST_FAIL(EWOULDBLOCK, ::flock(one, LOCK_EX | LOCK_NB));
  MUST(two.Close());
  MUST(::flock(one, LOCK_EX | LOCK_NB));
  MUST(::flock(one, LOCK_SH | LOCK_NB));
  const Fd three = Open(at("f"), O_RDWR);
  MUST(::flock(three, LOCK_SH | LOCK_NB));
}

POSIX_CHECK(FlockIsReleasedByTheLastCloseOfADuplicatedDescriptor) {
  Put(at("f"), "x");
  Fd one = Open(at("f"), O_RDWR);
  Fd copy(MUST(::dup(one)));
  const Fd other = Open(at("f"), O_RDWR);
  MUST(::flock(one, LOCK_EX));
  MUST(one.Close());
  MUST_FAIL(EWOULDBLOCK, ::flock(other, LOCK_EX | LOCK_NB));
  MUST(copy.Close());
  MUST(::flock(other, LOCK_EX | LOCK_NB));
}

POSIX_CHECK(FlockWaitsUntilTheHolderUnlocks) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(::flock(fd, LOCK_EX));
  Signal trying;
  Signal granted;
  Child waiter([&] {
    const Fd own = Open(at("f"), O_RDWR);
    trying.Raise();
    MUST(::flock(own, LOCK_EX));
    granted.Raise();
  });
  trying.Wait();
  WANT(!granted.WaitMs(200));
  MUST(::flock(fd, LOCK_UN));
  WANT(granted.WaitMs(10'000));
  waiter.Join();
}

POSIX_CHECK(FlockIsReleasedWhenTheHolderIsKilled) {
  Put(at("f"), "x");
  Signal locked;
  const Fd fd = Open(at("f"), O_RDWR);
  {
    const Child holder([&] {
      const Fd own = Open(at("f"), O_RDWR);
      MUST(::flock(own, LOCK_EX));
      locked.Raise();
      ::pause();
    });
    locked.Wait();
    MUST_FAIL(EWOULDBLOCK, ::flock(fd, LOCK_EX | LOCK_NB));
  }
  MUST(::flock(fd, LOCK_EX));
}

POSIX_CHECK(FlockAndRangeLocksDoNotMeet) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(::flock(fd, LOCK_EX));
  WANT(OtherGets(at("f"), F_WRLCK, 0, 0));
}

POSIX_CHECK(FlockWorksOnDirectories) {
  const Fd one = Open(at.a, O_RDONLY | O_DIRECTORY);
  const Fd two = Open(at.a, O_RDONLY | O_DIRECTORY);
  MUST(::flock(one, LOCK_EX | LOCK_NB));
  MUST_FAIL(EWOULDBLOCK, ::flock(two, LOCK_SH | LOCK_NB));
}

POSIX_CHECK(AWriteLockKeepsOtherProcessesOut) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_WRLCK, 0, 100));
  WANT(!OtherGets(at("f"), F_WRLCK, 50, 10));
  WANT(!OtherGets(at("f"), F_RDLCK, 99, 1));
  WANT(OtherGets(at("f"), F_WRLCK, 100, 10));
}

POSIX_CHECK(ReadLocksAreShared) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_RDLCK, 0, 100));
  WANT(OtherGets(at("f"), F_RDLCK, 0, 100));
  WANT(!OtherGets(at("f"), F_WRLCK, 0, 1));
}

POSIX_CHECK(ALockOfLengthZeroReachesToTheEndForEver) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_WRLCK, 1000, 0));
  WANT(!OtherGets(at("f"), F_WRLCK, off_t{1} << 40, 1));
  WANT(OtherGets(at("f"), F_WRLCK, 0, 1000));
}

POSIX_CHECK(GetLockNamesTheConflictAndItsHolder) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_WRLCK, 10, 20));
  WANT_EQ("free", Conflict(fd, F_WRLCK, 10, 20));
  const pid_t holder = ::getpid();
  InChild([&] {
    const Fd own = Open(at("f"), O_RDWR);
    WANT_EQ("write 10+20", Conflict(own, F_RDLCK, 0, 0));
    WANT_EQ("free", Conflict(own, F_WRLCK, 30, 0));
    struct flock range = Range(F_WRLCK, 0, 0);
    MUST(::fcntl(own, F_GETLK, &range));
    WANT_EQ(holder, range.l_pid);
  });
}

POSIX_CHECK(UnlockingTheMiddleSplitsALock) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_WRLCK, 0, 300));
  MUST(Lock(fd, F_UNLCK, 100, 100));
  InChild([&] {
    const Fd own = Open(at("f"), O_RDWR);
    WANT_EQ("write 0+100", Conflict(own, F_WRLCK, 0, 0));
    WANT_EQ("free", Conflict(own, F_WRLCK, 100, 100));
    WANT_EQ("write 200+100", Conflict(own, F_WRLCK, 150, 0));
  });
}

POSIX_CHECK(AnUpgradeOfTheMiddleSplitsALock) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_RDLCK, 0, 300));
  MUST(Lock(fd, F_WRLCK, 100, 100));
  WANT(OtherGets(at("f"), F_RDLCK, 0, 100));
  WANT(!OtherGets(at("f"), F_RDLCK, 150, 1));
  WANT(OtherGets(at("f"), F_RDLCK, 200, 100));
  WANT(!OtherGets(at("f"), F_WRLCK, 0, 1));
}

POSIX_CHECK(NeighbouringLocksBecomeOne) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_WRLCK, 0, 100));
  MUST(Lock(fd, F_WRLCK, 100, 100));
  InChild([&] {
    const Fd own = Open(at("f"), O_RDWR);
    WANT_EQ("write 0+200", Conflict(own, F_WRLCK, 0, 0));
  });
}

POSIX_CHECK(AnUpgradeIsRefusedWhileAnotherReads) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_RDLCK, 0, 10));
  Signal locked;
  Signal leave;
  Child other([&] {
    const Fd own = Open(at("f"), O_RDWR);
    MUST(Lock(own, F_RDLCK, 0, 10));
    locked.Raise();
    leave.Wait();
  });
  locked.Wait();
  errno = 0;
  WANT(Lock(fd, F_WRLCK, 0, 10) < 0);
  WANT(errno == EAGAIN || errno == EACCES);
  leave.Raise();
  other.Join();
  MUST(Lock(fd, F_WRLCK, 0, 10));
}

POSIX_CHECK(RangeLocksEndWithTheFirstCloseOfAnyDescriptor) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_WRLCK, 0, 0));
  WANT(!OtherGets(at("f"), F_WRLCK, 0, 0));
  Open(at("f"), O_RDONLY);
  WANT(OtherGets(at("f"), F_WRLCK, 0, 0));
}

POSIX_CHECK(RangeLocksAreNotInherited) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_WRLCK, 0, 0));
  InChild([&] {
    errno = 0;
    WANT(Lock(fd, F_WRLCK, 0, 1) < 0);
    WANT(errno == EAGAIN || errno == EACCES);
  });
  WANT_EQ("free", Conflict(fd, F_WRLCK, 0, 0));
}

POSIX_CHECK(RangeLocksAreReleasedWhenTheHolderIsKilled) {
  Put(at("f"), "x");
  Signal locked;
  const Fd fd = Open(at("f"), O_RDWR);
  {
    const Child holder([&] {
      const Fd own = Open(at("f"), O_RDWR);
      MUST(Lock(own, F_WRLCK, 0, 0));
      locked.Raise();
      ::pause();
    });
    locked.Wait();
    WANT_EQ("write 0+0", Conflict(fd, F_WRLCK, 0, 0));
  }
  MUST(Lock(fd, F_WRLCK, 0, 0, F_SETLKW));
}

POSIX_CHECK(AWaiterGetsTheRangeWhenItIsFree) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_WRLCK, 0, 100));
  Signal trying;
  Signal granted;
  Child waiter([&] {
    const Fd own = Open(at("f"), O_RDWR);
    trying.Raise();
    MUST(Lock(own, F_WRLCK, 50, 100, F_SETLKW));
    granted.Raise();
  });
  trying.Wait();
  WANT(!granted.WaitMs(200));
  MUST(Lock(fd, F_UNLCK, 0, 50));
  WANT(!granted.WaitMs(100));
  MUST(Lock(fd, F_UNLCK, 50, 50));
  WANT(granted.WaitMs(10'000));
  waiter.Join();
}

POSIX_CHECK(AWaiterIsInterruptedByASignal) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_WRLCK, 0, 0));
  InChild([&] {
    const Fd own = Open(at("f"), O_RDWR);
    struct sigaction action {};
    action.sa_handler = [](int) {};
    MUST(::sigaction(SIGALRM, &action, nullptr));
    ::alarm(1);
    MUST_FAIL(EINTR, Lock(own, F_WRLCK, 0, 0, F_SETLKW));
  });
  WANT(!OtherGets(at("f"), F_WRLCK, 0, 0));
}

POSIX_CHECK(ADeadlockOfRangeLocksIsRefused) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(Lock(fd, F_WRLCK, 0, 1));
  Signal locked;
  Child other([&] {
    const Fd own = Open(at("f"), O_RDWR);
    MUST(Lock(own, F_WRLCK, 1, 1));
    locked.Raise();
    MUST(Lock(own, F_WRLCK, 0, 1, F_SETLKW));
  });
  locked.Wait();
  SleepMs(300);
  MUST_FAIL(EDEADLK, Lock(fd, F_WRLCK, 1, 1, F_SETLKW));
  MUST(Lock(fd, F_UNLCK, 0, 1));
  other.Join();
}

POSIX_CHECK(LocksNeedTheRightOpenMode) {
  Put(at("f"), "x");
  const Fd reader = Open(at("f"), O_RDONLY);
  const Fd writer = Open(at("f"), O_WRONLY);
  MUST_FAIL(EBADF, Lock(reader, F_WRLCK, 0, 1));
  MUST_FAIL(EBADF, Lock(writer, F_RDLCK, 0, 1));
  MUST_FAIL(EINVAL, Lock(writer, F_WRLCK, -5, 1));
}

POSIX_CHECK(OpenFileLocksBelongToTheDescriptor) {
  Put(at("f"), "x");
  Fd one = Open(at("f"), O_RDWR);
  const Fd two = Open(at("f"), O_RDWR);
  MUST(Lock(one, F_WRLCK, 0, 10, F_OFD_SETLK));
  MUST_FAIL(EAGAIN, Lock(two, F_WRLCK, 5, 1, F_OFD_SETLK));
  MUST(Lock(two, F_WRLCK, 10, 1, F_OFD_SETLK));
  MUST(one.Close());
  MUST(Lock(two, F_WRLCK, 5, 1, F_OFD_SETLK));
}

POSIX_CHECK(ALockProtectsACounterOfManyProcesses) {
  Put(at("counter"), "0");
  constexpr int kTurns = 50;
  std::vector<Child> workers;
  for (int worker = 0; worker < 4; ++worker) {
    workers.emplace_back([&at, worker] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const Fd fd = Open(at("counter"), O_RDWR);
        if (worker % 2 == 0) {
          MUST(::flock(fd, LOCK_EX));
        }
        MUST(Lock(fd, F_WRLCK, 0, 0, F_SETLKW));
        WriteAt(fd, 0, fmt::format("{}", std::stoi(ReadAt(fd, 0, 20)) + 1));
      }
    });
  }
  for (Child& worker : workers) worker.Join();
  WANT_EQ(fmt::format("{}", 4 * kTurns), Get(at("counter")));
}

}  // namespace mosa::posix
