#include "storage-node/store/object_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace mosa::node {
namespace {

using ::testing::HasSubstr;

constexpr FileId kFile{0x123456789abcdef0};

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A directory in /dev/shm, removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char name[] = "/dev/shm/mosa-store-test-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

enum class Kind { kDirectory, kMemory };

class EveryStore : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::kMemory) {
      store_ = NewMemoryStore("n1");
      return;
    }
    auto opened = OpenDirectoryStore({.path = directory_.path() + "/o", .node_name = "n1"});
    ASSERT_TRUE(opened.ok()) << MessageOf(opened.status());
    store_ = *std::move(opened);
  }

  UniqueFd MustOpen(OpenMode mode, FileId file = kFile) {
    auto fd = store_->Open(file, mode);
    EXPECT_TRUE(fd.ok()) << MessageOf(fd.status());
    return fd.ok() ? *std::move(fd) : UniqueFd();
  }
  std::string Read(int fd, uint64_t offset, size_t size) {
    std::string out(size, '?');
    const auto n = store_->Read(fd, offset, std::as_writable_bytes(std::span(out)));
    EXPECT_TRUE(n.ok());
    out.resize(n.ok() ? *n : 0);
    return out;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<ObjectStore> store_;
};

TEST_P(EveryStore, MakesObjectsOnlyWhenAsked) {
  EXPECT_EQ(store_->Open(kFile, OpenMode::kRead).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->Open(kFile, OpenMode::kWrite).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(store_->List()->empty());
  MustOpen(OpenMode::kCreate);
  MustOpen(OpenMode::kRead);
  ASSERT_EQ(store_->List()->size(), 1U);
  EXPECT_EQ(store_->List()->front().file, kFile);
}

TEST_P(EveryStore, KeepsSparseBytesAndCountsBlocks) {
  const UniqueFd fd = MustOpen(OpenMode::kCreate);
  const uint64_t far = uint64_t{1} << 40;
  ASSERT_TRUE(store_->Write(fd.get(), far, BytesOf("tail")).ok());
  const auto stat = store_->Stat(fd.get());
  EXPECT_EQ(stat->size_bytes, far + 4);
  EXPECT_EQ(stat->allocated_bytes, 4096U);
  EXPECT_EQ(Read(fd.get(), far - 2, 100), std::string("\0\0tail", 6));
  EXPECT_EQ(*store_->Seek(fd.get(), 0, true), far);
  EXPECT_EQ(*store_->Seek(fd.get(), 0, false), 0U);
  EXPECT_EQ(store_->Seek(fd.get(), far + 4, true).status().code(), StatusCode::kNotFound);
}

TEST_P(EveryStore, KeepsWhatIsPutAsideOutOfReach) {
  const UniqueFd writer = MustOpen(OpenMode::kCreate);
  ASSERT_TRUE(store_->Write(writer.get(), 0, BytesOf("old")).ok());
  EXPECT_TRUE(store_->SetAside(FileId{99}).ok());  // There is no such object.
  ASSERT_TRUE(store_->SetAside(kFile).ok());
  EXPECT_TRUE(store_->List()->empty());
  EXPECT_EQ(store_->Open(kFile, OpenMode::kRead).status().code(), StatusCode::kNotFound);
  ASSERT_EQ(store_->ListAside()->size(), 1U);
  EXPECT_EQ(store_->ListAside()->front().file, kFile);
  EXPECT_EQ(Read(store_->OpenAside(kFile)->get(), 0, 9), "old");
  // A new object of that id neither reaches it nor replaces it.
  ASSERT_TRUE(store_->Write(MustOpen(OpenMode::kCreate).get(), 0, BytesOf("new")).ok());
  EXPECT_EQ(store_->SetAside(kFile).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_->RestoreAside(kFile).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Read(MustOpen(OpenMode::kRead).get(), 0, 9), "new");
  ASSERT_TRUE(store_->Drop(kFile).ok());
  ASSERT_TRUE(store_->RestoreAside(kFile).ok());
  EXPECT_EQ(Read(MustOpen(OpenMode::kRead).get(), 0, 9), "old");
  EXPECT_EQ(store_->RestoreAside(kFile).code(), StatusCode::kNotFound);
  ASSERT_TRUE(store_->SetAside(kFile).ok());
  EXPECT_TRUE(store_->DiscardAside(kFile).ok());
  EXPECT_TRUE(store_->DiscardAside(kFile).ok());
  EXPECT_TRUE(store_->ListAside()->empty());
}

TEST_P(EveryStore, CutsPunchesAndAllocates) {
  const UniqueFd fd = MustOpen(OpenMode::kCreate);
  const std::string data(3 * 4096, 'x');
  ASSERT_TRUE(store_->Write(fd.get(), 0, BytesOf(data)).ok());
  ASSERT_TRUE(
      store_->Allocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096).ok());
  EXPECT_EQ(store_->Stat(fd.get())->allocated_bytes, 2U * 4096);
  EXPECT_EQ(*store_->Seek(fd.get(), 0, false), 4096U);
  EXPECT_EQ(*store_->Seek(fd.get(), 4096, true), 8192U);
  ASSERT_TRUE(store_->Truncate(fd.get(), 5).ok());
  EXPECT_EQ(Read(fd.get(), 0, 100), "xxxxx");
  ASSERT_TRUE(store_->Allocate(fd.get(), FALLOC_FL_KEEP_SIZE, 0, 1 << 20).ok());
  EXPECT_EQ(store_->Stat(fd.get())->size_bytes, 5U);
  EXPECT_EQ(store_->Stat(fd.get())->allocated_bytes, 1U << 20);
}

