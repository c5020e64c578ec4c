// Tests the fingerprint of a file's content, user.mosa.checksum.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "client-sai/sai/cluster_fixture.h"

namespace mosa::sai {
namespace {

std::string ChecksumOf(LocalMount& mount, const std::string& path) {
  const auto file = mount.Find(path);
  EXPECT_TRUE(Ok(file));
  auto checksum = mount.fs().GetXattr(*file, "user.mosa.checksum");
  EXPECT_TRUE(Ok(checksum)) << path;
  return checksum.ok() ? *checksum : "";
}

void WriteWith(LocalMount& mount, const std::string& path, const std::string& hint,
               const std::string& value, const std::string& content) {
  auto handle = mount.Open(path, O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  ASSERT_TRUE(Ok(mount.Close(handle->handle)));
  ASSERT_TRUE(Ok(mount.SetXattr(path, "user.mosa." + hint, value)));
  ASSERT_TRUE(Ok(mount.WriteFile(path, content)));
}

TEST(Checksum, IsTheSameWhereverTheBytesLie) {
  for (const size_t size : {size_t{1}, size_t{5000}, size_t{kMiB}, size_t{3 * kMiB + 5}}) {
    Cluster cluster;
    const std::string content = Pattern(size, 7);
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/plain", content)));
    WriteWith(cluster.a(), "/near", "placement", "local", content);
    WriteWith(cluster.a(), "/far", "placement", "node:b", content);
    WriteWith(cluster.a(), "/fine", "chunk_size", "4K", content);
    WriteWith(cluster.a(), "/twice", "replicas", "2", content);
    std::set<std::string> checksums;
    for (const char* path : {"/plain", "/near", "/far", "/fine", "/twice"}) {
      checksums.insert(ChecksumOf(cluster.a(), path));
      checksums.insert(ChecksumOf(cluster.b(), path));
    }
    EXPECT_EQ(checksums.size(), 1U) << size << " bytes";
    EXPECT_EQ(checksums.begin()->size(), 16U);
  }
}

TEST(Checksum, TellsOtherContent) {
  Cluster cluster;
  std::set<std::string> checksums;
  const std::string content = Pattern(kMiB + 100, 7);
  size_t files = 0;
  const auto add = [&](const std::string& other) {
    const std::string path = "/f" + std::to_string(++files);
    ASSERT_TRUE(Ok(cluster.a().WriteFile(path, other)));
    checksums.insert(ChecksumOf(cluster.b(), path));
  };
  add("");
  add(std::string(1, '\0'));
  add(content);
  add(content.substr(0, kMiB));
  add(content + '\0');
  for (const size_t at : {size_t{0}, size_t{65535}, size_t{65536}, size_t{kMiB + 99}}) {
    std::string other = content;
    other[at] ^= 1;
    add(other);
  }
  // Two blocks changed places.
  add(content.substr(65536, 65536) + content.substr(0, 65536) + content.substr(131072));
  EXPECT_EQ(checksums.size(), files);
}

TEST(Checksum, CountsHolesAsZeroes) {
  Cluster cluster;
  std::string content(kMiB + 17, '\0');
  content.replace(200000, 5, "bytes");
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/full", content)));
  auto handle = cluster.b().Open("/sparse", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  ASSERT_TRUE(Ok(cluster.b().Write(handle->handle, 200000, "bytes")));
  ASSERT_TRUE(Ok(cluster.b().Close(handle->handle)));
  ASSERT_TRUE(Ok(cluster.b().Truncate("/sparse", content.size())));
  EXPECT_EQ(ChecksumOf(cluster.a(), "/sparse"), ChecksumOf(cluster.a(), "/full"));
  ASSERT_TRUE(Ok(cluster.b().Truncate("/sparse", 200003)));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/cut", content.substr(0, 200003))));
  EXPECT_EQ(ChecksumOf(cluster.a(), "/sparse"), ChecksumOf(cluster.a(), "/cut"));
}

TEST(Checksum, IncludesWhatIsWrittenAndNotYetClosed) {
  Cluster cluster;
  const std::string content = Pattern(2 * kMiB, 3);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/whole", content)));
  auto handle = cluster.a().Open("/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, content.substr(0, 10))));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/ten", content.substr(0, 10))));
  EXPECT_EQ(ChecksumOf(cluster.a(), "/f"), ChecksumOf(cluster.a(), "/ten"));
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 10, content.substr(10))));
  EXPECT_EQ(ChecksumOf(cluster.a(), "/f"), ChecksumOf(cluster.a(), "/whole"));
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
}

TEST(Checksum, IsOfRegularFilesWhoseBytesAreThere) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  EXPECT_EQ(ReasonOf(cluster.a().fs().GetXattr(*cluster.a().Find("/d"), "user.mosa.checksum")),
            ErrorReason::kNoAttribute);
  EXPECT_EQ(ReasonOf(cluster.a().SetXattr("/d", "user.mosa.checksum", "1")), ErrorReason::kInvalid);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/huge", "x")));
  ASSERT_TRUE(Ok(cluster.a().Truncate("/huge", uint64_t{1} << 45)));
  EXPECT_EQ(ReasonOf(cluster.a().fs().GetXattr(*cluster.a().Find("/huge"), "user.mosa.checksum")),
            ErrorReason::kTooBig);
  WriteWith(cluster.a(), "/f", "placement", "node:b", Pattern(kMiB, 3));
  const FileId file = *cluster.a().Find("/f");
  cluster.nodes().Find(cluster.node_b)->reachable = false;
  EXPECT_FALSE(cluster.a().fs().GetXattr(file, "user.mosa.checksum").ok());
}

}  // namespace
}  // namespace mosa::sai
