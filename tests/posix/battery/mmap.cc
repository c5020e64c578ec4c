// mmap(2) of files, shared and private.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {
constexpr size_t kPage = 4096;
}  // namespace

POSIX_CHECK(ASharedMappingShowsTheFile) {
  const std::string bytes = Bytes(100 * kPage);
  Put(at("f"), bytes);
  const Fd fd = Open(at("f"), O_RDONLY);
  const Mapping map(fd, bytes.size(), PROT_READ, MAP_SHARED);
  WANT_EQ(bytes, map.Text(0, bytes.size()));
}

POSIX_CHECK(StoresIntoASharedMappingReachTheFile) {
  Put(at("f"), std::string(8 * kPage, 'a'));
  {
    const Fd fd = Open(at("f"), O_RDWR);
    const Mapping map(fd, 8 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
    map.Write(kPage + 10, "mapped");
    MUST(::msync(map.data(), 8 * kPage, MS_SYNC));
    WANT_EQ("mapped", ReadAt(fd, kPage + 10, 6));
  }
  WANT_EQ("mapped", Get(at("f")).substr(kPage + 10, 6));
}

POSIX_CHECK(StoresIntoASharedMappingSurviveUnmapWithoutSync) {
  Put(at("f"), std::string(4 * kPage, 'a'));
  {
    const Fd fd = Open(at("f"), O_RDWR);
    const Mapping map(fd, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
    map.Write(3 * kPage, "never synced");
  }
  WANT_EQ("never synced", Get(at("f")).substr(3 * kPage, 12));
}

POSIX_CHECK(StoresIntoTheMappingOfAnAppendingDescriptorStayWhereTheyAre) {
  Put(at("f"), std::string(4 * kPage, 'a'));
  {
    const Fd fd = Open(at("f"), O_RDWR | O_APPEND);
    const Mapping map(fd, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
    map.Write(kPage + 10, "mapped");
    MUST(::msync(map.data(), 4 * kPage, MS_SYNC));
    WriteAll(fd, "appended");
  }
  std::string expected(4 * kPage, 'a');
  expected.replace(kPage + 10, 6, "mapped");
  WANT_EQ(expected + "appended", Get(at("f")));
}

POSIX_CHECK(StoresIntoTheMappingOfADirectDescriptorReachItsReaders) {
  Put(at("f"), std::string(4 * kPage, 'a'));
  const int direct = ::open(at("f"), O_RDWR | O_DIRECT);
  if (direct < 0 && errno == EINVAL) Skip("no O_DIRECT here");
  const Fd fd(MUST(direct));
  const Fd reader = Open(at("f"), O_RDWR);
  WANT_EQ("aaaa", ReadAt(reader, kPage, 4));
  const Mapping map(fd, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
  map.Write(kPage, "bbbb");
  MUST(::msync(map.data(), 4 * kPage, MS_SYNC));
  WANT_EQ("bbbb", ReadAt(reader, kPage, 4));
}

POSIX_CHECK(AMappingOutlivesItsDescriptor) {
  Put(at("f"), std::string(2 * kPage, 'a'));
  Fd fd = Open(at("f"), O_RDWR);
  const Mapping map(fd, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
  MUST(fd.Close());
  map.Write(kPage, "after close");
  MUST(::msync(map.data(), 2 * kPage, MS_SYNC));
  WANT_EQ("after close", Get(at("f")).substr(kPage, 11));
}

POSIX_CHECK(AMappingOutlivesTheName) {
  const std::string bytes = Bytes(10 * kPage);
  Put(at("f"), bytes);
  Fd fd = Open(at("f"), O_RDONLY);
  const Mapping map(fd, bytes.size(), PROT_READ, MAP_SHARED);
  MUST(fd.Close());
  MUST(::unlink(at("f")));
  WANT_EQ(bytes, map.Text(0, bytes.size()));
}

POSIX_CHECK(WritesThroughADescriptorAppearInASharedMapping) {
  Put(at("f"), std::string(4 * kPage, 'a'));
  const Fd fd = Open(at("f"), O_RDWR);
  const Mapping map(fd, 4 * kPage, PROT_READ, MAP_SHARED);
  WANT_EQ("aaaa", map.Text(kPage, 4));
  WriteAt(fd, kPage, "bbbb");
  WANT_EQ("bbbb", map.Text(kPage, 4));
}

POSIX_CHECK(TwoProcessesShareAMapping) {
  Put(at("f"), std::string(kPage, '\0'));
  Signal stored;
  Signal seen;
  Child other([&] {
    const Fd fd = Open(at("f"), O_RDWR);
    const Mapping map(fd, kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
    stored.Wait();
    WANT_EQ("ping", map.Text(100, 4));
    map.Write(200, "pong");
    seen.Raise();
  });
  const Fd fd = Open(at("f"), O_RDWR);
  const Mapping map(fd, kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
  map.Write(100, "ping");
  stored.Raise();
  seen.Wait();
  WANT_EQ("pong", map.Text(200, 4));
  other.Join();
}

POSIX_CHECK(StoresIntoAPrivateMappingNeverReachTheFile) {
  Put(at("f"), std::string(2 * kPage, 'a'));
  {
    const Fd fd = Open(at("f"), O_RDONLY);
    const Mapping map(fd, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    map.Write(0, "private");
    WANT_EQ("private", map.Text(0, 7));
  }
  WANT_EQ(std::string(2 * kPage, 'a'), Get(at("f")));
}

POSIX_CHECK(AWritableSharedMappingNeedsAWritableDescriptor) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDONLY);
  errno = 0;
  WANT(::mmap(nullptr, kPage, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  WANT_EQ(EACCES, errno);
}

POSIX_CHECK(TheRestOfTheLastPageIsZero) {
  Put(at("f"), "short");
  const Fd fd = Open(at("f"), O_RDONLY);
  const Mapping map(fd, kPage, PROT_READ, MAP_SHARED);
  WANT_EQ(std::string(kPage - 5, '\0'), map.Text(5, kPage - 5));
}

POSIX_CHECK(StoresBeyondTheEndInTheLastPageDoNotGrowTheFile) {
  Put(at("f"), "short");
  {
    const Fd fd = Open(at("f"), O_RDWR);
    const Mapping map(fd, kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
    map.Write(0, "SHORTER");
    MUST(::msync(map.data(), kPage, MS_SYNC));
  }
  WANT_EQ("SHORT", Get(at("f")));
}

POSIX_CHECK(ATouchBeyondTheEndRaisesSIGBUS) {
  Put(at("f"), "short");
  Child toucher([&] {
    ::signal(SIGBUS, SIG_DFL);
    const Fd fd = Open(at("f"), O_RDONLY);
    const Mapping map(fd, 2 * kPage, PROT_READ, MAP_SHARED);
    const volatile char* const beyond = map.data() + kPage;
    static_cast<void>(*beyond);
  });
  std::string end = "exited";
  try {
    toucher.Join();
  } catch (const Failure& failure) {
    end = failure.what();
  }
  WANT_EQ("killed by SIGBUS", end);
}

// LMDB: the map is larger than the file; pages are added by pwrite and read through the map.
POSIX_CHECK(AMappingLargerThanTheFileShowsWhatIsWrittenLater) {
  constexpr size_t kPages = 256;
  const Fd writer = Open(at("f"), O_RDWR | O_CREAT);
  WriteAll(writer, Bytes(kPage, 0));
  const Fd reader = Open(at("f"), O_RDONLY);
  const Mapping map(reader, kPages * kPage, PROT_READ, MAP_SHARED);
  WANT_EQ(Bytes(kPage, 0), map.Text(0, kPage));
  for (uint64_t page = 1; page < kPages; ++page) {
    WriteAt(writer, page * kPage, Bytes(kPage, page));
    WANT_EQ(Bytes(kPage, page), map.Text(page * kPage, kPage));
    WriteAt(writer, 0, Bytes(kPage, page));
    WANT_EQ(Bytes(kPage, page), map.Text(0, kPage));
  }
}

POSIX_CHECK(AMappingShowsGrowthByTruncateAndTakesStoresThere) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WriteAll(fd, "a");
  const Mapping map(fd, 16 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
  MUST(::ftruncate(fd, 16 * kPage));
  WANT_EQ(std::string(kPage, '\0'), map.Text(10 * kPage, kPage));
  map.Write(10 * kPage, "grown");
  MUST(::msync(map.data(), 16 * kPage, MS_SYNC));
  WANT_EQ("grown", ReadAt(fd, 10 * kPage, 5));
}

POSIX_CHECK(AMappingForgetsWhatTruncationCutOff) {
  Put(at("f"), std::string(4 * kPage, 'a'));
  const Fd fd = Open(at("f"), O_RDWR);
  const Mapping map(fd, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
  map.Write(2 * kPage, "dirty");
  MUST(::ftruncate(fd, 100));
  MUST(::ftruncate(fd, 4 * kPage));
  WANT_EQ(std::string(kPage - 100, '\0'), map.Text(100, kPage - 100));
  WANT_EQ(std::string(5, '\0'), map.Text(2 * kPage, 5));
}

POSIX_CHECK(MixedStoresAndWritesOfOnePageAllSurvive) {
  Put(at("f"), std::string(kPage, '.'));
  {
    const Fd fd = Open(at("f"), O_RDWR);
    const Mapping map(fd, kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
    for (size_t begin = 0; begin + 8 <= kPage; begin += 8) {
      map.Write(begin, "map");
      WriteAt(fd, begin + 4, "fil");
    }
  }
  std::string expected;
  while (expected.size() < kPage) expected += "map.fil.";
  WANT_EQ(expected, Get(at("f")));
}

POSIX_CHECK(AnExecutableMappingOfAFileIsAllowed) {
  Put(at("f"), std::string(kPage, '\x90'));
  const Fd fd = Open(at("f"), O_RDONLY);
  const Mapping map(fd, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE);
  WANT_EQ("\x90", map.Text(0, 1));
}

POSIX_CHECK(StoresIntoASharedMappingMoveTheModificationTime) {
  Put(at("f"), std::string(kPage, 'a'));
  const int64_t before = Nanoseconds(Stat(at("f")).st_mtim);
  SleepMs(30);
  {
    const Fd fd = Open(at("f"), O_RDWR);
    const Mapping map(fd, kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
    map.Write(0, "x");
    MUST(::msync(map.data(), kPage, MS_SYNC));
  }
  WANT(Nanoseconds(Stat(at("f")).st_mtim) > before);
}

}  // namespace mosa::posix
