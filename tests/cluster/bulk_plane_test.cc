// The bulk plane from end to end: BulkNodeApi, sockets, bulk server, engine, and a store on the RAM
// disk or in memory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/base/rng.h"
#include "proto/convert/bulk_hello.h"
#include "proto/convert/status.h"
#include "storage-node/store/faulty_object_store.h"
#include "storage-node/store/object_store.h"
#include "tests/support/test_node.h"

namespace mosa {
namespace {

using node::FaultyObjectStore;
using sai::ObjectTarget;
using testing::Connect;
using ::testing::HasSubstr;
using testing::kTestNode;
using testing::TemporaryDirectory;
using testing::TestNode;

constexpr FileId kFile{42};
constexpr uint64_t kBlock = kChecksumBlockBytes;

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string Noise(size_t size, uint64_t seed) {
  Rng rng(seed);
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; i += 8) {
    const uint64_t word = rng.Next();
    std::memcpy(bytes.data() + i, &word, std::min<size_t>(8, size - i));
  }
  return bytes;
}

Time Soon() { return SystemClock().Monotonic() + Seconds(10); }

// True if the node ends the connection in time. What it sends before is of no interest.
bool EndsWithin(FrameSocket& socket, Duration wait) {
  const Time end = SystemClock().Monotonic() + wait;
  while (SystemClock().Monotonic() < end) {
    if (!socket.HasFrame(Milliseconds(50))) continue;
    char sink[4096];
    const ssize_t n = ::recv(socket.fd(), sink, sizeof sink, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return true;
  }
  return false;
}

enum class Kind { kDirectory, kMemory, kEncrypted };

class BulkPlane : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<node::ObjectStore> NewStore() {
    if (GetParam() == Kind::kMemory) return node::NewMemoryStore("n1");
    auto store = node::OpenDirectoryStore({.path = directory_.path() + "/o", .node_name = "n1"});
    MOSA_CHECK(store.ok());
    return *std::move(store);
  }
  void Start(testing::TestNodeOptions options = {}) {
    std::signal(SIGPIPE, SIG_IGN);  // As the daemons do.
    options.bulk_tls = GetParam() == Kind::kEncrypted;
    node_ = std::make_unique<TestNode>(NewStore(), options);
    writer_ = node_->Seal(kFile, true);
    reader_ = node_->Seal(kFile, false);
  }
  ObjectTarget Writer() const { return {kTestNode, kFile, writer_}; }
  ObjectTarget Reader() const { return {kTestNode, kFile, reader_}; }

  void Write(uint64_t offset, const std::string& data) {
    const Status status = node_->client().Write(Writer(), offset, BytesOf(data));
    ASSERT_TRUE(status.ok()) << MessageOf(status);
  }
  std::string Read(uint64_t offset, size_t size) {
    std::string out(size, '?');
    const Status status =
        node_->client().Read(Reader(), offset, std::as_writable_bytes(std::span(out)));
    EXPECT_TRUE(status.ok()) << MessageOf(status);
    return out;
  }
  Status ReadStatus(uint64_t offset, size_t size, const std::string& capability) {
    std::string out(size, '?');
    return node_->client().Read({kTestNode, kFile, capability}, offset,
                                std::as_writable_bytes(std::span(out)));
  }

  TemporaryDirectory directory_;
  std::unique_ptr<TestNode> node_;
  std::string writer_;
  std::string reader_;
};

INSTANTIATE_TEST_SUITE_P(Stores, BulkPlane,
                         ::testing::Values(Kind::kDirectory, Kind::kMemory, Kind::kEncrypted),
                         [](const auto& kind) {
                           if (kind.param == Kind::kEncrypted) return "DirectoryEncrypted";
                           return kind.param == Kind::kDirectory ? "Directory" : "Memory";
                         });

// ---- bytes

TEST_P(BulkPlane, RangesAtTheEdgesOfBlocksAndFramesComeBack) {
  Start();
  constexpr uint64_t kFrame = 4 << 20;
  const std::string data = Noise(2 * kFrame + kBlock + 17, 1);
  Write(0, data);
  const uint64_t points[] = {
      0,          1,      kBlock - 1, kBlock,          kBlock + 1, 5 * kBlock - 1,
      kFrame - 1, kFrame, kFrame + 1, data.size() - 1, data.size()};
  for (const uint64_t begin : points) {
    for (const uint64_t end : points) {
      if (end <= begin) continue;
      EXPECT_TRUE(Read(begin, end - begin) == data.substr(begin, end - begin))
          << begin << " to " << end;
    }
  }
  EXPECT_EQ(Read(data.size() - 1, 3), data.substr(data.size() - 1) + std::string(2, '\0'));
  EXPECT_EQ(Read(3 * kFrame, 10), std::string(10, '\0'));
  EXPECT_EQ(Read(7, 0), "");
}

TEST_P(BulkPlane, AnAbsentObjectIsNoHole) {
  Start();
  EXPECT_EQ(ReadStatus(5, 10, reader_).code(), StatusCode::kNotFound);
  EXPECT_EQ(node_->client().Stat(Reader()).status().code(), StatusCode::kNotFound);
  const auto sums = node_->client().Sums(
      Reader(), {.range = {0, kBlock}, .after_change = 0, .wait = {}, .about = {}});
  ASSERT_TRUE(sums.ok());
  EXPECT_TRUE(sums->absent);
  EXPECT_EQ(node_->client().Seek(Reader(), 0, true).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(node_->client().Truncate(Writer(), 0).ok());
  EXPECT_EQ(node_->client().OpenLocal(Reader(), false).status().code(), StatusCode::kNotFound);
}

TEST_P(BulkPlane, SparseObjectsReadAsZeroesAndTakeNoRoom) {
  Start();
  const uint64_t far = (uint64_t{1} << 49) + 5;
  Write(far, "tail");
  EXPECT_EQ(Read(far - 3, 7), std::string("\0\0\0tail", 7));
  EXPECT_EQ(Read(1 << 20, 9 << 20), std::string(9 << 20, '\0'));
  EXPECT_EQ(*node_->client().Seek(Reader(), 0, true), far - far % 4096);
  EXPECT_EQ(*node_->client().Seek(Reader(), 0, false), 0U);
  const auto stat = node_->client().Stat(Reader());
  EXPECT_EQ(stat->size_bytes, far + 4);
  EXPECT_EQ(stat->allocated_bytes, 4096U);
  EXPECT_EQ(node_->engine().used_bytes(), 4096U);
}

// Random writes, cuts, holes and reads beside a plain string.
TEST_P(BulkPlane, DoesWhatAStringDoes) {
  Start();
  const char* const given = std::getenv("MOSA_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 7;
  SCOPED_TRACE("MOSA_SEED=" + std::to_string(seed));
  Rng rng(seed);
  std::string model = "an object";
  Write(0, model);
  constexpr uint64_t kSizeMax = 30 * kBlock;
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    uint64_t offset = rng.Below(kSizeMax);
    if (rng.Chance(500)) offset -= offset % kBlock;
    const uint64_t length = 1 + rng.Below(rng.Chance(300) ? kSizeMax - offset : 5000);
    switch (rng.Below(6)) {
      case 0:
      case 1: {
        const std::string data = Noise(std::min(length, kSizeMax - offset), rng.Next());
        Write(offset, data);
        model.resize(std::max<size_t>(model.size(), offset + data.size()));
        model.replace(offset, data.size(), data);
        break;
      }
      case 2:
        ASSERT_TRUE(node_->client().Truncate(Writer(), offset).ok());
        if (offset < model.size()) model.resize(offset);
        break;
      case 3: {
        ASSERT_TRUE(
            node_->client()
                .Allocate(Writer(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length)
                .ok());
        for (uint64_t at = offset; at < std::min<uint64_t>(model.size(), offset + length); ++at)
          model[at] = '\0';
        break;
      }
      case 4:
        node_->SealAll();
        EXPECT_EQ(node_->client().Stat(Reader())->sealed, !node_->engine().ListObjects().empty());
        break;
      default: {
        std::string expected = offset < model.size() ? model.substr(offset, length) : "";
        expected.resize(length);
        EXPECT_TRUE(Read(offset, length) == expected) << length << " at " << offset;
      }
    }
  }
  EXPECT_EQ(node_->client().Stat(Reader())->size_bytes, model.size());
  EXPECT_EQ(node_->client().Stat(Reader())->allocated_bytes, node_->engine().used_bytes());
}

TEST_P(BulkPlane, WritersOfOneObjectDoNotDisturbOneAnother) {
  Start();
  constexpr int kThreads = 4;
  constexpr size_t kSlice = 100'000;  // Neighbours share blocks.
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int round = 0; round < 20; ++round) {
        const std::string mine = Noise(kSlice, static_cast<uint64_t>(t * 100 + round));
        Write(static_cast<uint64_t>(t) * kSlice, mine);
        EXPECT_TRUE(Read(static_cast<uint64_t>(t) * kSlice, kSlice) == mine);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_TRUE(Read(static_cast<uint64_t>(t) * kSlice, kSlice) ==
                Noise(kSlice, static_cast<uint64_t>(t * 100 + 19)));
  }
}

// ---- refusals

TEST_P(BulkPlane, ChecksEveryCapability) {
  Start();
  Write(0, "secret");
  const struct {
    std::string capability;
    const char* because;
  } rows[] = {{"", "the request carries no capability"},
              {std::string(kSealedCapabilityBytes, '\2'), "forged"},
              {node_->Seal(kFile, false, Milliseconds(-10)), "expired"},
              {node_->Seal(FileId{43}, true), "for file 43, not for file 42"}};
  for (const auto& row : rows) {
    const Status refused = ReadStatus(0, 6, row.capability);
    EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(MessageOf(refused), HasSubstr(row.because));
    EXPECT_FALSE(node_->client().OpenLocal({kTestNode, kFile, row.capability}, false).ok());
  }
  auto& client = node_->client();
  const std::string x = "x";
  for (const Status& refused :
       {client.Write(Reader(), 0, BytesOf(x)), client.Truncate(Reader(), 0),
        client.Allocate(Reader(), 0, 0, 1), client.OpenLocal(Reader(), true).status(),
        client.FinishLocalWrites(Reader())}) {
    EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(MessageOf(refused), HasSubstr("does not allow writing"));
  }
  EXPECT_EQ(Read(0, 6), "secret");
}

TEST_P(BulkPlane, ACapabilityEndsWithinAConnection) {
  Start();
  Write(0, "abc");
  const std::string brief = node_->Seal(kFile, false, Milliseconds(300));
  EXPECT_TRUE(ReadStatus(0, 1, brief).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(350));
  EXPECT_THAT(MessageOf(ReadStatus(0, 1, brief)), HasSubstr("expired"));
}

TEST_P(BulkPlane, AnUnregisteredNodeServesNobody) {
  Start({.registered = false});
  EXPECT_EQ(ReadStatus(0, 1, reader_).code(), StatusCode::kUnavailable);
}

TEST_P(BulkPlane, RangesBeyondTheLargestFileAreRefused) {
  Start();
  std::string out(10, '?');
  const auto room = std::as_writable_bytes(std::span(out));
  EXPECT_EQ(node_->client().Read(Reader(), kFileBytesMax - 5, room).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(node_->client().Read(Reader(), UINT64_MAX - 5, room).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(node_->client().Truncate(Writer(), kFileBytesMax + 1).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(node_->client().Allocate(Writer(), 0, 1, UINT64_MAX).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(node_->client().Allocate(Writer(), FALLOC_FL_COLLAPSE_RANGE, 0, 4096).code(),
            StatusCode::kUnimplemented);
}

TEST_P(BulkPlane, AFullNodeSaysSoAndLosesNothing) {
  Start({.limit_bytes = 1 << 20});
  const std::string data = Noise((1 << 20) - 4096, 3);
  Write(0, data);
  const std::string more(8192, 'x');
  const Status refused = node_->client().Write(Writer(), data.size(), BytesOf(more));
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), ErrorReason::kNoSpace);
  EXPECT_THAT(MessageOf(refused), HasSubstr("1044480 of 1048576 bytes are used"));
  EXPECT_EQ(node_->client().Allocate(Writer(), 0, 1 << 20, 8192).code(),
            StatusCode::kResourceExhausted);
  Write(100, std::string(50'000, 'y'));        // What is there already can be written.
  Write(data.size(), std::string(4096, 'z'));  // The last page fits.
  EXPECT_EQ(node_->engine().used_bytes(), 1U << 20);
  ASSERT_TRUE(node_->client().Truncate(Writer(), 4096).ok());
  EXPECT_EQ(node_->engine().used_bytes(), 4096U);
  Write(4096, more);
  EXPECT_EQ(Read(4096, more.size()), more);
  node_->engine().Drop(std::vector<FileId>{kFile});
  EXPECT_EQ(node_->engine().used_bytes(), 0U);
  EXPECT_EQ(ReadStatus(0, 4, reader_).code(), StatusCode::kNotFound);
}

// ---- checksums

TEST_P(BulkPlane, ACorruptBlockIsNeverServed) {
  Start();
  const std::string data = Noise(10 * kBlock, 5);
  Write(0, data);
  EXPECT_TRUE(node_->client().Stat(Reader())->sealed);
  const auto fd = node_->engine().store().Open(kFile, node::OpenMode::kWrite);
  const char flipped = static_cast<char>(data[3 * kBlock + 99] ^ 1);
  ASSERT_EQ(::pwrite(fd->get(), &flipped, 1, 3 * kBlock + 99), 1);

  EXPECT_EQ(Read(0, 3 * kBlock), data.substr(0, 3 * kBlock));
  const Status lost = ReadStatus(2 * kBlock, 2 * kBlock, reader_);
  EXPECT_EQ(lost.code(), StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(lost), HasSubstr("block 3 of the object of file 42 is corrupt"));
  EXPECT_EQ(node_->client().OpenLocal(Reader(), false).status().code(), StatusCode::kDataLoss);
  const NodeHeartbeat heartbeat = node_->engine().TakeHeartbeat();
  EXPECT_EQ(heartbeat.corrupt_blocks, 1U);
  EXPECT_EQ(heartbeat.corrupt_objects, std::vector<FileId>{kFile});
  EXPECT_TRUE(heartbeat.healed_objects.empty());
  EXPECT_TRUE(node_->engine().TakeHeartbeat().corrupt_objects.empty());
  EXPECT_EQ(node_->client().OpenLocal(Writer(), true).status().code(),
            StatusCode::kFailedPrecondition);

  Write(3 * kBlock, data.substr(3 * kBlock, kBlock / 2));
  EXPECT_TRUE(node_->engine().TakeHeartbeat().healed_objects.empty());
  Write(3 * kBlock + kBlock / 2, data.substr(3 * kBlock + kBlock / 2, kBlock / 2));
  EXPECT_EQ(Read(0, data.size()), data);
  const NodeHeartbeat healed = node_->engine().TakeHeartbeat();
  EXPECT_EQ(healed.corrupt_blocks, 0U);
  EXPECT_EQ(healed.healed_objects, std::vector<FileId>{kFile});
  EXPECT_TRUE(node_->engine().TakeHeartbeat().healed_objects.empty());
  node_->engine().RepeatReports();
  EXPECT_EQ(node_->engine().TakeHeartbeat().healed_objects, std::vector<FileId>{kFile});
}

TEST_P(BulkPlane, TheScrubberFindsCorruptBlocksByItself) {
  Start();
  const std::string data = Noise(40 * kBlock + 9, 6);
  Write(7 * kBlock, data);
  const auto other = node_->Seal(FileId{50}, true);
  ASSERT_TRUE(node_->client().Write({kTestNode, FileId{50}, other}, 0, BytesOf(data)).ok());
  node_->SealAll();
  const auto fd = node_->engine().store().Open(FileId{50}, node::OpenMode::kWrite);
  ASSERT_EQ(::pwrite(fd->get(), "!", 1, static_cast<off_t>(data.size()) - 1), 1);
  std::vector<std::byte> scratch(1 << 20);
  uint64_t scrubbed = 0;
  while (const uint64_t n = node_->engine().ScrubNext(scratch)) scrubbed += n;
  EXPECT_GE(scrubbed, 2 * data.size());
  EXPECT_EQ(node_->engine().TakeHeartbeat().corrupt_objects, std::vector<FileId>{FileId{50}});
  EXPECT_EQ(Read(7 * kBlock, data.size()), data);
}

TEST_P(BulkPlane, KeepsItsObjectsAndSealsThemAgainAfterARestart) {
  if (GetParam() == Kind::kMemory) GTEST_SKIP() << "memory ends with the node";
  Start();
  const std::string data = Noise(3 * kBlock + 5, 8);
  Write(2 * kBlock, data);
  node_ = nullptr;
  Start();
  EXPECT_FALSE(node_->client().Stat(Reader())->sealed);
  EXPECT_EQ(node_->engine().TakeHeartbeat().unsealed_objects, 1U);
  EXPECT_EQ(Read(2 * kBlock, data.size()), data);
  node_->SealAll();
  EXPECT_TRUE(node_->client().Stat(Reader())->sealed);
  EXPECT_EQ(Read(2 * kBlock, data.size()), data);
}

// ---- descriptors

TEST_P(BulkPlane, WhatIsWrittenThroughADescriptorIsReadRemotely) {
  Start();
  Write(0, Noise(2 * kBlock, 9));
  ASSERT_TRUE(node_->client().IsLocal(kTestNode));
  auto fd = node_->client().OpenLocal(Writer(), true);
  ASSERT_TRUE(fd.ok()) << MessageOf(fd.status());
  const std::string data = Noise(5 * kBlock + 1, 10);
  ASSERT_EQ(::pwrite(fd->get(), data.data(), data.size(), 100), static_cast<ssize_t>(data.size()));
  EXPECT_EQ(Read(100, data.size()), data);  // While it can still change.
  EXPECT_FALSE(node_->client().Stat(Reader())->sealed);
  ASSERT_TRUE(node_->client().FinishLocalWrites(Writer()).ok());
  EXPECT_EQ(node_->engine().used_bytes(), 81U * 4096);

  node_->SealAll();  // In vain: the descriptor is open.
  EXPECT_FALSE(node_->client().Stat(Reader())->sealed);
  ASSERT_EQ(::pwrite(fd->get(), "late", 4, 0), 4);
  EXPECT_EQ(Read(0, 4), "late");
  fd->reset();
  node_->SealAll();
  EXPECT_TRUE(node_->client().Stat(Reader())->sealed);
  EXPECT_EQ(Read(100, data.size()), data);
  EXPECT_GE(node_->engine().TakeHeartbeat().bytes_written_local, 49U * 4096);
}

TEST_P(BulkPlane, UsedFollowsLocalWritersWithEachAccounting) {
  Start();
  const auto fd = node_->client().OpenLocal(Writer(), true);
  ASSERT_TRUE(fd.ok());
  ASSERT_EQ(::ftruncate(fd->get(), 1 << 30), 0);
  ASSERT_EQ(::fallocate(fd->get(), 0, 0, 1 << 20), 0);
  node_->engine().Account();
  EXPECT_EQ(node_->engine().used_bytes(), 1U << 20);
  ASSERT_EQ(::ftruncate(fd->get(), 0), 0);
  node_->engine().Account();
  EXPECT_EQ(node_->engine().used_bytes(), 0U);
}

TEST_P(BulkPlane, AMappingIsAWriterToo) {
  Start();
  auto fd = node_->client().OpenLocal(Writer(), true);
  ASSERT_EQ(::ftruncate(fd->get(), 4096), 0);
  auto* const bytes =
      static_cast<char*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0));
  ASSERT_NE(static_cast<void*>(bytes), MAP_FAILED);
  fd->reset();
  ASSERT_TRUE(node_->client().FinishLocalWrites(Writer()).ok());
  bytes[0] = 'a';
  EXPECT_EQ(Read(0, 1), "a");
  bytes[0] = 'b';
  EXPECT_EQ(Read(0, 1), "b");
  ::munmap(bytes, 4096);
  node_->SealAll();
  EXPECT_TRUE(node_->client().Stat(Reader())->sealed);
}

TEST_P(BulkPlane, AClientThatVanishesHasFinished) {
  Start();
  {
    const auto client = node_->NewClient();
    const auto fd = client->OpenLocal(Writer(), true);
    ASSERT_EQ(::pwrite(fd->get(), "abc", 3, 0), 3);
  }
  for (int i = 0; i < 100 && !node_->client().Stat(Reader())->sealed; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    node_->SealAll();
  }
  EXPECT_TRUE(node_->client().Stat(Reader())->sealed);
  EXPECT_EQ(Read(0, 3), "abc");
}

// A mount that lives on may never say that it is done: the node was silent when it would have.
TEST_P(BulkPlane, AClosedDescriptorNeedsNoMessageToCount) {
  Start();
  auto fd = node_->client().OpenLocal(Writer(), true);
  ASSERT_TRUE(fd.ok());
  ASSERT_EQ(::pwrite(fd->get(), "abc", 3, 0), 3);
  node_->SealAll();
  EXPECT_FALSE(node_->client().Stat(Reader())->sealed);
  fd->reset();
  node_->SealAll();
  EXPECT_TRUE(node_->client().Stat(Reader())->sealed);
  EXPECT_EQ(Read(0, 3), "abc");
}

TEST_P(BulkPlane, ADescriptorOutlivesTheNodeAndIsSeenByTheNextOne) {
  if (GetParam() == Kind::kMemory) GTEST_SKIP() << "memory ends with the node";
  Start();
  auto fd = node_->client().OpenLocal(Writer(), true);
  ASSERT_TRUE(fd.ok());
  const std::string data = Noise(2 * kBlock, 3);
  ASSERT_EQ(::pwrite(fd->get(), data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
  node_ = nullptr;
  Start();
  EXPECT_EQ(Read(0, data.size()), data);
  node_->SealAll();
  ASSERT_EQ(::pwrite(fd->get(), "late", 4, 0), 4);
  EXPECT_EQ(Read(0, 4), "late");
  EXPECT_FALSE(node_->client().Stat(Reader())->sealed);
  fd->reset();
  node_->SealAll();
  EXPECT_TRUE(node_->client().Stat(Reader())->sealed);
}

TEST_P(BulkPlane, AReadCapabilityYieldsAReadOnlyDescriptor) {
  Start();
  Write(0, "abc");
  const auto fd = node_->client().OpenLocal(Reader(), false);
  ASSERT_TRUE(fd.ok());
  char bytes[3];
  EXPECT_EQ(::pread(fd->get(), bytes, 3, 0), 3);
  EXPECT_EQ(::pwrite(fd->get(), "x", 1, 0), -1);
  EXPECT_EQ(::fcntl(fd->get(), F_GETFL) & O_ACCMODE, O_RDONLY);
}

TEST_P(BulkPlane, AnotherHostGetsNoDescriptors) {
  Start();
  sai::BulkNodeApi stranger({.host_identity = "another-boot:1", .channel = {}});
  stranger.SetIdentity(node_->Identity());
  stranger.SetNodes({node_->Address()});
  EXPECT_FALSE(stranger.IsLocal(kTestNode));
  EXPECT_EQ(stranger.OpenLocal(Writer(), true).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(stranger.IsLocal(NodeId{9}));
}

// ---- faults

TEST(BulkPlaneFaults, TheFailureOfAnyStoreOperationIsAnswered) {
  bool failed = true;
  for (int n = 0; failed; ++n) {
    SCOPED_TRACE("failing operation " + std::to_string(n));
    auto faulty = std::make_unique<FaultyObjectStore>(node::NewMemoryStore("n1"),
                                                      DataLossError("the RAM disk failed"));
    FaultyObjectStore& store = *faulty;
    TestNode node(std::move(faulty));
    const std::string capability = node.Seal(kFile, true);
    const ObjectTarget target{kTestNode, kFile, capability};
    const std::string first = Noise(3 * kBlock, 11);
    const std::string second = Noise(kBlock, 12);
    std::string out(first.size(), '?');
    const auto room = std::as_writable_bytes(std::span(out));

    store.FailAfter(n);
    std::vector<Status> answers;
    answers.push_back(node.client().Write(target, 0, BytesOf(first)));
    answers.push_back(node.client().Write(target, kBlock / 2, BytesOf(second)));
    answers.push_back(node.client().Write(target, first.size(), BytesOf(second)));
    answers.push_back(node.client().Read(target, 0, room));
    answers.push_back(node.client().Truncate(target, kBlock + 5));
    answers.push_back(
        node.client().Allocate(target, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 10, 10));
    answers.push_back(node.client().Stat(target).status());
    answers.push_back(node.client().OpenLocal(target, true).status());
    answers.push_back(node.client().FinishLocalWrites(target));
    node.SealAll();
    failed = store.has_failed();
    store.FailAfter(INT32_MAX);
    for (const Status& answer : answers) {
      EXPECT_TRUE(answer.ok() || MessageOf(answer).find("the RAM disk failed") != std::string::npos)
          << MessageOf(answer);
    }

    // Afterwards everything works, and checksums and accounts are right.
    const Status written = node.client().Write(target, 0, BytesOf(first));
    EXPECT_TRUE(written.ok()) << MessageOf(written);
    EXPECT_TRUE(node.client().Read(target, 0, room).ok());
    EXPECT_TRUE(out == first);
    node.SealAll();
    EXPECT_TRUE(node.client().Stat(target)->sealed);
    node.engine().Account();
    EXPECT_EQ(node.engine().used_bytes(), node.client().Stat(target)->allocated_bytes);
    std::vector<std::byte> scratch(1 << 20);
    while (node.engine().ScrubNext(scratch) > 0) {
    }
    EXPECT_EQ(node.engine().TakeHeartbeat().corrupt_blocks, 0U);
    ASSERT_LT(n, 200);
  }
}

TEST_P(BulkPlane, ADropThatFailsIsRepeated) {
  auto faulty = std::make_unique<FaultyObjectStore>(NewStore(), DataLossError("failed"));
  FaultyObjectStore& store = *faulty;
  TestNode node(std::move(faulty));
  const std::string capability = node.Seal(kFile, true);
  const std::string data(5000, 'x');
  ASSERT_TRUE(node.client().Write({kTestNode, kFile, capability}, 0, BytesOf(data)).ok());
  store.FailAfter(0);
  node.engine().Drop(std::vector<FileId>{kFile});
  EXPECT_EQ(node.engine().used_bytes(), 8192U);
  node.engine().Account();
  EXPECT_EQ(node.engine().used_bytes(), 0U);
  EXPECT_TRUE(node.engine().ListObjects().empty());
}

TEST_P(BulkPlane, SilentAndLostNodesAreUnavailableAtOnce) {
  Start();
  Write(0, "abc");
  for (const NodeState state : {NodeState::kSilent, NodeState::kLost}) {
    NodeAddress address = node_->Address();
    address.state = state;
    node_->client().SetNodes({address});
    EXPECT_EQ(ReadStatus(0, 1, reader_).code(), StatusCode::kUnavailable);
    EXPECT_FALSE(node_->client().IsLocal(kTestNode));
  }
  node_->client().SetNodes({node_->Address()});
  EXPECT_TRUE(ReadStatus(0, 1, reader_).ok());
  node_->client().SetNodes({});
  EXPECT_THAT(MessageOf(ReadStatus(0, 1, reader_)), HasSubstr("not known"));
}

TEST_P(BulkPlane, ANodeThatIsRestartedIsReachedAgain) {
  Start();
  Write(0, "abc");
  EXPECT_TRUE(node_->client().IsLocal(kTestNode));
  const std::string address = node_->server().address();
  node_->StopServer();
  EXPECT_EQ(ReadStatus(0, 3, reader_).code(), StatusCode::kUnavailable);
  node_->StartServer(address);
  EXPECT_EQ(Read(0, 3), "abc");
  EXPECT_TRUE(node_->client().OpenLocal(Reader(), false).ok());
}

TEST_P(BulkPlane, MoreThreadsThanConnectionsTakeTurns) {
  Start();
  const auto client = node_->NewClient({.connections_max = 2});
  Write(0, Noise(kBlock, 1));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      std::string out(kBlock, '?');
      for (int i = 0; i < 50; ++i)
        EXPECT_TRUE(client->Read(Reader(), 0, std::as_writable_bytes(std::span(out))).ok());
    });
  }
  for (auto& thread : threads) thread.join();
}

// Bytes that are no frame, and headers that say nonsense: at most their own connection ends.
TEST_P(BulkPlane, GarbageEndsAtMostItsOwnConnection) {
  Start();
  Write(0, "abc");
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    v1::BulkRequest request;
    request.set_id(rng.Next());
    request.set_file_id(kFile.value);
    request.set_capability(rng.Chance(800) ? writer_ : Noise(58, seed));
    switch (rng.Below(5)) {
      case 0:
        request.mutable_read()->set_offset_bytes(rng.Next());
        request.mutable_read()->set_length_bytes(rng.Next() >> rng.Below(64));
        break;
      case 1:
        request.mutable_write()->set_offset_bytes(rng.Next() >> rng.Below(64));
        break;
      case 2:
        request.mutable_open_local()->set_write(true);
        break;
      case 3:
        request.mutable_seek()->set_offset_bytes(rng.Next());
        break;
      default:
        break;
    }
    std::string bytes = EncodeFrameStart(request, rng.Chance(500) ? 0 : 1000);
    bytes += Noise(rng.Below(1100), seed);
    if (rng.Chance(400)) bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Next());
    for (const bool introduced : {false, true}) {
      if (introduced && GetParam() == Kind::kEncrypted) continue;
      FrameSocket socket = Connect(*node_);
      if (introduced) {
        ASSERT_TRUE(Introduce(socket, node_->Identity(), "n1", Soon()).ok());
      }
      ASSERT_GT(::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
      ::shutdown(socket.fd(), SHUT_WR);
      EXPECT_TRUE(EndsWithin(socket, Seconds(10)));
    }
  }
  EXPECT_EQ(Read(0, 3), "abc");
  EXPECT_TRUE(node_->client().Stat(Reader()).ok());
}

}  // namespace
}  // namespace mosa
