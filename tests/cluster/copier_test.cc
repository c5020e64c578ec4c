// Nodes that copy from each other: the real copier, engine, bulk server and sockets, in one
// process; the test gives the manager's orders.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/base/units.h"
#include "storage-node/store/object_store.h"
#include "tests/support/test_node.h"

namespace mosa {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryDirectory;
using testing::TestNode;

constexpr FileId kFile{42};
constexpr uint64_t kBlock = kChecksumBlockBytes;

std::string Noise(size_t size, uint64_t seed) {
  Rng rng(seed);
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; i += 8) {
    const uint64_t word = rng.Next();
    std::memcpy(bytes.data() + i, &word, std::min<size_t>(8, size - i));
  }
  return bytes;
}

// A node, and what it reports.
class Member {
 public:
  Member(NodeId id, const std::string& key, uint64_t limit_bytes = uint64_t{1} << 30)
      : node_(OpenStore(id), OptionsOf(id, key, limit_bytes)) {
    node_.copier().Start([this](const CopyReport& report) {
      const SystemMutexLock lock(mutex_);
      reports_.push_back(report);
      reported_.notify_all();
    });
  }
  ~Member() { node_.copier().Stop(); }

  TestNode& node() { return node_; }
  NodeId id() const { return node_.Address().node; }
  std::string path() const { return directory_.path() + "/o"; }

  void Write(uint64_t offset, const std::string& data, FileId file = kFile) {
    const std::string capability = node_.Seal(file, true);
    const Status status =
        node_.client().Write({id(), file, capability}, offset, std::as_bytes(std::span(data)));
    ASSERT_TRUE(status.ok()) << MessageOf(status);
  }
  // As a mount that has learned of a later layout.
  void WriteByLayout(uint64_t generation, uint64_t offset, const std::string& data) {
    const std::string capability = node_.Seal({.file = kFile,
                                               .client = testing::kTestClient,
                                               .may_write = true,
                                               .expires = {},
                                               .generation = generation});
    const Status status =
        node_.client().Write({id(), kFile, capability}, offset, std::as_bytes(std::span(data)));
    ASSERT_TRUE(status.ok()) << MessageOf(status);
  }
  void Truncate(uint64_t size) {
    const std::string capability = node_.Seal(kFile, true);
    ASSERT_TRUE(node_.client().Truncate({id(), kFile, capability}, size).ok());
  }
  std::string Read(uint64_t offset, size_t size, FileId file = kFile) {
    const std::string capability = node_.Seal(file, false);
    std::string out(size, '?');
    const Status status = node_.client().Read({id(), file, capability}, offset,
                                              std::as_writable_bytes(std::span(out)));
    if (status.code() == StatusCode::kNotFound) return {};  // The copy has not begun.
    EXPECT_TRUE(status.ok()) << MessageOf(status);
    return out;
  }
  sai::ObjectStatus Stat() {
    const std::string capability = node_.Seal(kFile, false);
    return *node_.client().Stat({id(), kFile, capability});
  }

  // The last report of this order, once it is done or has failed.
  CopyReport End(uint64_t order, std::chrono::seconds wait = std::chrono::seconds(20)) {
    SystemMutexLock lock(mutex_);
    CopyReport end;
    const bool ended = reported_.wait_for(lock, wait, [&] {
      for (const CopyReport& report : reports_) {
        if (report.order != order || (!report.done && !report.failure)) continue;
        end = report;
        return true;
      }
      return false;
    });
    EXPECT_TRUE(ended) << "no end of order " << order;
    return end;
  }
  bool HasEnded(uint64_t order) {
    const SystemMutexLock lock(mutex_);
    return std::ranges::any_of(
        reports_, [&](const auto& r) { return r.order == order && (r.done || r.failure); });
  }

 private:
  std::unique_ptr<node::ObjectStore> OpenStore(NodeId id) {
    auto store =
        node::OpenDirectoryStore({.path = path(), .node_name = fmt::format("n{}", id.value)});
    MOSA_CHECK(store.ok());
    return *std::move(store);
  }
  static testing::TestNodeOptions OptionsOf(NodeId id, const std::string& key,
                                            uint64_t limit_bytes) {
    testing::TestNodeOptions options;
    options.id = id;
    options.key = key;
    options.limit_bytes = limit_bytes;
    return options;
  }

