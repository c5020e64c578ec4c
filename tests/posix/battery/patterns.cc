// What programs do with a file system: journals, logs, caches, builds.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {

// SQLite with a rollback journal: journal written and synced, pages changed, journal removed.
POSIX_CHECK(ARollbackJournalRestoresTheOldPages) {
  constexpr size_t kPage = 4096;
  const std::string before = Bytes(16 * kPage, 1);
  Put(at("db"), before);
  const Fd db = Open(at("db"), O_RDWR);
  const Fd directory = Open(at.a, O_RDONLY | O_DIRECTORY);
  for (uint64_t transaction = 0; transaction < 20; ++transaction) {
    const uint64_t page = transaction % 16;
    {
      const Fd journal = Open(at("db-journal"), O_RDWR | O_CREAT | O_EXCL);
      WriteAll(journal, ReadAt(db, page * kPage, kPage));
      MUST(::fdatasync(journal));
      MUST(::fsync(directory));
      WriteAt(db, page * kPage, Bytes(kPage, 100 + transaction));
      MUST(::fdatasync(db));
    }
    if (transaction % 2 == 0) WriteAt(db, page * kPage, Get(at("db-journal")));
    MUST(::unlink(at("db-journal")));
    WANT(!Exists(at("db-journal")));
    if (transaction % 2 == 1) WriteAt(db, page * kPage, before.substr(page * kPage, kPage));
  }
  WANT_EQ(before, Get(at("db")));
}