TEST_P(EveryStore, KnowsWhetherSomebodyCanWrite) {
  UniqueFd writer = MustOpen(OpenMode::kCreate);
  const UniqueFd reader = MustOpen(OpenMode::kRead);
  EXPECT_TRUE(*store_->HasWriters(reader.get()));
  writer.reset();
  const UniqueFd other = MustOpen(OpenMode::kRead);
  EXPECT_FALSE(*store_->HasWriters(reader.get()));
  EXPECT_FALSE(store_->HasWriters(-1).ok());
}

TEST_P(EveryStore, ReadDescriptorsCannotWrite) {
  MustOpen(OpenMode::kCreate);
  const UniqueFd fd = MustOpen(OpenMode::kRead);
  EXPECT_FALSE(store_->Write(fd.get(), 0, BytesOf("x")).ok());
}

TEST_P(EveryStore, DroppedObjectsLiveOnlyInDescriptors) {
  const UniqueFd fd = MustOpen(OpenMode::kCreate);
  ASSERT_TRUE(store_->Write(fd.get(), 0, BytesOf("kept")).ok());
  ASSERT_TRUE(store_->Drop(kFile).ok());
  EXPECT_TRUE(store_->Drop(kFile).ok());
  EXPECT_TRUE(store_->List()->empty());
  EXPECT_EQ(Read(fd.get(), 0, 10), "kept");
  const UniqueFd again = MustOpen(OpenMode::kCreate);
  EXPECT_EQ(store_->Stat(again.get())->size_bytes, 0U);
}

TEST_P(EveryStore, SendsIntoASocket) {
  const UniqueFd fd = MustOpen(OpenMode::kCreate);
  ASSERT_TRUE(store_->Write(fd.get(), 0, BytesOf("0123456789")).ok());
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const UniqueFd in(sockets[0]);
  const UniqueFd out(sockets[1]);
  EXPECT_EQ(*store_->Send(fd.get(), in.get(), 7, 100), 3U);
  char got[10];
  EXPECT_EQ(::read(out.get(), got, sizeof got), 3);
  EXPECT_EQ(std::string(got, 3), "789");
}

TEST_P(EveryStore, BelongsToOneClusterForGood) {
  EXPECT_EQ(store_->record().cluster_name, "");
  EXPECT_NE(store_->record().incarnation, 0U);
  ASSERT_TRUE(store_->SetCluster("a").ok());
  ASSERT_TRUE(store_->SetCluster("a").ok());
  const Status refused = store_->SetCluster("b");
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("cluster 'a', not to 'b'"));
}

INSTANTIATE_TEST_SUITE_P(Stores, EveryStore, ::testing::Values(Kind::kDirectory, Kind::kMemory),
                         [](const auto& kind) {
                           return kind.param == Kind::kDirectory ? "Directory" : "Memory";
                         });

// ---- directory stores only

void ExpectRefused(const std::string& path, const std::string& node, StatusCode code,
                   const std::string& because) {
  const auto store = OpenDirectoryStore({.path = path, .node_name = node});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), code);
  EXPECT_THAT(MessageOf(store.status()), HasSubstr(because));
}

