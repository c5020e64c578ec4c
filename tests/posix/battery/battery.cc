#include "tests/posix/battery/battery.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace mosa::posix {

std::vector<Check>& Checks() {
  static std::vector<Check> checks;
  return checks;
}

Registrar::Registrar(const char* name, Kind kind, void (*body)(const Place&)) {
  Checks().push_back({name, kind, body});
}

void Fail(const char* file, int line, const std::string& what) {
  const char* slash = std::strrchr(file, '/');
  throw Failure(fmt::format("{}:{}: {}", slash == nullptr ? file : slash + 1, line, what));
}

void Skip(const std::string& reason) { throw Skipped(reason); }

std::string Shown(std::string_view text) {
  std::string shown;
  for (const char character : text.substr(0, text.size() <= 60 ? 60 : 16)) {
    if (character >= ' ' && character <= '~') {
      shown += character;
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(character));
    }
  }
  if (text.size() <= 60) return fmt::format("\"{}\"", shown);
  return fmt::format("{} bytes \"{}...\"", text.size(), shown);
}

std::string Difference(std::string_view expected, std::string_view actual) {
  const size_t common = std::min(expected.size(), actual.size());
  const auto differ = std::mismatch(expected.begin(), expected.begin() + common, actual.begin());
  const size_t offset = static_cast<size_t>(differ.first - expected.begin());
  return fmt::format(", different from byte {} on: {}, expected {}", offset,
                     Shown(actual.substr(offset, 16)), Shown(expected.substr(offset, 16)));
}

std::string Shown(const std::set<std::string>& names) {
  std::string shown;
  size_t count = 0;
  for (const std::string& name : names) {
    if (++count > 8) break;
    shown += Shown(name) + " ";
  }
  return fmt::format("{} names {{ {}{}}}", names.size(), shown, names.size() > 8 ? "... " : "");
}

namespace {

// Throws with the caller's line unless `result` >= 0.
template <typename T>
T At(Where where, T result, std::string_view call, std::string_view path = "") {
  if (result < 0) {
    const int error = errno;
    Fail(where.file_name(), where.line(),
         fmt::format("{}({}) failed: {}", call, path, ::strerrorname_np(error)));
  }
  return result;
}

}  // namespace

int Fd::Close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 ? 0 : ::close(fd);
}

Fd Open(const std::string& path, int flags, mode_t mode, Where where) {
  return Fd(At(where, ::open(path.c_str(), flags | O_CLOEXEC, mode), "open", path));
}

void WriteAll(int fd, std::string_view bytes, Where where) {
  while (!bytes.empty()) {
    const ssize_t written = At(where, ::write(fd, bytes.data(), bytes.size()), "write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void Put(const std::string& path, std::string_view bytes, Where where) {
  Fd fd = Open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644, where);
  WriteAll(fd, bytes, where);
  At(where, fd.Close(), "close", path);
}

std::string Get(const std::string& path, Where where) {
  const Fd fd = Open(path, O_RDONLY, 0, where);
  std::string bytes;
  std::string buffer(256 << 10, '\0');
  for (;;) {
    const ssize_t count = At(where, ::read(fd, buffer.data(), buffer.size()), "read", path);
    if (count == 0) return bytes;
    bytes.append(buffer, 0, static_cast<size_t>(count));
  }
}

void WriteAt(int fd, uint64_t offset, std::string_view bytes, Where where) {
  while (!bytes.empty()) {
    const ssize_t written =
        At(where, ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)), "pwrite");
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

std::string ReadAt(int fd, uint64_t offset, size_t bytes, Where where) {
  std::string data(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const off_t begin = static_cast<off_t>(offset + done);
    const ssize_t count = At(where, ::pread(fd, data.data() + done, bytes - done, begin), "pread");
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  data.resize(done);
  return data;
}

struct stat Stat(const std::string& path, Where where) {
  struct stat result {};
  At(where, ::stat(path.c_str(), &result), "stat", path);
  return result;
}

struct stat Lstat(const std::string& path, Where where) {
  struct stat result {};
  At(where, ::lstat(path.c_str(), &result), "lstat", path);
  return result;
}

struct stat Fstat(int fd, Where where) {
  struct stat result {};
  At(where, ::fstat(fd, &result), "fstat");
  return result;
}

bool Exists(const std::string& path, Where where) {
  struct stat result {};
  if (::lstat(path.c_str(), &result) == 0) return true;
  if (errno != ENOENT) At(where, -1, "lstat", path);
  return false;
}

off_t SizeOf(const std::string& path, Where where) { return Stat(path, where).st_size; }

mode_t ModeOf(const std::string& path, Where where) { return Stat(path, where).st_mode & 07777; }

std::set<std::string> Names(const std::string& directory, Where where) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), &::closedir);
  if (stream == nullptr) At(where, -1, "opendir", directory);
  std::set<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (!names.insert(name).second) {
      Fail(where.file_name(), where.line(), Shown(name) + " is listed twice");
    }
  }
  if (errno != 0) At(where, -1, "readdir", directory);
  return names;
}