POSIX_CHECK(AWriteAheadLogWithASharedMappingWorksBetweenProcesses) {
  constexpr size_t kPage = 4096;
  Put(at("db-wal"), "");
  {
    const Fd index = Open(at("db-shm"), O_RDWR | O_CREAT);
    MUST(::ftruncate(index, 32'768));
  }
  constexpr uint64_t kFrames = 100;
  std::vector<Child> writers;
  for (int writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&at] {
      const Fd log = Open(at("db-wal"), O_RDWR);
      const Fd index = Open(at("db-shm"), O_RDWR);
      const Mapping map(index, 32'768, PROT_READ | PROT_WRITE, MAP_SHARED);
      auto* const count = reinterpret_cast<volatile uint64_t*>(map.data());
      for (uint64_t frame = 0; frame < kFrames; ++frame) {
        MUST(::flock(log, LOCK_EX));
        WriteAt(log, *count * kPage, Bytes(kPage, *count));
        *count = *count + 1;
        MUST(::flock(log, LOCK_UN));
      }
    });
  }
  for (Child& writer : writers) writer.Join();
  std::string expected;
  for (uint64_t frame = 0; frame < 2 * kFrames; ++frame) expected += Bytes(kPage, frame);
  WANT_EQ(expected, Get(at("db-wal")));
}

POSIX_CHECK(SqliteKeepsItsTables) {
  const std::string insert =
      "create table t(a,b); create index i on t(b); with recursive c(n) as (select 1 union all "
      "select n+1 from c where n<2000) insert into t select n, hex(randomblob(50)) from c;";
  WANT_EQ(0, RunProgram({"sqlite3", at("db"), insert}));
  WANT_EQ(0, RunProgram({"sqlite3", at("db"), "pragma journal_mode=wal; update t set b=a;"}));
  const std::string verify = fmt::format(
      "test \"$(sqlite3 {} 'pragma integrity_check; select sum(b) from t')\" = \"ok\n"
      "2001000\"",
      std::string(at("db")));
  WANT_EQ(0, RunProgram({"sh", "-c", verify}));
}

POSIX_CHECK(SqliteWritersOfTwoProcessesLoseNothing) {
  WANT_EQ(0, RunProgram({"sqlite3", at("db"), "create table t(a);"}));
  const auto insert = [&at] {
    for (int turn = 0; turn < 15; ++turn) {
      WANT_EQ(0, RunProgram(
                     {"sqlite3", "-cmd", ".timeout 10000", at("db"), "insert into t values(1);"}));
    }
  };
  Child one(insert);
  Child two(insert);
  one.Join();
  two.Join();
  const std::string verify =
      fmt::format("test \"$(sqlite3 {} 'select count(*) from t')\" = 30", std::string(at("db")));
  WANT_EQ(0, RunProgram({"sh", "-c", verify}));
}

POSIX_CHECK(GitCommitsClonesAndVerifies) {
  const std::string script =
      "set -e; export HOME=$PWD GIT_CONFIG_NOSYSTEM=1; git init -q r; cd r; "
      "git config user.name n; git config user.email e; "
      "for i in 1 2 3 4 5; do for j in 1 2 3 4; do echo $i$j > f$j; done; "
      "git add .; git commit -qm $i; done; git gc -q; cd ..; git clone -q r c; "
      "git -C c fsck --strict; test \"$(git -C c rev-list --count HEAD)\" = 5";
  WANT(RunProgram({"git", "--version"}) == 0);
  WANT_EQ(0, RunProgram({"sh", "-c", script}));
}

POSIX_CHECK(MakeRebuildsOnlyWhatIsOlder) {
  Put(at("Makefile"), "out: in\n\tcp in out; echo x >> runs\n");
  Put(at("in"), "first");
  WANT_EQ(0, RunProgram({"make", "-C", at.a}));
  WANT_EQ(0, RunProgram({"make", "-C", at.a}));
  WANT_EQ("x\n", Get(at("runs")));
  SleepMs(30);
  Put(at("in"), "second");
  WANT_EQ(0, RunProgram({"make", "-C", at.a}));
  WANT_EQ("second", Get(at("out")));
  WANT_EQ("x\nx\n", Get(at("runs")));
}

POSIX_CHECK(ManySmallFilesKeepTheirBytes) {
  for (int index = 0; index < 2'000; ++index) {
    Put(at(fmt::format("f{}", index)), Bytes(static_cast<size_t>(index % 700), 7));
  }
  for (int index = 0; index < 2'000; ++index) {
    WANT_EQ(Bytes(static_cast<size_t>(index % 700), 7), Get(at(fmt::format("f{}", index))));
  }
}

// Sizes around the limits that stores treat specially: pages, 16 KiB, 128 KiB, 1 MiB.
POSIX_CHECK(FilesOfEverySizeAroundPowersOfTwoReadBack) {
  for (size_t size = 512; size <= (4 << 20); size *= 2) {
    for (const size_t bytes : {size - 1, size, size + 1}) {
      Put(at("f"), Bytes(bytes, bytes));
      WANT_EQ(bytes, SizeOf(at("f")));
      WANT_EQ(Bytes(bytes, bytes), Get(at("f")));
    }
  }
}

POSIX_CHECK(AFileThatGrowsByteByByteAcrossTheInlineLimitStaysWhole) {
  const std::string bytes = Bytes(20'000);
  Put(at("f"), bytes.substr(0, 16'000));
  for (size_t begin = 16'000; begin < bytes.size(); begin += 250) {
    const Fd fd = Open(at("f"), O_WRONLY | O_APPEND);
    WriteAll(fd, std::string_view(bytes).substr(begin, 250));
  }
  WANT_EQ(bytes, Get(at("f")));
}

POSIX_CHECK(ALogIsFollowedWhileItGrows) {
  Put(at("log"), "");
  Child follower([&] {
    const Fd fd = Open(at("log"), O_RDONLY);
    std::string text;
    char buffer[4096];
    while (text.size() < 100 * 9) {
      const ssize_t bytes = MUST(::read(fd, buffer, sizeof buffer));
      text.append(buffer, static_cast<size_t>(bytes));
      if (bytes == 0) SleepMs(2);
    }
    for (size_t line = 0; line < 100; ++line) {
      WANT_EQ(fmt::format("line {:03}\n", line), text.substr(line * 9, 9));
    }
  });
  const Fd log = Open(at("log"), O_WRONLY | O_APPEND);
  for (int line = 0; line < 100; ++line) {
    WriteAll(log, fmt::format("line {:03}\n", line));
    if (line % 10 == 0) SleepMs(5);
  }
  follower.Join();
}

POSIX_CHECK(ALogIsRotatedUnderItsWriter) {
  const Fd writer = Open(at("log"), O_WRONLY | O_CREAT | O_APPEND);
  WriteAll(writer, "one\n");
  MUST(::rename(at("log"), at("log.1")));
  WriteAll(writer, "two\n");
  Put(at("log"), "three\n");
  WANT_EQ("one\ntwo\n", Get(at("log.1")));
  WANT_EQ("three\n", Get(at("log")));
}

POSIX_CHECK(AnEditorSavesThroughBackupAndRename) {
  Put(at("text"), "version 0");
  for (int version = 1; version <= 20; ++version) {
    const std::string text = fmt::format("version {}", version);
    if (version % 2 == 0) {
      MUST(::rename(at("text"), at("text~")));
      Put(at("text"), text);
    } else {
      Fd fd = Open(at(".text.swp"), O_WRONLY | O_CREAT | O_EXCL);
      WriteAll(fd, text);
      MUST(::fsync(fd));
      MUST(fd.Close());
      MUST(::rename(at(".text.swp"), at("text")));
    }
    WANT_EQ(text, Get(at("text")));
  }
}

POSIX_CHECK(ALockFileAdmitsOneProcessAtATime) {
  Put(at("counter"), "0");
  std::vector<Child> workers;
  for (int worker = 0; worker < 3; ++worker) {
    workers.emplace_back([&at] {
      for (int turn = 0; turn < 20; ++turn) {
        int lock = -1;
        while ((lock = ::open(at("lock"), O_WRONLY | O_CREAT | O_EXCL, 0644)) < 0) {
          WANT_EQ(EEXIST, errno);
          SleepMs(1);
        }
        Put(at("counter"), fmt::format("{}", std::stoi(Get(at("counter"))) + 1));
        ::close(lock);
        MUST(::unlink(at("lock")));
      }
    });
  }
  for (Child& worker : workers) worker.Join();
  WANT_EQ("60", Get(at("counter")));
}

POSIX_CHECK(ATreeIsRemovedByRm) {
  for (int outer = 0; outer < 10; ++outer) {
    MakeDirectory(at(fmt::format("d{}", outer)));
    for (int inner = 0; inner < 20; ++inner) {
      Put(at(fmt::format("d{}/f{}", outer, inner)), "x");
    }
  }
  WANT_EQ(0, RunProgram({"sh", "-c", "rm -r d*"}));
  WANT_EQ(0, Names(at.a).size());
}

POSIX_CHECK(SedInPlaceAndSortInPlaceRewriteAFile) {
  Put(at("f"), "b\na\nc\n");
  WANT_EQ(0, RunProgram({"sed", "-i", "s/a/z/", at("f")}));
  WANT_EQ("b\nz\nc\n", Get(at("f")));
  WANT_EQ(0, RunProgram({"sort", "-o", at("f"), at("f")}));
  WANT_EQ("b\nc\nz\n", Get(at("f")));
}

POSIX_CHECK(RandomWritesAndTruncationsMatchAModel) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  std::string model;
  uint64_t state = 42;
  const auto next = [&state](uint64_t limit) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33) % limit;
  };
  for (uint64_t turn = 0; turn < 1'000; ++turn) {
    const size_t begin = next(400'000);
    const size_t bytes = 1 + next(40'000);
    if (next(10) == 0) {
      MUST(::ftruncate(fd, static_cast<off_t>(begin)));
      model.resize(begin);
    } else if (next(2) == 0) {
      if (model.size() < begin + bytes) model.resize(begin + bytes);
      model.replace(begin, bytes, Bytes(bytes, turn));
      WriteAt(fd, begin, Bytes(bytes, turn));
    } else {
      const std::string expected = begin < model.size() ? model.substr(begin, bytes) : "";
      WANT_EQ(expected, ReadAt(fd, begin, bytes));
    }
  }
  WANT_EQ(model, Get(at("f")));
}

}  // namespace mosa::posix
