// Programs, pipes, sockets, devices, statfs: what is not a plain file, or is used as one.
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstring>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

std::string OwnProgram(const char* name) {
  for (const char* directory : {"/bin/", "/usr/bin/"}) {
    const std::string path = std::string(directory) + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  Skip(std::string(name) + " is not installed");
}

void CopyProgram(const char* name, const Path& target) {
  Put(target, Get(OwnProgram(name)));
  MUST(::chmod(target, 0755));
}

sockaddr_un AddressOf(const Path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

}  // namespace

POSIX_CHECK(ABinaryIsExecuted) {
  CopyProgram("true", at("yes"));
  CopyProgram("false", at("no"));
  WANT_EQ(0, RunProgram({at("yes")}));
  WANT_EQ(1, RunProgram({at("no")}));
}

POSIX_CHECK(AScriptIsExecuted) {
  Put(at("script"), "#!/bin/sh\necho \"$1\" > output\nexit 7\n");
  MUST(::chmod(at("script"), 0755));
  WANT_EQ(7, RunProgram({at("script"), "argument"}));
  WANT_EQ("argument\n", Get(at("output")));
}

POSIX_CHECK(AProgramWrittenAMomentAgoIsExecutedAgainAndAgain) {
  for (int turn = 0; turn < 20; ++turn) {
    Put(at("script"), fmt::format("#!/bin/sh\nexit {}\n", turn));
    MUST(::chmod(at("script"), 0755));
    WANT_EQ(turn, RunProgram({at("script")}));
  }
}

POSIX_CHECK(AProgramOpenForWritingIsNotExecuted) {
  CopyProgram("true", at("program"));
  const Fd fd = Open(at("program"), O_WRONLY);
  char* const arguments[] = {nullptr};
  MUST_FAIL(ETXTBSY, ::execv(at("program"), arguments));
}

POSIX_CHECK(ARunningProgramIsNotOpenedForWriting) {
  CopyProgram("sleep", at("program"));
  Child runner([&] {
    const std::string seconds = "10";
    ::execl(at("program"), "sleep", seconds.c_str(), nullptr);
  });
  const std::string link = fmt::format("/proc/{}/exe", runner.pid());
  for (int turn = 0; turn < 500; ++turn) {
    std::string target(4096, '\0');
    const ssize_t bytes = ::readlink(link.c_str(), target.data(), target.size());
    target.resize(static_cast<size_t>(std::max<ssize_t>(0, bytes)));
    if (target.ends_with("/program")) break;
    SleepMs(10);
  }
  MUST_FAIL(ETXTBSY, ::open(at("program"), O_WRONLY));
  MUST_FAIL(ETXTBSY, ::truncate(at("program"), 0));
  MUST(::unlink(at("program")));
}

POSIX_CHECK(AFifoCarriesBytesBetweenProcesses) {
  MUST(::mkfifo(at("pipe"), 0644));
  WANT(S_ISFIFO(Stat(at("pipe")).st_mode));
  Child writer([&] { WriteAll(Open(at("pipe"), O_WRONLY), Bytes(200'000)); });
  WANT_EQ(Bytes(200'000), Get(at("pipe")));
  writer.Join();
  WANT_EQ(0, SizeOf(at("pipe")));
}

POSIX_CHECK(AFifoWithoutAReaderRefusesANonBlockingWriter) {
  MUST(::mkfifo(at("pipe"), 0644));
  MUST_FAIL(ENXIO, ::open(at("pipe"), O_WRONLY | O_NONBLOCK));
  const Fd reader = Open(at("pipe"), O_RDONLY | O_NONBLOCK);
  const Fd writer = Open(at("pipe"), O_WRONLY | O_NONBLOCK);
  WriteAll(writer, "x");
  MUST_FAIL(ESPIPE, ::lseek(reader, 0, SEEK_SET));
}

POSIX_CHECK(AUnixSocketIsBoundAndConnected) {
  const sockaddr_un address = AddressOf(at("socket"));
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  const Fd server(MUST(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  MUST(::bind(server, generic, sizeof address));
  WANT(S_ISSOCK(Stat(at("socket")).st_mode));
  MUST(::listen(server, 1));
  Child client([&] {
    const Fd own(MUST(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
    MUST(::connect(own, generic, sizeof address));
    WriteAll(own, "hello");
  });
  const Fd accepted(MUST(::accept4(server, nullptr, nullptr, SOCK_CLOEXEC)));
  char buffer[10];
  WANT_EQ(5, MUST(::recv(accepted, buffer, 5, MSG_WAITALL)));
  client.Join();
  MUST_FAIL(ENXIO, ::open(at("socket"), O_RDWR));
}

POSIX_CHECK(ASocketNameIsNotBoundTwiceButAfterUnlink) {
  const sockaddr_un address = AddressOf(at("socket"));
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  const Fd one(MUST(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  const Fd two(MUST(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  MUST(::bind(one, generic, sizeof address));
  MUST_FAIL(EADDRINUSE, ::bind(two, generic, sizeof address));
  MUST(::unlink(at("socket")));
  MUST(::bind(two, generic, sizeof address));
}

POSIX_CHECK(ADeviceNodeKeepsItsNumbers) {
  RequireRoot();
  if (::mknod(at("null"), S_IFCHR | 0666, makedev(1, 3)) < 0 && errno == EPERM) {
    Skip("no device nodes here");
  }
  const struct stat made = Stat(at("null"));
  WANT(S_ISCHR(made.st_mode));
  WANT_EQ(1, major(made.st_rdev));
  WANT_EQ(3, minor(made.st_rdev));
}

POSIX_CHECK(MknodMakesARegularFile) {
  MUST(::mknod(at("f"), S_IFREG | 0640, 0));
  WANT(S_ISREG(Stat(at("f")).st_mode));
  Put(at("f"), "usable");
  WANT_EQ("usable", Get(at("f")));
  MUST_FAIL(EEXIST, ::mknod(at("f"), S_IFREG | 0640, 0));
}

POSIX_CHECK(StatfsTellsSensibleNumbers) {
  struct statvfs all {};
  MUST(::statvfs(at.a.c_str(), &all));
  WANT(all.f_bsize >= 512);
  WANT(all.f_frsize >= 512);
  WANT(all.f_blocks > 0);
  WANT(all.f_bfree <= all.f_blocks);
  WANT(all.f_bavail <= all.f_bfree);
  WANT(all.f_ffree <= all.f_files);
  WANT_EQ(255, all.f_namemax);
}

POSIX_CHECK(StatfsOfADescriptorAndOfAFileAreThoseOfTheMount) {
  Put(at("f"), "x");
  struct statfs by_path {};
  struct statfs by_descriptor {};
  MUST(::statfs(at.a.c_str(), &by_path));
  MUST(::fstatfs(Open(at("f"), O_RDONLY), &by_descriptor));
  WANT_EQ(by_path.f_type, by_descriptor.f_type);
  WANT_EQ(by_path.f_blocks, by_descriptor.f_blocks);
}

POSIX_CHECK(WrittenBytesAreCountedAsAllocated) {
  struct statvfs before {};
  MUST(::statvfs(at.a.c_str(), &before));
  constexpr size_t kBytes = 64 << 20;
  if (before.f_bfree * before.f_frsize < 2 * kBytes) Skip("not enough space");
  Put(at("f"), std::string(kBytes, 'x'));
  WANT(Stat(at("f")).st_blocks * 512 >= static_cast<int64_t>(kBytes));
  WANT(Stat(at("f")).st_blksize >= 512);
}

POSIX_CHECK(EveryFileHasItsOwnInodeOnOneDevice) {
  std::set<std::string> inodes;
  const dev_t device = Stat(at.a).st_dev;
  for (int index = 0; index < 200; ++index) {
    const Path path = at(fmt::format("f{}", index));
    Put(path, "x");
    inodes.insert(fmt::format("{}", Stat(path).st_ino));
    WANT_EQ(device, Stat(path).st_dev);
  }
  WANT_EQ(200, inodes.size());
}

POSIX_CHECK(AnInodeStaysTheSameWhileItsFileIsOpen) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDWR);
  const ino_t inode = Fstat(fd).st_ino;
  for (int index = 0; index < 500; ++index) Put(at(fmt::format("other{}", index)), "y");
  WANT_EQ(inode, Fstat(fd).st_ino);
  WANT_EQ(inode, Stat(at("f")).st_ino);
}

POSIX_CHECK(AFileIsAlwaysReadyForPoll) {
  Put(at("f"), "");
  const Fd fd = Open(at("f"), O_RDWR);
  pollfd ready{.fd = fd, .events = POLLIN | POLLOUT, .revents = 0};
  WANT_EQ(1, MUST(::poll(&ready, 1, 0)));
  WANT_EQ(POLLIN | POLLOUT, ready.revents);
}

POSIX_CHECK(InotifyReportsChangesOfThisMount) {
  const Fd watch(MUST(::inotify_init1(IN_CLOEXEC)));
  MUST(::inotify_add_watch(watch, at.a.c_str(), IN_CREATE | IN_CLOSE_WRITE | IN_DELETE));
  Put(at("f"), "x");
  MUST(::unlink(at("f")));
  uint32_t seen = 0;
  alignas(inotify_event) char buffer[4096];
  while (seen != (IN_CREATE | IN_CLOSE_WRITE | IN_DELETE)) {
    const ssize_t bytes = MUST(::read(watch, buffer, sizeof buffer));
    for (ssize_t begin = 0; begin < bytes;) {
      inotify_event event{};
      std::memcpy(&event, buffer + begin, sizeof event);
      seen |= event.mask;
      begin += static_cast<ssize_t>(sizeof event) + event.len;
    }
  }
}

POSIX_CHECK(ADescriptorKnowsItsPath) {
  Put(at("f"), "x");
  const Fd fd = Open(at("f"), O_RDONLY);
  std::string target(4096, '\0');
  const std::string link = fmt::format("/proc/self/fd/{}", static_cast<int>(fd));
  target.resize(static_cast<size_t>(MUST(::readlink(link.c_str(), target.data(), target.size()))));
  WANT(target.ends_with("/f"));
  WANT_EQ("x", Get(link));
}

POSIX_CHECK(TerminalCallsOnAFileFailWithENOTTY) {
  const Fd fd = Open(at("f"), O_RDWR | O_CREAT);
  WANT_EQ(0, ::isatty(fd));
  WANT_EQ(ENOTTY, errno);
}

}  // namespace mosa::posix
