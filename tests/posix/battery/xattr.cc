// Extended attributes of the namespace user.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

// Skips where the file system keeps no user attributes at all.
void Set(const std::string& path, const std::string& name, std::string_view value,
         Where where = Where::current()) {
  if (::setxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0) == 0) return;
  if (errno == EOPNOTSUPP) Skip("no user attributes here");
  Fail(where.file_name(), where.line(),
       fmt::format("setxattr({}) failed: {}", name, ::strerrorname_np(errno)));
}

std::string Value(const Path& path, const std::string& name, Where where = Where::current()) {
  std::string value(65536, '\0');
  const ssize_t bytes = ::getxattr(path, name.c_str(), value.data(), value.size());
  if (bytes < 0) {
    Fail(where.file_name(), where.line(),
         fmt::format("getxattr({}) failed: {}", name, ::strerrorname_np(errno)));
  }
  value.resize(static_cast<size_t>(bytes));
  return value;
}

// The attributes of the namespace user.
std::set<std::string> List(const Path& path) {
  std::string text(65536, '\0');
  text.resize(static_cast<size_t>(MUST(::listxattr(path, text.data(), text.size()))));
  std::set<std::string> names;
  for (size_t begin = 0; begin < text.size();) {
    const std::string name = text.c_str() + begin;
    begin += name.size() + 1;
    if (name.starts_with("user.")) WANT(names.insert(name).second);
  }
  return names;
}

}  // namespace

POSIX_CHECK(AnAttributeKeepsItsBytes) {
  Put(at("f"), "x");
  const std::string odd("zero \0 and \xff byte", 17);
  Set(at("f"), "user.text", "value");
  Set(at("f"), "user.odd", odd);
  WANT_EQ("value", Value(at("f"), "user.text"));
  WANT_EQ(odd, Value(at("f"), "user.odd"));
  WANT_EQ((std::set<std::string>{"user.text", "user.odd"}), List(at("f")));
}

POSIX_CHECK(AnAttributeMayBeEmpty) {
  Put(at("f"), "x");
  Set(at("f"), "user.empty", "");
  WANT_EQ("", Value(at("f"), "user.empty"));
  WANT_EQ(std::set<std::string>{"user.empty"}, List(at("f")));
}

POSIX_CHECK(AnAttributeIsReplaced) {
  Put(at("f"), "x");
  Set(at("f"), "user.a", "a long first value");
  Set(at("f"), "user.a", "short");
  WANT_EQ("short", Value(at("f"), "user.a"));
  WANT_EQ(1, List(at("f")).size());
}

POSIX_CHECK(AnAttributeIsCreatedOrReplacedOnlyAsAsked) {
  Put(at("f"), "x");
  Set(at("f"), "user.a", "1");
  MUST_FAIL(EEXIST, ::setxattr(at("f"), "user.a", "2", 1, XATTR_CREATE));
  MUST_FAIL(ENODATA, ::setxattr(at("f"), "user.b", "2", 1, XATTR_REPLACE));
  MUST(::setxattr(at("f"), "user.a", "3", 1, XATTR_REPLACE));
  MUST(::setxattr(at("f"), "user.b", "4", 1, XATTR_CREATE));
  WANT_EQ("3", Value(at("f"), "user.a"));
  WANT_EQ("4", Value(at("f"), "user.b"));
}

POSIX_CHECK(ARemovedAttributeIsGone) {
  Put(at("f"), "x");
  Set(at("f"), "user.a", "1");
  Set(at("f"), "user.b", "2");
  MUST(::removexattr(at("f"), "user.a"));
  MUST_FAIL(ENODATA, ::getxattr(at("f"), "user.a", nullptr, 0));
  MUST_FAIL(ENODATA, ::removexattr(at("f"), "user.a"));
  WANT_EQ(std::set<std::string>{"user.b"}, List(at("f")));
}

POSIX_CHECK(AnAbsentAttributeFailsWithENODATA) {
  Put(at("f"), "x");
  char buffer[10];
  MUST_FAIL(ENODATA, ::getxattr(at("f"), "user.absent", buffer, sizeof buffer));
  MUST_FAIL(ENOENT, ::getxattr(at("absent"), "user.a", buffer, sizeof buffer));
}

POSIX_CHECK(AttributeCallsTellTheSizeAndRefuseAShortBuffer) {
  Put(at("f"), "x");
  Set(at("f"), "user.a", "0123456789");
  WANT_EQ(10, MUST(::getxattr(at("f"), "user.a", nullptr, 0)));
  const ssize_t listed = MUST(::listxattr(at("f"), nullptr, 0));
  WANT(listed >= static_cast<ssize_t>(sizeof "user.a"));
  char buffer[5];
  MUST_FAIL(ERANGE, ::getxattr(at("f"), "user.a", buffer, sizeof buffer));
  MUST_FAIL(ERANGE, ::listxattr(at("f"), buffer, sizeof buffer));
}