TEST(DirectoryStore, ComesBackWithItsObjectsAndItsIncarnation) {
  const TemporaryDirectory directory;
  uint64_t incarnation = 0;
  {
    const auto store = OpenDirectoryStore({.path = directory.path(), .node_name = "n1"});
    ASSERT_TRUE(store.ok()) << MessageOf(store.status());
    incarnation = (*store)->record().incarnation;
    ASSERT_TRUE((*store)->SetCluster("c").ok());
    for (uint64_t i = 1; i <= 600; ++i) {
      const auto fd = (*store)->Open(FileId{i * 7}, OpenMode::kCreate);
      ASSERT_TRUE((*store)->Write(fd->get(), 0, BytesOf("x")).ok());
    }
  }
  const auto store = OpenDirectoryStore({.path = directory.path(), .node_name = "n1"});
  ASSERT_TRUE(store.ok()) << MessageOf(store.status());
  EXPECT_EQ((*store)->record().incarnation, incarnation);
  EXPECT_EQ((*store)->record().cluster_name, "c");
  const auto objects = (*store)->List();
  ASSERT_EQ(objects->size(), 600U);
  for (uint64_t i = 1; i <= 600; ++i) {
    EXPECT_EQ((*objects)[i - 1].file, FileId{i * 7});
    EXPECT_EQ((*objects)[i - 1].allocated_bytes, 4096U);
  }
}

TEST(DirectoryStore, IsPrivate) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/o";
  const auto store = OpenDirectoryStore({.path = path, .node_name = "n1"});
  ASSERT_TRUE((*store)->Open(kFile, OpenMode::kCreate).ok());
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    struct stat status {};
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, S_ISDIR(status.st_mode) ? 0700U : 0600U) << entry.path();
    files += S_ISDIR(status.st_mode) ? 0 : 1;
  }
  EXPECT_EQ(files, 4U);  // Record, lock, object, checksums.
}

TEST(DirectoryStore, RefusesWhatIsNotItsOwnAndLeavesItAsItWas) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/thesis.tex") << "x";
  ExpectRefused(directory.path(), "n1", StatusCode::kFailedPrecondition, "'thesis.tex'");
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/lock"));
  ExpectRefused(directory.path() + "/a/b", "n1", StatusCode::kNotFound, "cannot create");
  ExpectRefused(directory.path() + "/thesis.tex", "n1", StatusCode::kInternal, "cannot open");
}

TEST(DirectoryStore, RefusesAnotherNodeAndASecondProcess) {
  const TemporaryDirectory directory;
  auto first = OpenDirectoryStore({.path = directory.path(), .node_name = "n1"});
  ASSERT_TRUE(first.ok());
  ExpectRefused(directory.path(), "n1", StatusCode::kFailedPrecondition, "in use by another");
  *first = nullptr;
  ExpectRefused(directory.path(), "n2", StatusCode::kFailedPrecondition,
                "belongs to node 'n1', not to 'n2'");
}

TEST(DirectoryStore, RefusesANewerFormatAndADamagedRecord) {
  const struct {
    const char* text;
    StatusCode code;
    const char* because;
  } rows[] = {
      {R"({"format":2,"new":1})", StatusCode::kFailedPrecondition, "format 2"},
      {"", StatusCode::kDataLoss, "damaged (0 bytes)"},
      {"{", StatusCode::kDataLoss, "damaged"},
      {"[1]", StatusCode::kDataLoss, "damaged"},
      {R"({"format":1,"cluster":1,"node":"n","incarnation":1})", StatusCode::kDataLoss, "damaged"},
      {R"({"format":1,"cluster":"c","node":"n1","incarnation":-1})", StatusCode::kDataLoss,
       "damaged"}};
  for (const auto& row : rows) {
    const TemporaryDirectory directory;
    std::ofstream(directory.path() + "/mosa-node.json") << row.text;
    ExpectRefused(directory.path(), "n1", row.code, row.because);
  }
}

TEST(DirectoryStore, NamesWhatIsNoObject) {
  const TemporaryDirectory directory;
  const auto store = OpenDirectoryStore({.path = directory.path(), .node_name = "n1"});
  std::ofstream(directory.path() + "/objects/00/junk") << "x";
  const auto objects = (*store)->List();
  ASSERT_FALSE(objects.ok());
  EXPECT_THAT(MessageOf(objects.status()), HasSubstr("objects/00/junk is not an object"));
}

}  // namespace
}  // namespace mosa::node
