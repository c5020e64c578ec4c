// The words of the POSIX battery: what a check is, and the helpers that checks are written with.
//
// A check is a sentence that holds on any POSIX file system (tmpfs is the reference). It runs in a
// child process of its own, whose current directory is a fresh empty one, under a time limit, so it
// may take locks, change its user, its directory and its umask, and leave files and children
// behind. A failed expectation throws Failure and ends the check; helpers throw it too.
#ifndef MOSA_TESTS_POSIX_BATTERY_BATTERY_H_
#define MOSA_TESTS_POSIX_BATTERY_BATTERY_H_

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mosa::posix {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A path that every system call takes as it is.
struct Path : std::string {
  explicit Path(std::string path) : std::string(std::move(path)) {}
  operator const char*() const { return c_str(); }  // NOLINT: the reason for this type.
};

// The directory of one check. `a` is "." (so that a user who may not search the directories above
// still reaches it); `b` is the same directory through the second mount, or `absolute` where there
// is only one.
struct Place {
  std::string a;
  std::string b;
  std::string absolute;

  Path operator()(std::string_view name) const { return Path(a + "/" + std::string(name)); }
  Path Other(std::string_view name) const { return Path(b + "/" + std::string(name)); }
};

enum class Kind { kOneMount, kSlow, kTwoMounts };

struct Check {
  const char* name;
  Kind kind;
  void (*body)(const Place& at);
};

// Every check of the program, in the order of the sources.
std::vector<Check>& Checks();

struct Registrar {
  Registrar(const char* name, Kind kind, void (*body)(const Place&));
};

#define POSIX_CHECK_OF_KIND_(name, kind)                                                          \
  static void name(const ::mosa::posix::Place& at);                                               \
  static const ::mosa::posix::Registrar register_##name{#name, ::mosa::posix::Kind::kind, &name}; \
  static void name([[maybe_unused]] const ::mosa::posix::Place& at)
#define POSIX_CHECK(name) POSIX_CHECK_OF_KIND_(name, kOneMount)
#define POSIX_SLOW_CHECK(name) POSIX_CHECK_OF_KIND_(name, kSlow)
#define POSIX_TWO_MOUNTS_CHECK(name) POSIX_CHECK_OF_KIND_(name, kTwoMounts)

[[noreturn]] void Fail(const char* file, int line, const std::string& what);
[[noreturn]] void Skip(const std::string& reason);

// Throws unless `result` >= 0; returns it. The text names the call and the error.
template <typename T>
T Must(T result, const char* text, const char* file, int line) {
  const int error = errno;
  if (result < 0) Fail(file, line, fmt::format("{} failed: {}", text, ::strerrorname_np(error)));
  return result;
}

template <typename T>
void MustFail(int expected, T result, int error, const char* text, const char* file, int line) {
  if (result >= 0) {
    Fail(file, line,
         fmt::format("{} returned {} instead of {}", text, result, ::strerrorname_np(expected)));
  }
  if (error != expected) {
    Fail(file, line,
         fmt::format("{} failed with {} instead of {}", text, ::strerrorname_np(error),
                     ::strerrorname_np(expected)));
  }
}

// How a value is printed when it differs: short texts in full (escaped), long ones by length and
// beginning, sets by their first members. Difference says where two texts begin to differ.
std::string Shown(std::string_view text);
std::string Difference(std::string_view expected, std::string_view actual);
std::string Shown(const std::set<std::string>& names);
template <typename T>
requires std::is_arithmetic_v<T> std::string Shown(T value) { return fmt::format("{}", value); }

template <typename A, typename B>
void WantEqual(const A& expected, const B& actual, const char* text, const char* file, int line) {
  bool equal = false;
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    equal = std::cmp_equal(expected, actual);
  } else {
    equal = expected == actual;
  }
  if (!equal) {
    std::string what = fmt::format("{} is {}, expected {}", text, Shown(actual), Shown(expected));
    if constexpr (std::is_same_v<A, std::string> && std::is_same_v<B, std::string>) {
      what += Difference(expected, actual);
    }
    Fail(file, line, what);
  }
}