POSIX_CHECK(ALargeAttributeIsKept) {
  Put(at("f"), "x");
  const std::string value = Bytes(60'000);
  Set(at("f"), "user.large", value);
  WANT_EQ(value, Value(at("f"), "user.large"));
}

POSIX_CHECK(TooLargeAttributesAndNamesAreRefused) {
  Put(at("f"), "x");
  Set(at("f"), "user.a", "1");
  const std::string value(65'537, 'v');
  MUST_FAIL(E2BIG, ::setxattr(at("f"), "user.b", value.data(), value.size(), 0));
  const std::string name = "user." + std::string(251, 'n');
  MUST_FAIL(ERANGE, ::setxattr(at("f"), name.c_str(), "1", 1, 0));
  WANT_EQ(std::set<std::string>{"user.a"}, List(at("f")));
}

POSIX_CHECK(AnAttributeNameOf255BytesIsKept) {
  Put(at("f"), "x");
  const std::string name = "user." + std::string(250, 'n');
  Set(at("f"), name, "v");
  WANT_EQ("v", Value(at("f"), name));
  WANT_EQ(std::set<std::string>{name}, List(at("f")));
}

POSIX_CHECK(AFileHasManyAttributes) {
  Put(at("f"), "x");
  std::set<std::string> names;
  for (int count = 0; count < 100; ++count) {
    const std::string name = fmt::format("user.number.{}", count);
    Set(at("f"), name, name);
    names.insert(name);
  }
  WANT_EQ(names, List(at("f")));
  for (const std::string& name : names) WANT_EQ(name, Value(at("f"), name));
}

POSIX_CHECK(DirectoriesHaveAttributesToo) {
  MakeDirectory(at("d"));
  Set(at("d"), "user.a", "of a directory");
  WANT_EQ("of a directory", Value(at("d"), "user.a"));
  MakeDirectory(at("d/e"));
  WANT_EQ(0, List(at("d/e")).size());
}

POSIX_CHECK(SymbolicLinksHaveNoUserAttributes) {
  Put(at("f"), "x");
  MUST(::symlink("f", at("link")));
  Set(at("link"), "user.a", "of the target");
  WANT_EQ("of the target", Value(at("f"), "user.a"));
  MUST_FAIL(EPERM, ::lsetxattr(at("link"), "user.a", "1", 1, 0));
}

POSIX_CHECK(AttributesAreSetThroughADescriptor) {
  Put(at("f"), "x");
  Set(at("f"), "user.probe", "1");
  const Fd fd = Open(at("f"), O_RDWR);
  MUST(::fsetxattr(fd, "user.a", "1", 1, 0));
  WANT_EQ("1", Value(at("f"), "user.a"));
  MUST(::fremovexattr(fd, "user.probe"));
  WANT_EQ(std::set<std::string>{"user.a"}, List(at("f")));
  MUST(::unlink(at("f")));
  char byte = 0;
  WANT_EQ(1, MUST(::fgetxattr(fd, "user.a", &byte, 1)));
}

POSIX_CHECK(AttributesMoveWithRenameAndLink) {
  Put(at("a"), "x");
  Set(at("a"), "user.a", "kept");
  MUST(::rename(at("a"), at("b")));
  MUST(::link(at("b"), at("c")));
  WANT_EQ("kept", Value(at("c"), "user.a"));
  Put(at("b"), "rewritten");
  WANT_EQ("kept", Value(at("b"), "user.a"));
}

POSIX_CHECK(AttributesMoveTheChangeTimeOnly) {
  Put(at("f"), "x");
  const struct stat before = Stat(at("f"));
  SleepMs(30);
  Set(at("f"), "user.a", "1");
  WANT(Nanoseconds(Stat(at("f")).st_ctim) > Nanoseconds(before.st_ctim));
  WANT_EQ(Nanoseconds(before.st_mtim), Nanoseconds(Stat(at("f")).st_mtim));
}

POSIX_CHECK(AttributesFollowTheRightsOfTheFile) {
  Put(at("f"), "x");
  Set(at("f"), "user.a", "1");
  MUST(::chmod(at("f"), 0644));
  AsUser(kNobody, [&] {
    WANT_EQ("1", Value(at("f"), "user.a"));
    MUST_FAIL(EACCES, ::setxattr(at("f"), "user.a", "2", 1, 0));
    MUST_FAIL(EACCES, ::removexattr(at("f"), "user.a"));
  });
  MUST(::chmod(at("f"), 0600));
  AsUser(kNobody, [&] { MUST_FAIL(EACCES, ::getxattr(at("f"), "user.a", nullptr, 0)); });
}

POSIX_CHECK(UnknownAttributeNamespacesAreRefused) {
  Put(at("f"), "x");
  MUST_FAIL(EOPNOTSUPP, ::setxattr(at("f"), "nonsense.a", "1", 1, 0));
  MUST_FAIL(EOPNOTSUPP, ::setxattr(at("f"), "nodot", "1", 1, 0));
}

POSIX_CHECK(CpKeepsAttributes) {
  MakeDirectory(at("d"));
  Put(at("d/f"), "x");
  Set(at("d/f"), "user.a", "copied");
  WANT_EQ(0, RunProgram({"cp", "-a", at("d"), at("copy")}));
  WANT_EQ("copied", Value(at("copy/f"), "user.a"));
  WANT_EQ(List(at("d/f")), List(at("copy/f")));
}

POSIX_CHECK(TarKeepsAttributes) {
  MakeDirectory(at("d"));
  Put(at("d/f"), "x");
  Set(at("d/f"), "user.a", "archived");
  Set(at("d"), "user.of.directory", "1");
  WANT_EQ(0, RunProgram({"tar", "--xattrs", "-cf", at("d.tar"), "-C", at.a, "d"}));
  MakeDirectory(at("out"));
  WANT_EQ(0, RunProgram({"tar", "--xattrs", "-xf", at("d.tar"), "-C", at("out")}));
  WANT_EQ("archived", Value(at("out/d/f"), "user.a"));
  WANT_EQ("1", Value(at("out/d"), "user.of.directory"));
}

}  // namespace mosa::posix
