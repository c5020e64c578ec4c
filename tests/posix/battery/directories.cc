// mkdir(2), rmdir(2), readdir(3), names, the current directory.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

using Stream = std::unique_ptr<DIR, int (*)(DIR*)>;

Stream OpenStream(const Path& path) {
  Stream stream(::opendir(path), &::closedir);
  WANT(stream != nullptr);
  return stream;
}

// The next name but "." and ".."; empty at the end.
std::string NextName(DIR* stream) {
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(stream);
    if (entry == nullptr) {
      WANT_EQ(0, errno);
      return "";
    }
    const std::string name = entry->d_name;
    if (name != "." && name != "..") return name;
  }
}

std::set<std::string> Fill(const Place& at, const std::string& directory, int count) {
  std::set<std::string> names;
  for (int index = 0; index < count; ++index) {
    const std::string name = fmt::format("entry-{:06}", index);
    Put(at(directory + "/" + name), "");
    names.insert(name);
  }
  return names;
}

}  // namespace

POSIX_CHECK(ANewDirectoryIsEmptyAndHasTwoLinks) {
  MakeDirectory(at("d"), 0750);
  const struct stat made = Stat(at("d"));
  WANT(S_ISDIR(made.st_mode));
  WANT_EQ(0750u, made.st_mode & 07777);
  WANT_EQ(2, made.st_nlink);
  WANT_EQ(0, Names(at("d")).size());
}

POSIX_CHECK(SubdirectoriesCountAsLinksOfTheirParent) {
  MakeDirectory(at("d"));
  for (const char* name : {"d/a", "d/b", "d/c"}) MakeDirectory(at(name));
  WANT_EQ(5, Stat(at("d")).st_nlink);
  MUST(::rmdir(at("d/b")));
  WANT_EQ(4, Stat(at("d")).st_nlink);
}

POSIX_CHECK(MkdirRefusesExistingNamesAndMissingParents) {
  MakeDirectory(at("d"));
  Put(at("f"), "");
  MUST(::symlink("nowhere", at("link")));
  MUST_FAIL(EEXIST, ::mkdir(at("d"), 0755));
  MUST_FAIL(EEXIST, ::mkdir(at("f"), 0755));
  MUST_FAIL(EEXIST, ::mkdir(at("link"), 0755));
  MUST_FAIL(ENOENT, ::mkdir(at("absent/d"), 0755));
}

POSIX_CHECK(RmdirRemovesOnlyEmptyDirectories) {
  MakeDirectory(at("d"));
  Put(at("d/f"), "");
  MUST_FAIL(ENOTEMPTY, ::rmdir(at("d")));
  MUST(::unlink(at("d/f")));
  MUST(::rmdir(at("d")));
  WANT(!Exists(at("d")));
  MUST_FAIL(ENOENT, ::rmdir(at("d")));
}

POSIX_CHECK(RmdirRefusesFilesLinksAndDots) {
  Put(at("f"), "");
  MakeDirectory(at("d"));
  MUST(::symlink("d", at("link")));
  MUST_FAIL(ENOTDIR, ::rmdir(at("f")));
  MUST_FAIL(ENOTDIR, ::rmdir(at("link")));
  MUST_FAIL(EINVAL, ::rmdir(at("d/.")));
  MUST_FAIL(ENOTEMPTY, ::rmdir(at("d/..")));
}

POSIX_CHECK(ARemovedDirectoryThatIsStillOpenIsEmptyAndTakesNothingNew) {
  MakeDirectory(at("d"));
  const Fd directory = Open(at("d"), O_RDONLY | O_DIRECTORY);
  MUST(::rmdir(at("d")));
  MUST_FAIL(ENOENT, ::openat(directory, "f", O_WRONLY | O_CREAT, 0644));
  MUST_FAIL(ENOENT, ::mkdirat(directory, "e", 0755));
  WANT_EQ(0, Fstat(directory).st_nlink);
}

