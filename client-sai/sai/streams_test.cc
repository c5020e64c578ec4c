// Files that are read while they are written: reads wait at the end, and writers publish.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "client-sai/sai/cluster_fixture.h"

namespace mosa::sai {
namespace {

class Streams : public ::testing::Test {
 protected:
  // What a read that waited was told; 0: nothing yet.
  using Told = std::shared_ptr<std::atomic<int>>;

  void Expect(const std::string& path) {
    auto made = cluster_.a().Open(path, O_CREAT | O_WRONLY);
    ASSERT_TRUE(Ok(made));
    ASSERT_TRUE(Ok(cluster_.a().Close(made->handle)));
    ASSERT_TRUE(Ok(cluster_.a().SetXattr(path, "user.mosa.stream", "append")));
  }
  HandleId Open(LocalMount& mount, const std::string& path, uint32_t flags) {
    auto opened = mount.Open(path, flags);
    EXPECT_TRUE(Ok(opened)) << path;
    EXPECT_EQ(opened->mode.kind, OpenMode::Kind::kDirect);
    return opened->handle;
  }
  bool Waits(LocalMount& mount, HandleId handle, uint64_t offset) {
    const auto read = mount.fs().Read(handle, offset, 1 << 20);
    EXPECT_TRUE(Ok(read));
    return read.ok() && read->await;
  }
  Told Await(LocalMount& mount, HandleId handle, uint64_t offset) {
    auto told = std::make_shared<std::atomic<int>>(0);
    const auto read = mount.fs().Read(handle, offset, 1 << 20);
    EXPECT_TRUE(Ok(read));
    if (read.ok() && read->await) read->await([told](bool may_read) { *told = may_read ? 1 : 2; });
    return told;
  }
  static bool Becomes(const Told& told, int value) {
    return Eventually([&] { return *told == value; });
  }

  Cluster cluster_{256 * kMiB, 256 * kMiB, true};
};

TEST_F(Streams, ReadersGetWhatIsWrittenAndThenTheEnd) {
  for (LocalMount* const mount : {&cluster_.b(), &cluster_.a()}) {
    const std::string path = mount == &cluster_.b() ? "/f" : "/g";
    Expect(path);
    const HandleId reader = Open(*mount, path, O_RDONLY);
    EXPECT_TRUE(Waits(*mount, reader, 0));
    const Told first = Await(*mount, reader, 0);
    const HandleId writer = Open(cluster_.a(), path, O_WRONLY | O_TRUNC);
    EXPECT_EQ(*first, 0);
    ASSERT_TRUE(Ok(cluster_.a().Write(writer, 0, "ten bytes!")));
    EXPECT_TRUE(Becomes(first, 1));
    EXPECT_EQ(*mount->Read(reader, 0, 100), "ten bytes!");
    EXPECT_TRUE(Waits(*mount, reader, 10));
    const Told second = Await(*mount, reader, 10);
    const std::string content = Pattern(3 * kMiB, 9);
    ASSERT_TRUE(Ok(cluster_.a().Write(writer, 10, content)));
    EXPECT_TRUE(Becomes(second, 1));
    EXPECT_EQ(*mount->Read(reader, 10, content.size()), content);
    const uint64_t end = 10 + content.size();
    const Told last = Await(*mount, reader, end);
    ASSERT_TRUE(Ok(cluster_.a().Close(writer)));
    EXPECT_TRUE(Becomes(last, 1));
    EXPECT_FALSE(Waits(*mount, reader, end));
    EXPECT_EQ(*mount->Read(reader, end, 100), "");
    ASSERT_TRUE(Ok(mount->Close(reader)));
  }
  // Whoever opens it now reads a file like any other.
  auto later = cluster_.b().Open("/f", O_RDONLY);
  ASSERT_TRUE(Ok(later));
  EXPECT_NE(later->mode.kind, OpenMode::Kind::kDirect);
}

TEST_F(Streams, WhoeverWritesSeesTheEnd) {
  Expect("/f");
  const HandleId writer = Open(cluster_.a(), "/f", O_RDWR);
  EXPECT_FALSE(Waits(cluster_.a(), writer, 0));
  // As for any regular file, this means nothing; gzip opens its files so.
  const HandleId reader = Open(cluster_.b(), "/f", O_RDONLY | O_NONBLOCK);
  EXPECT_TRUE(Waits(cluster_.b(), reader, 0));
}

TEST_F(Streams, WaitsEndWithTheHandleAndWithTheMount) {
  Expect("/f");
  const HandleId closed = Open(cluster_.b(), "/f", O_RDONLY);
  const HandleId left = Open(cluster_.b(), "/f", O_RDONLY);
  const Told of_closed = Await(cluster_.b(), closed, 0), of_left = Await(cluster_.b(), left, 0);
  ASSERT_TRUE(Ok(cluster_.b().Close(closed)));
  EXPECT_TRUE(Becomes(of_closed, 2));
  EXPECT_EQ(*of_left, 0);
  cluster_.UnmountB();
  EXPECT_EQ(*of_left, 2);
}

TEST_F(Streams, AReadFailsWhenNobodyWillWrite) {
  Expect("/f");
  const HandleId reader = Open(cluster_.b(), "/f", O_RDONLY);
  const Told told = Await(cluster_.b(), reader, 0);
  ASSERT_TRUE(Ok(cluster_.a().Unlink("/f")));
  EXPECT_TRUE(Becomes(told, 1));
  EXPECT_EQ(ReasonOf(cluster_.b().Read(reader, 0, 1)), ErrorReason::kNodeLost);
}

TEST_F(Streams, InheritTheHintOfTheirDirectory) {
  ASSERT_TRUE(Ok(cluster_.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster_.a().SetXattr("/d", "user.mosa.stream", "append")));
  const HandleId writer = Open(cluster_.a(), "/d/f", O_CREAT | O_WRONLY);
  const HandleId reader = Open(cluster_.b(), "/d/f", O_RDONLY);
  const Told told = Await(cluster_.b(), reader, 0);
  ASSERT_TRUE(Ok(cluster_.a().Write(writer, 0, "x")));
  EXPECT_TRUE(Becomes(told, 1));
  EXPECT_EQ(*cluster_.b().Read(reader, 0, 100), "x");
  ASSERT_TRUE(Ok(cluster_.a().Close(writer)));
}

TEST_F(Streams, AppendingProgramsStreamToo) {
  Expect("/f");
  const HandleId reader = Open(cluster_.b(), "/f", O_RDONLY);
  const HandleId writer = Open(cluster_.a(), "/f", O_WRONLY | O_APPEND);
  uint64_t at = 0;
  for (int i = 0; i < 3; ++i) {
    const Told told = Await(cluster_.b(), reader, at);
    ASSERT_TRUE(Ok(cluster_.a().Write(writer, 0, "line\n")));
    EXPECT_TRUE(Becomes(told, 1));
    EXPECT_EQ(*cluster_.b().Read(reader, at, 100), "line\n");
    at += 5;
  }
  const Told last = Await(cluster_.b(), reader, at);
  ASSERT_TRUE(Ok(cluster_.a().Close(writer)));
  EXPECT_TRUE(Becomes(last, 1));
  EXPECT_FALSE(Waits(cluster_.b(), reader, at));
}

}  // namespace
}  // namespace mosa::sai