// The call must succeed (return >= 0); the value is the call's.
#define MUST(call) ::mosa::posix::Must((call), #call, __FILE__, __LINE__)
// The call must fail with `error`.
#define MUST_FAIL(error, call)                                                            \
  do {                                                                                    \
    errno = 0;                                                                            \
    const auto must_fail_result = (call);                                                 \
    ::mosa::posix::MustFail((error), must_fail_result, errno, #call, __FILE__, __LINE__); \
  } while (false)
#define WANT(condition) \
  ((condition) ? (void)0 : ::mosa::posix::Fail(__FILE__, __LINE__, "not true: " #condition))
#define WANT_EQ(expected, actual) \
  ::mosa::posix::WantEqual((expected), (actual), #actual, __FILE__, __LINE__)

// An open descriptor; closed when it goes out of scope.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { Close(); }
  operator int() const { return fd_; }  // NOLINT: a descriptor is what every call takes.
  // Returns what close(2) returned; 0 when it was closed before.
  int Close();

 private:
  int fd_;
};

// The helpers below throw with the line of their caller.
class Where {
 public:
  static constexpr Where current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return Where(file, line);
  }
  constexpr const char* file_name() const { return file_; }
  constexpr int line() const { return line_; }

 private:
  constexpr Where(const char* file, int line) : file_(file), line_(line) {}

  const char* file_;
  int line_;
};

// open(2), which must succeed.
Fd Open(const std::string& path, int flags, mode_t mode = 0644, Where where = Where::current());

// Makes or replaces the file with these bytes; Get reads all of it.
void Put(const std::string& path, std::string_view bytes, Where where = Where::current());
std::string Get(const std::string& path, Where where = Where::current());
void WriteAt(int fd, uint64_t offset, std::string_view bytes, Where where = Where::current());
// Up to `bytes` bytes from `offset`; shorter only at the end of the file.
std::string ReadAt(int fd, uint64_t offset, size_t bytes, Where where = Where::current());
void WriteAll(int fd, std::string_view bytes, Where where = Where::current());

struct stat Stat(const std::string& path, Where where = Where::current());
struct stat Lstat(const std::string& path, Where where = Where::current());
struct stat Fstat(int fd, Where where = Where::current());
bool Exists(const std::string& path, Where where = Where::current());
off_t SizeOf(const std::string& path, Where where = Where::current());
mode_t ModeOf(const std::string& path, Where where = Where::current());  // The 12 lower bits.

// The entries of a directory without "." and ".."; a name listed twice is a failure.
std::set<std::string> Names(const std::string& directory, Where where = Where::current());
void MakeDirectory(const std::string& path, mode_t mode = 0755, Where where = Where::current());

// A mapping of a file from offset 0, unmapped when it goes out of scope.
class Mapping {
 public:
  Mapping(int fd, size_t bytes, int protection, int flags, Where where = Where::current());
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
  char* data() const { return data_; }
  std::string Text(size_t begin, size_t bytes) const { return {data_ + begin, bytes}; }
  void Write(size_t begin, std::string_view bytes) const;

 private:
  char* data_;
  size_t bytes_;
};

// Runs a program found in PATH with its output dropped; returns its exit code (128 + signal when
// killed). Skips the check when the machine has no such program.
int RunProgram(const std::vector<std::string>& words, Where where = Where::current());

// Bytes that differ by offset and seed, so that a block in the wrong place is noticed.
std::string Bytes(size_t count, uint64_t seed = 1);

// Nanoseconds since the epoch of a time of struct stat.
int64_t Nanoseconds(const struct timespec& time);
void SleepMs(int milliseconds);

// A child process that runs `body`. Join() throws what the body threw; the destructor kills it.
class Child {
 public:
  explicit Child(const std::function<void()>& body);
  Child(Child&& other) noexcept;
  ~Child();
  void Join();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
  int report_;
};

// Runs `body` in a child process and waits for it.
void InChild(const std::function<void()>& body);
// The same as a user without privileges, his group and these further groups; skips the check when
// not root, or when the mount admits its owner only.
void AsUser(uid_t user, const std::function<void()>& body, const std::vector<gid_t>& groups = {});
void RequireRoot();

inline constexpr uid_t kNobody = 65534;
inline constexpr uid_t kSomebody = 65533;

// A signal between processes that were forked after it was made: Wait() blocks for one Raise().
class Signal {
 public:
  Signal();
  void Raise();
  void Wait();
  // Whether a Raise() came within this time.
  bool WaitMs(int milliseconds);

 private:
  Fd fd_;
};

}  // namespace mosa::posix

#endif  // MOSA_TESTS_POSIX_BATTERY_BATTERY_H_