POSIX_CHECK(TheCurrentDirectoryCanBeRemovedAndSaysSo) {
  MakeDirectory(at("d"));
  const Fd back = Open(at.a, O_RDONLY | O_DIRECTORY);
  MUST(::chdir(at("d")));
  MUST(::rmdir((at.absolute + "/d").c_str()));
  char text[PATH_MAX];
  errno = 0;
  WANT(::getcwd(text, sizeof text) == nullptr);
  WANT_EQ(ENOENT, errno);
  MUST_FAIL(ENOENT, ::open("f", O_WRONLY | O_CREAT, 0644));
  MUST(::fchdir(back));
}

POSIX_CHECK(TheCurrentDirectoryFollowsARename) {
  MakeDirectory(at("d"));
  MUST(::chdir(at("d")));
  MUST(::rename("../d", "../renamed"));
  char text[PATH_MAX];
  WANT(::getcwd(text, sizeof text) != nullptr);
  WANT(std::string(text).ends_with("/renamed"));
}

POSIX_CHECK(ReaddirListsDotDotDotAndTypes) {
  Put(at("file"), "");
  MakeDirectory(at("directory"));
  MUST(::symlink("x", at("link")));
  MUST(::mkfifo(at("fifo"), 0644));
  const Stream stream = OpenStream(at("."));
  std::set<std::string> seen;
  while (const dirent* entry = ::readdir(stream.get())) {
    seen.insert(fmt::format("{} {}", entry->d_name, entry->d_type));
  }
  const std::set<std::string> expected{
      fmt::format(". {}", DT_DIR),    fmt::format(".. {}", DT_DIR),
      fmt::format("file {}", DT_REG), fmt::format("directory {}", DT_DIR),
      fmt::format("link {}", DT_LNK), fmt::format("fifo {}", DT_FIFO)};
  WANT_EQ(expected, seen);
}

POSIX_CHECK(ReaddirAndStatAgreeOnInodes) {
  Fill(at, ".", 50);
  const Stream stream = OpenStream(at("."));
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") WANT_EQ(Lstat(at(name)).st_ino, entry->d_ino);
  }
}

POSIX_CHECK(ReaddirListsAThousandNamesOnce) {
  const std::set<std::string> names = Fill(at, ".", 1000);
  WANT_EQ(names, Names(at.a));
}

