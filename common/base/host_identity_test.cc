#include "common/base/host_identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>

#include "common/base/errno_status.h"
#include "common/base/unique_fd.h"

namespace mosa {
namespace {

TEST(HostIdentity, IsStableAndNamesTheNetworkNamespace) {
  const auto identity = HostIdentity();
  ASSERT_TRUE(identity.ok()) << MessageOf(identity.status());
  EXPECT_EQ(*identity, *HostIdentity());
  struct stat status {};
  ASSERT_EQ(::stat("/proc/self/ns/net", &status), 0);
  const size_t colon = identity->rfind(':');
  ASSERT_EQ(colon, 36U);  // A boot id is a UUID.
  EXPECT_EQ(identity->substr(colon + 1), std::to_string(status.st_ino));
}

TEST(UniqueFd, ClosesOnce) {
  int raw = -1;
  {
    UniqueFd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    raw = first.get();
    UniqueFd second(std::move(first));
    EXPECT_FALSE(first);
    EXPECT_EQ(second.get(), raw);
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
}

TEST(ErrnoStatus, ChoosesTheCodeByWhatToDoNext) {
  EXPECT_EQ(ErrnoStatus(ENOSPC, "x").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(ECONNRESET, "x").code(), StatusCode::kUnavailable);
  EXPECT_EQ(MessageOf(ErrnoStatus(ENOENT, "cannot open /x")),
            "cannot open /x: No such file or directory");
}

}  // namespace
}  // namespace mosa