void MakeDirectory(const std::string& path, mode_t mode, Where where) {
  At(where, ::mkdir(path.c_str(), mode), "mkdir", path);
}

Mapping::Mapping(int fd, size_t bytes, int protection, int flags, Where where)
    : data_(nullptr), bytes_(bytes) {
  void* const data = ::mmap(nullptr, bytes, protection, flags, fd, 0);
  if (data == MAP_FAILED) At(where, -1, "mmap");
  data_ = static_cast<char*>(data);
}

Mapping::~Mapping() { ::munmap(data_, bytes_); }

void Mapping::Write(size_t begin, std::string_view bytes) const {
  std::memcpy(data_ + begin, bytes.data(), bytes.size());
}

int RunProgram(const std::vector<std::string>& words, Where where) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = At(where, ::fork(), "fork");
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  At(where, ::waitpid(child, &status, 0), "waitpid");
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  if (WEXITSTATUS(status) == 127) Skip(words[0] + " is not installed");
  return WEXITSTATUS(status);
}

std::string Bytes(size_t count, uint64_t seed) {
  std::string bytes(count, '\0');
  for (size_t begin = 0; begin < count; begin += 8) {
    uint64_t word = (begin + seed * 0x9e3779b97f4a7c15ULL) ^ 0x5bf03635ULL;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
    std::memcpy(bytes.data() + begin, &word, std::min<size_t>(8, count - begin));
  }
  return bytes;
}

int64_t Nanoseconds(const struct timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void SleepMs(int milliseconds) { ::usleep(static_cast<useconds_t>(milliseconds) * 1000); }

namespace {

// What a child reports: one letter for the kind, then the text. Nothing means success.
[[noreturn]] void RunAndReport(const std::function<void()>& body, int report) {
  std::string text;
  try {
    body();
  } catch (const Skipped& skipped) {
    text = std::string("S") + skipped.what();
  } catch (const std::exception& failure) {
    text = std::string("F") + failure.what();
  }
  if (!text.empty() && ::write(report, text.data(), text.size()) < 0) ::_exit(2);
  ::_exit(text.empty() ? 0 : 1);
}

}  // namespace

Child::Child(const std::function<void()>& body) : pid_(-1), report_(-1) {
  int ends[2];
  MUST(::pipe2(ends, O_CLOEXEC));
  const pid_t parent = ::getpid();
  pid_ = MUST(::fork());
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(3);
    ::close(ends[0]);
    RunAndReport(body, ends[1]);
  }
  ::close(ends[1]);
  report_ = ends[0];
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), report_(std::exchange(other.report_, -1)) {}

Child::~Child() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (report_ >= 0) ::close(report_);
}

void Child::Join() {
  std::string text(4096, '\0');
  size_t used = 0;
  for (ssize_t count = 1; count > 0 && used < text.size(); used += static_cast<size_t>(count)) {
    count = ::read(report_, text.data() + used, text.size() - used);
    if (count < 0) break;
  }
  text.resize(used);
  int status = 0;
  MUST(::waitpid(std::exchange(pid_, -1), &status, 0));
  if (!text.empty() && text[0] == 'S') throw Skipped(text.substr(1));
  if (!text.empty()) throw Failure(text.substr(1));
  if (WIFSIGNALED(status)) {
    throw Failure(fmt::format("killed by SIG{}", ::sigabbrev_np(WTERMSIG(status))));
  }
  if (WEXITSTATUS(status) != 0) {
    throw Failure(fmt::format("a child exited with {}", WEXITSTATUS(status)));
  }
}

void InChild(const std::function<void()>& body) {
  Child child(body);
  child.Join();
}

void RequireRoot() {
  if (::geteuid() != 0) Skip("needs root");
}

void AsUser(uid_t user, const std::function<void()>& body, const std::vector<gid_t>& groups) {
  RequireRoot();
  InChild([&] {
    if (::setgroups(groups.size(), groups.data()) != 0 || ::setresgid(user, user, user) != 0 ||
        ::setresuid(user, user, user) != 0) {
      Skip("cannot change the user here");
    }
    struct stat here {};
    if (::stat(".", &here) != 0 && errno == EACCES) Skip("the mount admits only its owner");
    body();
  });
}

Signal::Signal() : fd_(::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)) { MUST(static_cast<int>(fd_)); }

void Signal::Raise() {
  const uint64_t one = 1;
  MUST(::write(fd_, &one, sizeof one));
}

void Signal::Wait() {
  uint64_t value = 0;
  MUST(::read(fd_, &value, sizeof value));
}

bool Signal::WaitMs(int milliseconds) {
  pollfd poll_fd{.fd = fd_, .events = POLLIN, .revents = 0};
  if (MUST(::poll(&poll_fd, 1, milliseconds)) == 0) return false;
  Wait();
  return true;
}

}  // namespace mosa::posix