POSIX_SLOW_CHECK(ReaddirListsAHundredThousandNamesOnce) {
  MakeDirectory(at("d"));
  const std::set<std::string> names = Fill(at, "d", 100'000);
  WANT_EQ(names, Names(at("d")));
  const Stream stream = OpenStream(at("d"));
  size_t removed = 0;
  for (std::string name = NextName(stream.get()); !name.empty(); name = NextName(stream.get())) {
    MUST(::unlink(at("d/" + name)));
    ++removed;
  }
  WANT_EQ(names.size(), removed);
  MUST(::rmdir(at("d")));
}

POSIX_CHECK(ReaddirWhileDeletingMissesNothing) {
  const std::set<std::string> names = Fill(at, ".", 2000);
  const Stream stream = OpenStream(at("."));
  std::set<std::string> seen;
  for (std::string name = NextName(stream.get()); !name.empty(); name = NextName(stream.get())) {
    WANT(seen.insert(name).second);
    MUST(::unlink(at(name)));
  }
  WANT_EQ(names, seen);
  WANT_EQ(0, Names(at.a).size());
}

POSIX_CHECK(ReaddirWhileCreatingStillListsTheOldNamesOnce) {
  const std::set<std::string> names = Fill(at, ".", 1000);
  const Stream stream = OpenStream(at("."));
  std::set<std::string> seen;
  int created = 0;
  for (std::string name = NextName(stream.get()); !name.empty(); name = NextName(stream.get())) {
    WANT(seen.insert(name).second);
    if (created < 300) Put(at(fmt::format("later-{}", created++)), "");
  }
  for (const std::string& name : names) WANT(seen.contains(name));
}

POSIX_CHECK(TelldirAndSeekdirReturnToAPlace) {
  Fill(at, ".", 500);
  const Stream stream = OpenStream(at("."));
  for (int count = 0; count < 200; ++count) NextName(stream.get());
  const long place = ::telldir(stream.get());
  std::vector<std::string> first;
  for (int count = 0; count < 100; ++count) first.push_back(NextName(stream.get()));
  while (!NextName(stream.get()).empty()) {
  }
  ::seekdir(stream.get(), place);
  for (const std::string& name : first) WANT_EQ(name, NextName(stream.get()));
}

// POSIX leaves it open whether a position is good after a rewinddir; Linux's own file systems keep
// it, for as long as its name is there.
POSIX_CHECK(PositionsOutliveTheRemovalOfOtherNames) {
  struct statfs where {};
  utsname kernel{};
  int major = 0, minor = 0;
  MUST(::statfs(at("."), &where));
  MUST(::uname(&kernel));
  if (where.f_type == TMPFS_MAGIC && std::sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
      major * 100 + minor < 606)
    Skip("tmpfs counts names before Linux 6.6");
  const std::set<std::string> names = Fill(at, ".", 300);
  const Stream stream = OpenStream(at("."));
  std::vector<std::pair<std::string, long>> places;
  for (long place = ::telldir(stream.get());; place = ::telldir(stream.get())) {
    const std::string name = NextName(stream.get());
    if (name.empty()) break;
    places.emplace_back(name, place);
  }
  WANT_EQ(names.size(), places.size());
  for (int round = 0; round < 2; ++round) {
    for (size_t i = round; i < places.size(); i += 3) {
      MUST(::unlink(at(places[i].first)));
      Put(at(fmt::format("new-{}-{}", round, i)), "");
    }
    ::rewinddir(stream.get());
    std::set<std::string> seen;
    for (std::string name; !(name = NextName(stream.get())).empty();)
      WANT(seen.insert(name).second);
    WANT_EQ(names.size(), seen.size());
    for (size_t i = places.size(); i-- > 0;) {
      if (!seen.contains(places[i].first)) continue;
      ::seekdir(stream.get(), places[i].second);
      WANT_EQ(places[i].first, NextName(stream.get()));
    }
  }
}

POSIX_CHECK(RewinddirShowsWhatCameSince) {
  Put(at("one"), "");
  const Stream stream = OpenStream(at("."));
  while (!NextName(stream.get()).empty()) {
  }
  Put(at("two"), "");
  ::rewinddir(stream.get());
  const std::set<std::string> seen{NextName(stream.get()), NextName(stream.get())};
  WANT_EQ((std::set<std::string>{"one", "two"}), seen);
}

POSIX_CHECK(TwoStreamsOfOneDirectoryDoNotDisturbEachOther) {
  const std::set<std::string> names = Fill(at, ".", 300);
  const Stream one = OpenStream(at("."));
  const Stream two = OpenStream(at("."));
  std::set<std::string> of_one;
  std::set<std::string> of_two;
  for (int count = 0; count < 300; ++count) {
    of_one.insert(NextName(one.get()));
    of_two.insert(NextName(two.get()));
  }
  WANT_EQ(names, of_one);
  WANT_EQ(names, of_two);
}

POSIX_CHECK(ANewNameIsListedAndARemovedOneIsNotAtOnce) {
  for (int turn = 0; turn < 50; ++turn) {
    const std::string name = fmt::format("n{}", turn);
    Put(at(name), "");
    WANT_EQ(std::set<std::string>{name}, Names(at.a));
    MUST(::unlink(at(name)));
    WANT_EQ(0, Names(at.a).size());
  }
}

POSIX_CHECK(NamesOf255BytesWorkAndLongerOnesAreRefused) {
  const std::string longest(255, 'n');
  Put(at(longest), "long");
  WANT_EQ("long", Get(at(longest)));
  WANT_EQ(std::set<std::string>{longest}, Names(at.a));
  struct stat unused {};
  const Path longer = at(std::string(256, 'n'));
  MUST_FAIL(ENAMETOOLONG, ::open(longer, O_WRONLY | O_CREAT, 0644));
  MUST_FAIL(ENAMETOOLONG, ::mkdir(longer, 0755));
  MUST_FAIL(ENAMETOOLONG, ::stat(longer, &unused));
  MUST_FAIL(ENAMETOOLONG, ::rename(at(longest), longer));
  MUST_FAIL(ENAMETOOLONG, ::link(at(longest), longer));
  MUST_FAIL(ENAMETOOLONG, ::symlink("x", longer));
}

POSIX_CHECK(ManyNamesOf255BytesAreListed) {
  std::set<std::string> names;
  for (int index = 0; index < 300; ++index) {
    const std::string name = fmt::format("{:04}{}", index, std::string(251, 'x'));
    Put(at(name), "");
    names.insert(name);
  }
  WANT_EQ(names, Names(at.a));
}

POSIX_CHECK(EveryByteButSlashAndZeroMayBeInAName) {
  std::set<std::string> names;
  for (int byte = 1; byte < 256; ++byte) {
    if (byte == '/') continue;
    const std::string name = "<" + std::string(1, static_cast<char>(byte)) + ">";
    Put(at(name), name);
    names.insert(name);
  }
  WANT_EQ(names, Names(at.a));
  for (const std::string& name : names) WANT_EQ(name, Get(at(name)));
}

POSIX_CHECK(OddNamesAreOrdinaryNames) {
  const std::set<std::string> names{" ",
                                    "...",
                                    "-rf",
                                    "a\nb",
                                    "*",
                                    "\\",
                                    "~",
                                    "#x#",
                                    "a b",
                                    "\"",
                                    "\xc3\xa4\xe2\x82\xac",
                                    ".hid",
                                    "A",
                                    "a",
                                    "%2F",
                                    "\xff\xfe"};
  for (const std::string& name : names) Put(at(name), name);
  WANT_EQ(names, Names(at.a));
  for (const std::string& name : names) WANT_EQ(name, Get(at(name)));
}

POSIX_CHECK(APathOfMoreThanPathMaxIsRefused) {
  std::string path = at.a;
  while (path.size() < PATH_MAX) path += "/.";
  struct stat unused {};
  MUST_FAIL(ENAMETOOLONG, ::stat(path.c_str(), &unused));
}

POSIX_CHECK(ADeepTreeIsReachedStepByStep) {
  constexpr int kDepth = 200;
  for (int depth = 0; depth < kDepth; ++depth) {
    MUST(::mkdir("level", 0755));
    MUST(::chdir("level"));
  }
  Put("bottom", "down here");
  WANT_EQ("down here", Get("bottom"));
  MUST(::unlink("bottom"));
  for (int depth = 0; depth < kDepth; ++depth) {
    MUST(::chdir(".."));
    MUST(::rmdir("level"));
  }
  WANT_EQ(0, Names(at.a).size());
}

POSIX_CHECK(DotDotOfADirectoryIsItsParent) {
  MakeDirectory(at("d"));
  MakeDirectory(at("d/e"));
  WANT_EQ(Stat(at("d")).st_ino, Stat(at("d/e/..")).st_ino);
  WANT_EQ(Stat(at.a).st_ino, Stat(at("d/e/../..")).st_ino);
}

POSIX_CHECK(ManyDirectoriesCanBeMadeAndRemoved) {
  for (int index = 0; index < 500; ++index) MakeDirectory(at(fmt::format("d{}", index)));
  WANT_EQ(502, Stat(at.a).st_nlink);
  for (int index = 0; index < 500; ++index) MUST(::rmdir(at(fmt::format("d{}", index))));
  WANT_EQ(2, Stat(at.a).st_nlink);
}

POSIX_CHECK(MkdirHasOneWinnerAmongProcesses) {
  std::vector<Child> racers;
  for (int racer = 0; racer < 4; ++racer) {
    racers.emplace_back([&at, racer] {
      for (int round = 0; round < 30; ++round) {
        const std::string name = fmt::format("d{}", round);
        if (::mkdir(at(name), 0755) == 0) {
          Put(at(fmt::format("{}/{}", name, racer)), "");
        } else {
          WANT_EQ(EEXIST, errno);
        }
      }
    });
  }
  for (Child& racer : racers) racer.Join();
  for (int round = 0; round < 30; ++round) {
    WANT_EQ(1, Names(at(fmt::format("d{}", round))).size());
  }
}

POSIX_CHECK(CreatesOfSeveralProcessesInOneDirectoryAllArrive) {
  std::vector<Child> makers;
  for (int maker = 0; maker < 4; ++maker) {
    makers.emplace_back([&at, maker] {
      for (int index = 0; index < 200; ++index) Put(at(fmt::format("{}-{}", maker, index)), "x");
    });
  }
  for (Child& maker : makers) maker.Join();
  WANT_EQ(800, Names(at.a).size());
}

}  // namespace mosa::posix