  TemporaryDirectory directory_;
  SystemMutex mutex_;
  SystemCondVar reported_;
  std::vector<CopyReport> reports_;
  TestNode node_;
};

class CopierTest : public ::testing::Test {
 protected:
  Member& Add(uint64_t limit_bytes = uint64_t{1} << 30) {
    const NodeId id{static_cast<uint32_t>(members_.size() + 1)};
    members_.push_back(std::make_unique<Member>(id, key_, limit_bytes));
    return *members_.back();
  }
  // All of the file from `source`.
  CopyOrder Order(Member& source, uint64_t size_bytes, bool follow = false) {
    CopyOrder order;
    order.file = kFile;
    order.order = ++last_order_;
    order.data_version = 7;
    order.size_bytes = size_bytes;
    order.follow = follow;
    order.sources.chunk_bytes = kMiB;
    order.sources.segments = {{0, 1, {source.id()}}};
    order.nodes = {source.node().Address()};
    if (source.node().engine().ListObjects().empty()) order.empty_sources = {source.id()};
    return order;
  }
  CopyReport Copy(Member& target, const CopyOrder& order) {
    target.node().copier().Take(order);
    return target.End(order.order);
  }
  // True once both have the same bytes.
  static bool ComeToAgree(Member& a, Member& b, size_t size) {
    for (int i = 0; i < 1000; ++i) {
      if (a.Read(0, size) == b.Read(0, size)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  const std::string key_ = NewCapabilityKey();
  uint64_t last_order_ = 0;
  std::vector<std::unique_ptr<Member>> members_;
};

#define EXPECT_DONE(report) \
  EXPECT_TRUE((report).done) << ((report).failure ? (report).failure->message : "")

// ---- what comes of an order

TEST_F(CopierTest, ACopyIsEqualAndASecondOrderFetchesOnlyWhatChanged) {
  Member& source = Add();
  Member& target = Add();
  const std::string data = Noise(9 * kMiB + 12'345, 1);
  source.Write(0, data);
  const CopyReport first = Copy(target, Order(source, data.size()));
  EXPECT_DONE(first);
  EXPECT_EQ(first.data_version, 7U);
  EXPECT_EQ(first.fetched_bytes, data.size());
  EXPECT_GE(first.allocated_bytes, data.size());
  EXPECT_TRUE(target.Read(0, data.size()) == data);
  EXPECT_EQ(target.Stat().size_bytes, data.size());

  const CopyReport second = Copy(target, Order(source, data.size()));
  EXPECT_DONE(second);
  EXPECT_EQ(second.fetched_bytes, 0U);
  EXPECT_GE(second.copied_bytes, data.size());

  source.Write(5 * kMiB + 7, "news");
  const CopyReport third = Copy(target, Order(source, data.size()));
  EXPECT_DONE(third);
  EXPECT_EQ(third.fetched_bytes, kBlock);
  EXPECT_TRUE(target.Read(0, data.size()) == source.Read(0, data.size()));
}

TEST_F(CopierTest, HolesStayHolesAndWhatLiesBeyondTheEndGoes) {
  Member& source = Add();
  Member& target = Add();
  const uint64_t far = uint64_t{1} << 33;
  source.Write(0, Noise(kMiB, 1));
  source.Write(far, "tail");
  source.Write(64 * kMiB + 32768, "a page in a block of holes");
  target.Write(2 * kMiB, Noise(3 * kMiB, 2));  // An older copy: a hole now.
  target.Write(far + 100, "older and longer");
  EXPECT_DONE(Copy(target, Order(source, far + 4)));
  EXPECT_TRUE(target.Read(0, 6 * kMiB) == source.Read(0, 6 * kMiB));
  EXPECT_EQ(target.Read(64 * kMiB + 32768, 4), "a pa");
  EXPECT_EQ(target.Read(far - 2, 8), std::string("\0\0tail\0\0", 8));
  EXPECT_EQ(target.Stat().size_bytes, far + 4);
  EXPECT_EQ(target.Stat().allocated_bytes, source.Stat().allocated_bytes);
}

TEST_F(CopierTest, OfAStripedFileOnlyTheOrderedPositionsAreTouched) {
  Member& a = Add();
  Member& b = Add();
  Member& target = Add();
  const std::string of_a = Noise(4 * kMiB, 1);
  const std::string of_b = Noise(4 * kMiB, 2);
  const std::string own = Noise(4 * kMiB, 3);
  a.Write(0, of_a);
  b.Write(0, of_b);
  target.Write(0, own);
  CopyOrder order = Order(a, 4 * kMiB);
  order.sources.segments = {{0, 3, {a.id(), kNoNode, b.id()}}};
  order.nodes = {a.node().Address(), b.node().Address()};
  EXPECT_DONE(Copy(target, order));
  EXPECT_TRUE(target.Read(0, kMiB) == of_a.substr(0, kMiB));
  EXPECT_TRUE(target.Read(kMiB, kMiB) == own.substr(kMiB, kMiB));
  EXPECT_TRUE(target.Read(2 * kMiB, kMiB) == of_b.substr(2 * kMiB, kMiB));
  EXPECT_TRUE(target.Read(3 * kMiB, kMiB) == of_a.substr(3 * kMiB, kMiB));
}

// ---- while the file is written

TEST_F(CopierTest, AFollowerHasMostOfAFileWhenItIsClosed) {
  Member& source = Add();
  Member& target = Add();
  target.node().copier().Take(Order(source, 0, /*follow=*/true));
  const std::string data = Noise(8 * kMiB, 1);
  for (uint64_t at = 0; at < data.size(); at += kMiB / 2)
    source.Write(at, data.substr(at, kMiB / 2));
  EXPECT_TRUE(ComeToAgree(source, target, data.size()));
  source.Truncate(3 * kMiB + 5);
  EXPECT_TRUE(ComeToAgree(source, target, data.size()));
  const CopyReport report = Copy(target, Order(source, 3 * kMiB + 5));
  EXPECT_DONE(report);
  EXPECT_LE(report.fetched_bytes, data.size() + kBlock) << "with what came before the close";
  EXPECT_EQ(target.Stat().size_bytes, 3 * kMiB + 5);
}

TEST_F(CopierTest, AFollowerTakesWritesThatBeginAnywhere) {
  Member& source = Add();
  Member& target = Add();
  source.Write(0, "first");
  target.node().copier().Take(Order(source, 0, /*follow=*/true));
  ASSERT_TRUE(ComeToAgree(source, target, 5));
  // As much as is fetched at once, and as a program writes that counts in decimals: neighbours of
  // which none begins where a fetch does.
  const uint64_t fetch_bytes = node::CopyLimits{}.fetch_bytes;
  uint64_t size = 0;
  for (const uint64_t step : {fetch_bytes, uint64_t{2'000'000}, uint64_t{1'000'000}}) {
    for (int i = 0; i < 4; ++i) {
      source.Write(size + 1, Noise(step, size));
      size += step;
    }
    ASSERT_TRUE(ComeToAgree(source, target, ++size));
  }
  EXPECT_DONE(Copy(target, Order(source, size)));
  EXPECT_TRUE(target.Read(0, size) == source.Read(0, size));
}

TEST_F(CopierTest, WritesAndCutsDuringACopyAreInItsEnd) {
  Member& source = Add();
  Member& target = Add();
  source.Write(0, Noise(32 * kMiB, 1));
  target.node().copier().Take(Order(source, 0, /*follow=*/true));
  Rng rng(5);
  for (int i = 0; i < 60; ++i) {
    const uint64_t at = rng.Below(32 * kMiB);
    if (i % 20 == 19) {
      source.Truncate(at);
    } else {
      source.Write(at, Noise(rng.Below(200'000) + 1, rng.Next()));
    }
  }
  const uint64_t size = source.Stat().size_bytes;
  EXPECT_DONE(Copy(target, Order(source, size)));
  EXPECT_TRUE(target.Read(0, size) == source.Read(0, size));
  // Less if the file ends in a hole that the follower has never seen longer.
  EXPECT_LE(target.Stat().size_bytes, size);
}

TEST_F(CopierTest, ALocalWriterKeepsACopyFromBeingDone) {
  Member& source = Add();
  Member& target = Add();
  const std::string capability = source.node().Seal(kFile, true);
  const sai::ObjectTarget object{source.id(), kFile, capability};
  auto fd = source.node().client().OpenLocal(object, true);
  ASSERT_TRUE(fd.ok());
  std::string data = Noise(2 * kMiB, 1);
  ASSERT_EQ(::pwrite(fd->get(), data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
  ASSERT_TRUE(source.node().client().NoteWritten(object, 0, data.size()).ok());
  const CopyOrder order = Order(source, data.size());
  target.node().copier().Take(order);
  EXPECT_TRUE(ComeToAgree(source, target, data.size()));
  // Nobody is told of this.
  data[kMiB] = static_cast<char>(data[kMiB] + 1);
  ASSERT_EQ(::pwrite(fd->get(), &data[kMiB], 1, kMiB), 1);
  EXPECT_FALSE(target.HasEnded(order.order));
  *fd = UniqueFd();  // Nobody says so.
  EXPECT_DONE(target.End(order.order));
  EXPECT_TRUE(target.Read(0, data.size()) == data);
}

// ---- chains

TEST_F(CopierTest, AChainTakesTheBytesFromTheFirstNodeOnce) {
  Member& primary = Add();
  Member& middle = Add();
  Member& last = Add();
  const std::string data = Noise(24 * kMiB, 1);
  primary.Write(0, data);
  // The last one hears first: what the one before it has of an older version must not count.
  middle.Write(0, Noise(kMiB, 9));
  const CopyOrder first = Order(primary, data.size());
  CopyOrder second = Order(middle, data.size());
  second.relays = {{middle.id(), first.order}};
  last.node().copier().Take(second);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(last.HasEnded(second.order));
  EXPECT_DONE(Copy(middle, first));
  EXPECT_DONE(last.End(second.order));
  EXPECT_TRUE(middle.Read(0, data.size()) == data);
  EXPECT_TRUE(last.Read(0, data.size()) == data);
  EXPECT_EQ(primary.node().engine().TakeHeartbeat().bytes_read_remote, data.size());
}

// The file is all holes, or empty, and on the last node lies what it was before.
TEST_F(CopierTest, WhereThereIsNoObjectNothingIsLeftOfAnOlderOne) {
  Member& primary = Add();
  Member& middle = Add();
  Member& last = Add();
  const uint64_t far = 200 * kMiB;  // More than a question for checksums covers.
  middle.Write(far, "old");
  last.Write(0, Noise(kMiB, 1));
  last.Write(far, "old");
  const CopyOrder first = Order(primary, far + 3);
  CopyOrder second = Order(middle, far + 3);
  second.relays = {{middle.id(), first.order}};
  last.node().copier().Take(second);
  EXPECT_DONE(Copy(middle, first));
  EXPECT_DONE(last.End(second.order));
  EXPECT_EQ(last.Read(0, 4), std::string(4, '\0'));
  EXPECT_EQ(last.Read(far, 3), std::string(3, '\0'));
}

TEST_F(CopierTest, ARelayWithoutTheObjectIsWaitedForOnlyUntilItIsDone) {
  Member& primary = Add();
  Member& middle = Add();
  Member& last = Add();
  last.Write(0, Noise(3 * kMiB, 1));
  last.Write(150 * kMiB, "old");
  const CopyOrder first = Order(primary, kMiB);
  CopyOrder second = Order(middle, kMiB);
  second.relays = {{middle.id(), first.order}};
  // The relay has its order and cannot be done: a program holds the object of its source.
  const std::string capability = primary.node().Seal(kFile, true);
  auto fd = primary.node().client().OpenLocal({primary.id(), kFile, capability}, true);
  ASSERT_TRUE(fd.ok());
  middle.node().copier().Take(first);
  last.node().copier().Take(second);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_FALSE(last.HasEnded(second.order));
  *fd = UniqueFd();
  EXPECT_DONE(middle.End(first.order));
  EXPECT_DONE(last.End(second.order));
  EXPECT_EQ(last.Read(0, 4), std::string(4, '\0'));
  EXPECT_EQ(last.Stat().size_bytes, kMiB);
}

// ---- what goes wrong

TEST_F(CopierTest, ASourceThatDiesIsReportedSoon) {
  Member& source = Add();
  Member& target = Add();
  source.Write(0, Noise(kMiB, 1));
  const CopyOrder order = Order(source, kMiB, /*follow=*/true);
  target.node().copier().Take(order);
  EXPECT_TRUE(ComeToAgree(source, target, kMiB));
  source.node().StopServer();
  const CopyReport report = target.End(order.order, std::chrono::seconds(15));
  ASSERT_TRUE(report.failure.has_value());
  EXPECT_EQ(report.failure->code, StatusCode::kUnavailable);
  EXPECT_THAT(report.failure->message, HasSubstr("node n1"));
}

TEST_F(CopierTest, AFullNodeSaysSoAndKeepsItsOtherFiles) {
  Member& source = Add();
  Member& target = Add(4 * kMiB);
  source.Write(0, Noise(8 * kMiB, 1));
  target.Write(0, "kept", FileId{3});
  const CopyReport report = Copy(target, Order(source, 8 * kMiB));
  ASSERT_TRUE(report.failure.has_value());
  EXPECT_EQ(report.failure->code, StatusCode::kResourceExhausted);
  EXPECT_EQ(report.failure->reason, ErrorReason::kNoSpace);
  EXPECT_LE(target.node().engine().used_bytes(), 4 * kMiB);
  EXPECT_EQ(target.Read(0, 4, FileId{3}), "kept");
  target.node().engine().Drop(std::vector<FileId>{kFile});
  EXPECT_LE(target.node().engine().used_bytes(), 4096U);
}

TEST_F(CopierTest, DamageAtTheSourceIsNotCopied) {
  Member& source = Add();
  Member& target = Add();
  source.Write(0, Noise(2 * kMiB, 1));
  source.node().SealAll();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source.path())) {
    if (!entry.is_regular_file() || entry.file_size() != 2 * kMiB) continue;
    std::fstream object(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    object.seekp(kMiB + 5);
    object.put('!');
  }
  const CopyReport report = Copy(target, Order(source, 2 * kMiB));
  ASSERT_TRUE(report.failure.has_value());
  EXPECT_EQ(report.failure->code, StatusCode::kDataLoss);
}

TEST_F(CopierTest, ANodeThatLostItsObjectsIsNoSource) {
  Member& source = Add();
  Member& target = Add();
  target.Write(0, "what it has");
  CopyOrder order = Order(source, 11);
  order.nodes[0].incarnation += 1;  // The manager knew another store at this address.
  const CopyReport report = Copy(target, order);
  ASSERT_TRUE(report.failure.has_value());
  EXPECT_THAT(report.failure->message, HasSubstr("has restarted"));
  EXPECT_EQ(target.Read(0, 11), "what it has");
}

TEST_F(CopierTest, ACancelledOrderWritesNothingMore) {
  Member& source = Add();
  Member& target = Add();
  const std::string data = Noise(64 * kMiB, 1);
  source.Write(0, data);
  for (int round = 0; round < 5; ++round) {
    target.node().copier().Take(Order(source, data.size()));
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * round));
    target.node().copier().Cancel(std::vector<FileId>{kFile});
    target.node().engine().Drop(std::vector<FileId>{kFile});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(target.node().engine().used_bytes(), 0U) << round;
  }
  EXPECT_DONE(Copy(target, Order(source, data.size())));
  EXPECT_TRUE(target.Read(0, data.size()) == data);
}

// Its cancellation may come late: the file has gone on there, because its first node is full.
TEST_F(CopierTest, AnOrderEndsOnceSomebodyStoresThereByALaterLayout) {
  Member& source = Add();
  Member& target = Add();
  const std::string old = Noise(4 * kMiB, 1);
  source.Write(0, old);
  const CopyOrder order = Order(source, old.size(), /*follow=*/true);
  target.node().copier().Take(order);
  ASSERT_TRUE(ComeToAgree(source, target, old.size()));
  const std::string newer = Noise(kMiB, 2);
  target.WriteByLayout(5, 0, newer);
  source.Write(0, Noise(2 * kMiB, 3));
  EXPECT_TRUE(target.End(order.order).failure.has_value());
  EXPECT_TRUE(target.Read(0, newer.size()) == newer);
}

// It was delayed on its way. Meanwhile the file has gone on there by a later layout, and the source
// has a hole in its place.
TEST_F(CopierTest, AnOrderOfAnEarlierLayoutThatArrivesLateChangesNothing) {
  Member& source = Add();
  Member& target = Add();
  const std::string old = Noise(kMiB, 1);
  source.Write(0, old);
  const std::string newer = Noise(kMiB, 2);
  target.WriteByLayout(5, 4 * kMiB, newer);
  CopyOrder late = Order(source, old.size(), /*follow=*/true);
  late.generation = 4;
  EXPECT_TRUE(Copy(target, late).failure.has_value());
  EXPECT_TRUE(target.Read(4 * kMiB, newer.size()) == newer);
  EXPECT_EQ(target.Read(0, 4096), std::string(4096, '\0'));
  CopyOrder current = Order(source, old.size());
  current.generation = 5;
  EXPECT_DONE(Copy(target, current));
  EXPECT_TRUE(target.Read(0, old.size()) == old);
}

TEST_F(CopierTest, OrdersThatMakeNoSenseAreRefused) {
  Member& source = Add();
  Member& target = Add();
  CopyOrder unbound = Order(source, 5);
  unbound.sources.segments.clear();
  EXPECT_THAT(Copy(target, unbound).failure->message, HasSubstr("names no sources"));
  CopyOrder several = Order(source, 5);
  several.sources.segments = {{0, 1, {source.id(), target.id()}}};
  EXPECT_THAT(Copy(target, several).failure->message, HasSubstr("several sources"));
  CopyOrder nowhere = Order(source, 5);
  nowhere.nodes.clear();
  EXPECT_THAT(Copy(target, nowhere).failure->message, HasSubstr("source 1 has no address"));
  CopyOrder nothing = Order(source, 5);
  nothing.sources.segments = {{0, 1, {kNoNode}}};
  EXPECT_DONE(Copy(target, nothing));
}

TEST_F(CopierTest, ManyOrdersShareThePool) {
  Member& source = Add();
  Member& target = Add();
  constexpr uint64_t kFiles = 40;
  std::vector<CopyOrder> orders;
  for (uint64_t i = 0; i < kFiles; ++i) {
    source.Write(0, Noise(100'000, i), FileId{100 + i});
    CopyOrder order = Order(source, 100'000);
    order.file = FileId{100 + i};
    // Half of them go on being followed, which takes a place of the pool each in turn.
    order.follow = i % 2 == 0;
    orders.push_back(order);
    target.node().copier().Take(order);
  }
  for (const CopyOrder& order : orders) {
    if (order.follow) continue;
    EXPECT_DONE(target.End(order.order));
  }
  for (uint64_t i = 0; i < kFiles; ++i) {
    source.Write(50'000, "late", FileId{100 + i});
    orders[i].order = ++last_order_;
    orders[i].follow = false;
    target.node().copier().Take(orders[i]);
  }
  for (uint64_t i = 0; i < kFiles; ++i) {
    EXPECT_DONE(target.End(orders[i].order));
    EXPECT_TRUE(target.Read(0, 100'000, FileId{100 + i}) ==
                source.Read(0, 100'000, FileId{100 + i}));
  }
}

// ---- the questions themselves

TEST_F(CopierTest, QuestionsForChecksumsAreBoundedAndNeedTheRight) {
  Member& source = Add();
  source.Write(0, Noise(3 * kBlock, 1));
  sai::BulkNodeApi& client = source.node().client();
  const std::string capability = source.node().Seal(kFile, false);
  const sai::ObjectTarget object{source.id(), kFile, capability};
  const auto ask = [&](const sai::ObjectTarget& target, ByteRange range) {
    return client.Sums(target, {.range = range, .after_change = 0, .wait = {}});
  };
  const auto sums = ask(object, {kBlock / 2, 5 * kBlock});
  ASSERT_TRUE(sums.ok()) << MessageOf(sums.status());
  ASSERT_EQ(sums->blocks.size(), 5U);
  EXPECT_TRUE(sums->blocks[2].has_data && !sums->blocks[3].has_data);
  EXPECT_EQ(sums->object_bytes, 3 * kBlock);
  EXPECT_TRUE(sums->quiet && sums->all_changed);
  EXPECT_THAT(MessageOf(ask(object, {0, 65 * kMiB}).status()), HasSubstr("at most 67108864"));
  EXPECT_THAT(MessageOf(ask(object, {UINT64_MAX - 5, UINT64_MAX}).status()),
              HasSubstr("exceed the maximum file size"));
  const std::vector<ByteRange> many(65, ByteRange{0, 1});
  EXPECT_THAT(MessageOf(client.Sums(object, {.range = {}, .wait = {}, .about = many}).status()),
              HasSubstr("at most 64"));
  EXPECT_EQ(ask({source.id(), FileId{43}, capability}, {0, 1}).status().code(),
            StatusCode::kPermissionDenied);
  std::string forged = capability;
  forged[20] = static_cast<char>(forged[20] + 1);
  EXPECT_EQ(ask({source.id(), kFile, forged}, {0, 1}).status().code(),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(client.NoteWritten(object, 0, 1).code(), StatusCode::kPermissionDenied);
  const std::string writer = source.node().Seal(kFile, true);
  EXPECT_THAT(MessageOf(client.NoteWritten({source.id(), kFile, writer}, UINT64_MAX, 2)),
              HasSubstr("exceed the maximum file size"));
}

TEST_F(CopierTest, AHeldQuestionIsAnsweredWhenSomethingChanges) {
  Member& source = Add();
  source.Write(0, Noise(3 * kBlock, 1));
  const std::string capability = source.node().Seal(kFile, false);
  const auto ask = [&](uint64_t after_change) {
    return source.node().client().Sums(
        {source.id(), kFile, capability},
        {.range = {}, .after_change = after_change, .wait = Seconds(100)});
  };
  const auto first = ask(0);
  ASSERT_TRUE(first.ok());
  const auto nothing = ask(first->change);  // Held for a second, whatever was asked for.
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(nothing->change, first->change);
  EXPECT_TRUE(nothing->changed.empty() && !nothing->all_changed);
  // On a busy machine the writer may come late: then the second is over before.
  uint64_t seen = first->change;
  bool in_time = false;
  for (int i = 0; i < 20 && !in_time; ++i) {
    std::thread writer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      source.Write(kBlock + 3, "x");
    });
    const auto begun = std::chrono::steady_clock::now();
    const auto second = ask(seen);
    in_time = std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(900);
    writer.join();
    ASSERT_TRUE(second.ok());
    if (!in_time) {
      seen = ask(0)->change;
      continue;
    }
    EXPECT_EQ(second->changed, (std::vector<ByteRange>{{kBlock + 3, kBlock + 4}}));
  }
  EXPECT_TRUE(in_time);
}

TEST_F(CopierTest, AHeldQuestionWaitsForChangesOfWhatItIsAbout) {
  Member& source = Add();
  source.Write(0, Noise(4 * kBlock, 1));
  node::ObjectEngine& engine = source.node().engine();
  const uint64_t before = engine.sums().ChangesSince(kFile, 0).change;
  std::vector<ByteRange> changed;
  std::promise<void> waits;
  std::thread asker([&] {
    const std::vector<ByteRange> about = {{kBlock, 2 * kBlock}, {3 * kBlock, kFileBytesMax}};
    bool has_begun = false;
    engine.sums().AwaitChange(kFile, before, about, Seconds(60), [&] {
      if (!std::exchange(has_begun, true)) waits.set_value();
      return false;
    });
    changed = engine.sums().ChangesSince(kFile, before).changed;
  });
  waits.get_future().wait();
  source.Write(2 * kBlock + 3, "x");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  source.Write(3 * kBlock + 3, "y");
  asker.join();
  EXPECT_EQ(changed, (std::vector<ByteRange>{{2 * kBlock + 3, 2 * kBlock + 4},
                                             {3 * kBlock + 3, 3 * kBlock + 4}}));
}

}  // namespace
}  // namespace mosa
