// Tests answers that a mount handles late, and waits that must end.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "client-sai/api/wait_budget.h"
#include "client-sai/sai/cluster_fixture.h"

namespace mosa::sai {
namespace {

// Holds back the answers of a mount's first `count` threads that ask an R, until they are released.
template <typename R>
class HeldAnswer {
 public:
  explicit HeldAnswer(LocalMount& mount, size_t count = 1)
      : state_(std::make_shared<State>(count)) {
    mount.OnAnswer([state = state_](const std::vector<Request>& requests) {
      const bool asked = std::any_of(requests.begin(), requests.end(), [](const Request& each) {
        return std::holds_alternative<R>(each);
      });
      if (!asked) return;
      const size_t at = state->held++;
      if (at < state->released.size()) state->released[at].get_future().wait();
    });
  }
  // Waits for the answer number `at`.
  bool AwaitHeld(size_t at = 0) const {
    return Eventually([this, at] { return state_->held > at; });
  }
  void Release(size_t at = 0) { state_->released[at].set_value(); }

 private:
  struct State {
    explicit State(size_t count) : released(count) {}
    std::atomic<size_t> held = 0;
    std::vector<std::promise<void>> released;
  };
  const std::shared_ptr<State> state_;
};

// Blocks a mount's kernel notices, as a page that a request has locked does.
class LockedPage {
 public:
  explicit LockedPage(LocalMount& mount) {
    mount.notifier().on_file = [state = state_] {
      state->has_waited = true;
      state->unlocked.wait();
    };
  }
  ~LockedPage() { Unlock(); }
  bool has_waited() const { return state_->has_waited; }
  bool AwaitNotice() const {
    return Eventually([this] { return has_waited(); });
  }
  void Unlock() {
    if (!std::exchange(is_unlocked_, true)) state_->unlock.set_value();
  }

 private:
  struct State {
    std::promise<void> unlock;
    std::shared_future<void> unlocked = unlock.get_future().share();
    std::atomic<bool> has_waited{false};
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  bool is_unlocked_ = false;
};

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Answers, AnOpenFromBeforeTheBindingChangesNothing) {
  Cluster cluster;
  const std::string content = Pattern(6 * kMiB, 1);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", "small")));
  auto written = cluster.a().Open("/f", O_RDWR);
  ASSERT_TRUE(Ok(written));
  // Makes cached knowledge invalid, so that it is asked for again.
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/f", "user.note", "x")));
  HeldAnswer<OpenRequest> open(cluster.a());
  auto reader = std::async(std::launch::async, [&] { return cluster.a().Open("/f", O_RDONLY); });
  ASSERT_TRUE(open.AwaitHeld());
  ASSERT_TRUE(Ok(cluster.a().Write(written->handle, 0, content)));
  ASSERT_EQ(cluster.manager().StatusOf("/f")->layout.Nodes().size(), 2u);
  open.Release();
  auto read = reader.get();
  ASSERT_TRUE(Ok(read));
  ASSERT_TRUE(Ok(cluster.a().Close(written->handle)));
  EXPECT_TRUE(*cluster.a().Read(read->handle, 0, 8 * kMiB) == content);
  ASSERT_TRUE(Ok(cluster.a().Close(read->handle)));
  EXPECT_TRUE(*cluster.b().ReadFile("/f") == content);
}

// The kernel takes the size from this answer: a program would find the earlier end.
TEST(Answers, ATruncationThatAnotherChangeOvertakesTellsTheNewSize) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", "small")));
  ASSERT_TRUE(Ok(cluster.a().Stat("/f")));
  const FileId file = *cluster.b().Find("/f");
  HeldAnswer<SetAttributesRequest> answer(cluster.a());
  AttributeChanges longer;
  longer.size_bytes = 3000;
  auto resized =
      std::async(std::launch::async, [&] { return cluster.a().fs().SetAttributes(file, longer); });
  ASSERT_TRUE(answer.AwaitHeld());
  AttributeChanges mode;
  mode.permissions = 0600;
  ASSERT_TRUE(Ok(cluster.b().fs().SetAttributes(file, mode)));
  answer.Release();
  const auto told = resized.get();
  ASSERT_TRUE(Ok(told));
  EXPECT_EQ(told->attributes.size_bytes, 3000U);
  EXPECT_EQ(cluster.a().Stat("/f")->permissions, 0600);
}

TEST(Answers, OverlappingClosesOfNewFilesLeaveTheirDirectoryAsTheManagerHasIt) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  auto first = cluster.a().Open("/d/1", O_CREAT | O_RDWR);
  auto second = cluster.a().Open("/d/2", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(cluster.a().Write(first->handle, 0, "1")));
  ASSERT_TRUE(Ok(cluster.a().Write(second->handle, 0, "2")));
  HeldAnswer<MakeRequest> make(cluster.a());
  auto closed = std::async(std::launch::async, [&] { return cluster.a().Close(first->handle); });
  ASSERT_TRUE(make.AwaitHeld());
  ASSERT_TRUE(Ok(cluster.a().Close(second->handle)));
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d/sub")));
  make.Release();
  ASSERT_TRUE(Ok(closed.get()));
  const auto here = cluster.a().Stat("/d");
  const auto there = cluster.b().Stat("/d");
  ASSERT_TRUE(Ok(here));
  EXPECT_EQ(here->link_count, there->link_count);
  EXPECT_EQ(here->size_bytes, there->size_bytes);
  EXPECT_EQ(here->modify_time, there->modify_time);
}

// b has the lock, and has just learned where its record goes, when its session expires.
TEST(Answers, WhatASilentMountWasAppendingIsNotStoredOverTheRecordOfWhoWasLetIn) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  const std::string old = Pattern(kMiB, 1);
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/log", old)));
  const auto file = cluster.b().Open("/d/log", O_WRONLY | O_APPEND);
  ASSERT_TRUE(Ok(file));
  HeldAnswer<OpenRequest> end(cluster.b());
  auto late = std::async(std::launch::async, [&] {
    const auto written = cluster.b().Write(file->handle, 0, Pattern(4096, 2));
    const auto closed = cluster.b().Close(file->handle);
    return written.ok() ? ReasonOf(closed) : ReasonOf(written);
  });
  ASSERT_TRUE(end.AwaitHeld());
  cluster.b().Freeze(true);
  std::this_thread::sleep_for(std::chrono::seconds(7));
  const std::string record = Pattern(4096, 3);
  const auto other = cluster.a().Open("/d/log", O_WRONLY | O_APPEND);
  ASSERT_TRUE(Ok(other));
  ASSERT_TRUE(Ok(cluster.a().Write(other->handle, 0, record)));
  ASSERT_TRUE(Ok(cluster.a().Close(other->handle)));
  cluster.b().Freeze(false);
  end.Release();
  EXPECT_EQ(late.get(), ErrorReason::kStale);
  EXPECT_TRUE(*cluster.a().ReadFile("/d/log") == old + record);
  EXPECT_TRUE(*cluster.b().ReadFile("/d/log") == old + record);
}

TEST(Answers, WhatWasAppendedBeforeOthersKnewTheFileStays) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  auto first = cluster.a().Open("/d/log", O_CREAT | O_WRONLY | O_APPEND);
  ASSERT_TRUE(Ok(first));
  ASSERT_TRUE(Ok(cluster.a().Write(first->handle, 0, "one ")));
  auto second = cluster.b().Open("/d/log", O_WRONLY | O_APPEND);
  ASSERT_TRUE(Ok(second));
  ASSERT_TRUE(Ok(cluster.b().Write(second->handle, 0, "two ")));
  ASSERT_TRUE(Ok(cluster.a().Write(first->handle, 0, "three ")));
  ASSERT_TRUE(Ok(cluster.b().Close(second->handle)));
  ASSERT_TRUE(Ok(cluster.a().Close(first->handle)));
  EXPECT_EQ(*cluster.b().ReadFile("/d/log"), "one two three ");
  EXPECT_EQ(*cluster.a().ReadFile("/d/log"), "one two three ");
}

// Each mount appends to its own and to the other's files while they become known.
TEST(Answers, AppendersOfNewFilesLoseNoLine) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  for (int round = 0; round < 30; ++round) {
    const std::string path = "/d/" + std::to_string(round);
    auto maker = cluster.a().Open(path, O_CREAT | O_WRONLY | O_APPEND);
    ASSERT_TRUE(Ok(maker));
    std::thread other([&] {
      auto handle = cluster.b().Open(path, O_WRONLY | O_APPEND);
      EXPECT_TRUE(Ok(handle));
      for (int i = 0; i < 5; ++i) EXPECT_TRUE(Ok(cluster.b().Write(handle->handle, 0, "b")));
      EXPECT_TRUE(Ok(cluster.b().Close(handle->handle)));
    });
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(Ok(cluster.a().Write(maker->handle, 0, "a")));
    EXPECT_TRUE(Ok(cluster.a().Close(maker->handle)));
    other.join();
    const auto content = cluster.b().ReadFile(path);
    ASSERT_TRUE(Ok(content));
    EXPECT_EQ(std::count(content->begin(), content->end(), 'a'), 5) << *content;
    EXPECT_EQ(std::count(content->begin(), content->end(), 'b'), 5) << *content;
    EXPECT_EQ(content->size(), 10u);
  }
}

TEST(Pages, WhatAProgramStoredThroughAMappingIsNotAppended) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", std::string(8192, 'o'))));
  auto handle = cluster.a().Open("/f", O_RDWR | O_APPEND);
  auto cached = cluster.a().Open("/f", O_RDONLY);
  ASSERT_TRUE(Ok(handle));
  ASSERT_TRUE(Ok(cached));
  // A page under writeback is locked: nothing may wait for it meanwhile.
  LockedPage page(cluster.a());
  ASSERT_TRUE(Ok(cluster.a().fs().WritePages(handle->handle, 4096, Bytes("stored"))));
  EXPECT_FALSE(page.has_waited());
  page.Unlock();
  ASSERT_TRUE(Ok(cluster.a().Close(cached->handle)));
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  std::string expected(8192, 'o');
  expected.replace(4096, 6, "stored");
  EXPECT_TRUE(*cluster.b().ReadFile("/f") == expected);
}

// Clearing set-user-id bits reads attributes while its write has the page locked.
TEST(Pages, AttributesCanBeHadWhileAPageIsLocked) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", "content")));
  auto cached = cluster.b().Open("/f", O_RDWR);
  ASSERT_TRUE(Ok(cluster.b().Read(cached->handle, 0, 100)));
  const FileId file = *cluster.b().Find("/f");
  LockedPage page(cluster.b());
  auto changed =
      std::async(std::launch::async, [&] { return cluster.a().WriteFile("/f", "longer content"); });
  ASSERT_TRUE(page.AwaitNotice());
  const auto attributes = cluster.b().fs().GetUnsettledAttributes(file);
  page.Unlock();
  ASSERT_TRUE(Ok(attributes));
  EXPECT_EQ(attributes->type, FileType::kRegular);
  ASSERT_TRUE(Ok(changed.get()));
  ASSERT_TRUE(Ok(cluster.b().Close(cached->handle)));
}

// A mount whose kernel keeps a page locked keeps its session, and others continue.
TEST(Pages, APageThatStaysLockedHoldsNobodyUp) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", "content")));
  auto cached = cluster.b().Open("/f", O_RDWR);
  ASSERT_TRUE(Ok(cluster.b().Read(cached->handle, 0, 100)));
  auto written = cluster.a().Open("/f", O_WRONLY);
  ASSERT_TRUE(Ok(cluster.a().Write(written->handle, 0, "other content")));
  LockedPage page(cluster.b());
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(Ok(cluster.a().Close(written->handle)));
  // Before the manager gives up b, which takes 10 s.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(9500));
  EXPECT_EQ(*cluster.b().Read(cached->handle, 0, 100), "other content");
  page.Unlock();
  ASSERT_TRUE(Ok(cluster.b().Close(cached->handle)));
}

// The reply that introduces a file to the kernel may be sent before its caller has run.
TEST(Answers, AKernelThatDoesNotKnowTheFileYetIsToldAgainThatItHasChanged) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/f", "x")));
  const auto entry = cluster.a().fs().Lookup(kRootFile, "f");
  ASSERT_TRUE(Ok(entry));
  const uint64_t before = cluster.a().notifier().files;
  cluster.a().notifier().unknown = 3;
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/f", "other")));
  EXPECT_TRUE(Eventually([&] { return cluster.a().notifier().files - before >= 4; }));
  EXPECT_EQ(cluster.a().notifier().unknown, 0);
  // No notice is needed for a file that the kernel has forgotten.
  cluster.a().fs().Forget(entry->entry.file, 1);
  const uint64_t after = cluster.a().notifier().files;
  cluster.a().notifier().unknown = 1000;
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/f", "third")));
  EXPECT_LE(cluster.a().notifier().files - after, 2);
}

// The kernel discards a reply that a notification overtakes, and reads up to the end that it knew:
// a log without a record that was appended before it was opened.
TEST(Answers, AFileWhoseSizeTheKernelMayNotKnowIsReadPastItsPages) {
  Cluster cluster;
  cluster.a().notifier().can.maps_direct = true;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/log", "one")));
  const FileId file = *cluster.a().Find("/log");
  const auto mode = [&] {
    const auto opened = cluster.a().Open("/log", O_RDONLY);
    EXPECT_TRUE(Ok(opened));
    EXPECT_TRUE(Ok(cluster.a().Close(opened->handle)));
    return opened->mode.kind;
  };
  EXPECT_EQ(mode(), OpenMode::Kind::kCached);
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/log", "one and two")));
  EXPECT_EQ(mode(), OpenMode::Kind::kCached)
      << "what one mount hands to another stays in the pages";
  EXPECT_EQ(cluster.a().fs().GetAttributes(file)->attributes_valid, Duration{0});
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/log", "one and two and three")));
  EXPECT_EQ(mode(), OpenMode::Kind::kDirect);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  EXPECT_EQ(mode(), OpenMode::Kind::kCached)
      << "it has asked since, and nothing overtook the answer";
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  EXPECT_GT(cluster.a().fs().GetAttributes(file)->attributes_valid, Duration{0});
  cluster.a().notifier().can.maps_direct = false;
  for (const char* content : {"four", "five"})
    ASSERT_TRUE(Ok(cluster.b().WriteFile("/log", content)));
  EXPECT_EQ(mode(), OpenMode::Kind::kCached) << "programs could not map it otherwise";
}

// Each mount must give up more directories than it has ready threads. The make of each unsent file
// waits until the other mount has given up that directory, too.
TEST(Answers, TwoMountsThatLetGoOfManyDirectoriesDoNotWaitForEachOther) {
  Cluster cluster;
  std::vector<std::string> directories;
  std::vector<HandleId> unsent;
  for (int i = 0; i < 8; ++i) {
    for (LocalMount* mount : {&cluster.a(), &cluster.b()}) {
      directories.push_back((mount == &cluster.a() ? "/a" : "/b") + std::to_string(i));
      ASSERT_TRUE(Ok(mount->MakeDirectory(directories.back())));
    }
  }
  ASSERT_TRUE(Ok(cluster.a().List("/")));
  ASSERT_TRUE(Ok(cluster.b().List("/")));
  for (const std::string& directory : directories) {
    LocalMount& maker = directory[1] == 'a' ? cluster.a() : cluster.b();
    const auto made = maker.Open(directory + "/f", O_CREAT | O_WRONLY);
    ASSERT_TRUE(Ok(made));
    unsent.push_back(made->handle);
  }
  SystemClock clock;
  LocalMount c(cluster.manager(), cluster.nodes(), "c", clock);
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::future<bool>> looked_up;
  for (const std::string& directory : directories)
    looked_up.push_back(
        std::async(std::launch::async, [&] { return c.Find(directory + "/f").ok(); }));
  for (std::future<bool>& found : looked_up) EXPECT_TRUE(found.get());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(4));
  for (size_t i = 0; i < unsent.size(); ++i)
    EXPECT_TRUE(Ok((directories[i][1] == 'a' ? cluster.a() : cluster.b()).Close(unsent[i])));
}

// The manager has run the commit of a close that is to wait for copies, and the close does not know
// it yet, when another mount changes the file. No copy is made of bytes that this mount may still
// write.
TEST(Answers, ACloseThatIsToWaitForCopiesIsNoWriterWhileItsCommitIsUnderWay) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  for (const auto& [name, value] : {std::pair("placement", "local"), std::pair("replicas", "2"),
                                    std::pair("ack", "pessimistic")})
    ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", std::string("user.mosa.") + name, value)));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(kMiB, 1))));
  const auto id = cluster.b().Find("/d/f");
  ASSERT_TRUE(Ok(id));
  const auto file = cluster.a().Open("/d/f", O_WRONLY);
  ASSERT_TRUE(Ok(file));
  ASSERT_TRUE(Ok(cluster.a().Write(file->handle, 0, Pattern(kMiB, 2))));
  std::atomic<int> confirmed{0}, as_writer{0};
  cluster.a().OnSend([&](const std::vector<Request>& requests) {
    for (const Request& each : requests) {
      const auto* done = std::get_if<RecallDoneRequest>(&each);
      if (done == nullptr) continue;
      ++confirmed;
      if (done->writes) ++as_writer;
    }
  });
  HeldAnswer<CommitRequest> commit(cluster.a());
  auto flushed = std::async(std::launch::async, [&] { return cluster.a().Flush(file->handle, 0); });
  EXPECT_TRUE(commit.AwaitHeld());
  const int before = confirmed;
  as_writer = 0;
  AttributeChanges changes;
  changes.permissions = 0600;
  EXPECT_TRUE(Ok(cluster.b().fs().SetAttributes(*id, changes)));
  EXPECT_GT(confirmed, before);
  EXPECT_EQ(as_writer, 0);
  commit.Release();
  EXPECT_TRUE(Ok(flushed.get()));
  EXPECT_EQ(cluster.manager().StatusOf("/d/f")->copies_valid, 2U);
  cluster.a().OnSend(nullptr);
  cluster.a().fs().Release(file->handle, std::nullopt);
}

// A reader may use any valid copy, a writer the first one. Both are on one host.
TEST(Answers, ALateRightToReadDoesNotHideWhatTheHostHasWrittenSince) {
  Cluster cluster;
  const std::string old = Pattern(2 * kMiB, 1);
  const std::string written = Pattern(kMiB, 2);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.replicas", "2")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", old)));
  ASSERT_TRUE(Eventually([&] { return cluster.manager().StatusOf("/d/f")->copies_valid == 2; }));
  HeldAnswer<OpenRequest> held(cluster.b(), 2);
  auto opening = std::async(std::launch::async, [&] { return cluster.b().Open("/d/f", O_RDWR); });
  ASSERT_TRUE(held.AwaitHeld(0));
  auto reading = std::async(std::launch::async, [&] { return cluster.b().Open("/d/f", O_RDONLY); });
  ASSERT_TRUE(held.AwaitHeld(1));
  held.Release(0);
  const auto writer = opening.get();
  ASSERT_TRUE(Ok(writer));
  ASSERT_TRUE(Ok(cluster.b().Write(writer->handle, 0, written)));
  // It is stored, but not committed.
  const auto object = cluster.nodes().Get(cluster.node_a).PathOf(*cluster.a().Find("/d/f"));
  ASSERT_TRUE(Eventually([&] {
    std::string stored(written.size(), '\0');
    std::ifstream(object, std::ios::binary)
        .read(stored.data(), static_cast<std::streamsize>(stored.size()));
    return stored == written;
  }));
  held.Release(1);
  const auto reader = reading.get();
  ASSERT_TRUE(Ok(reader));
  EXPECT_TRUE(*cluster.b().Read(reader->handle, 0, written.size()) == written);
  EXPECT_TRUE(*cluster.b().Read(writer->handle, 0, written.size()) == written);
  ASSERT_TRUE(Ok(cluster.b().Close(reader->handle)));
  ASSERT_TRUE(Ok(cluster.b().Close(writer->handle)));
  EXPECT_EQ(*cluster.a().ReadFile("/d/f"), written + old.substr(written.size()));
}

// The manager tells a mount only of what others change.
TEST(Answers, WhatBecameOfAChangeThatWasNotAnsweredIsAskedFor) {
  Cluster cluster;
  LocalMount& a = cluster.a();
  LocalMount& b = cluster.b();
  for (const std::string path : {"/removed", "/moved", "/linked", "/mode"})
    ASSERT_TRUE(Ok(b.WriteFile(path, "x"))) << path;
  const std::vector<std::string> paths = {"/removed",  "/moved", "/linked", "/mode",
                                          "/moved_to", "/made",  "/link",   "/directory"};
  for (const std::string& path : paths) static_cast<void>(a.Stat(path));
  const FileId linked = *a.Find("/linked");
  const FileId mode = *a.Find("/mode");
  AttributeChanges permissions;
  permissions.permissions = 0600;
  const Caller caller{0, 0, 1, 022};
  const std::vector<std::function<ErrorReason()>> changes = {
      [&] { return ReasonOf(a.Unlink("/removed")); },
      [&] { return ReasonOf(a.Rename("/moved", "/moved_to")); },
      [&] { return ReasonOf(a.fs().Link(linked, kRootFile, "link")); },
      [&] { return ReasonOf(a.fs().SetAttributes(mode, permissions)); },
      [&] {
        return ReasonOf(a.fs().Create({kRootFile, "made", 0644, 0, caller}, O_RDWR));
      },
      [&] { return ReasonOf(a.MakeDirectory("/directory")); },
  };
  a.Freeze(true);
  std::vector<std::thread> programs;
  for (const auto& change : changes)
    programs.emplace_back([&change] {
      const WaitBudget budget(SteadyNow() - std::chrono::minutes(1));
      EXPECT_EQ(change(), ErrorReason::kTimedOut);
    });
  for (std::thread& program : programs) program.join();
  a.Freeze(false);
  for (const std::string& path : paths) {
    const auto agree = [&] {
      const auto seen = a.Stat(path);
      const auto right = b.Stat(path);
      return seen.ok() == right.ok() && (!seen.ok() || (seen->permissions == right->permissions &&
                                                        seen->link_count == right->link_count));
    };
    EXPECT_TRUE(Eventually(agree)) << path;
  }
  EXPECT_TRUE(Ok(b.Stat("/moved_to"))) << "the changes were applied";
}

// Others would wait for the lock until the mount ends.
TEST(Answers, AnUnlockThatWasNotAnsweredIsAskedForAgain) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", "x")));
  const FileId file = *cluster.b().Find("/f");
  for (const bool whole_file : {false, true}) {
    Lock lock{.owner = 1, .pid = 1, .whole_file = whole_file};
    ASSERT_TRUE(Ok(cluster.a().fs().SetLock(file, lock)));
    std::atomic<bool> unlocks = false;
    cluster.a().OnSend([&](const std::vector<Request>& requests) {
      unlocks = unlocks || std::holds_alternative<SetLockRequest>(requests.front());
    });
    cluster.a().SetUnheard(true);
    lock.type = LockType::kUnlock;
    auto unlocking =
        std::async(std::launch::async, [&] { return cluster.a().fs().SetLock(file, lock); });
    EXPECT_TRUE(Eventually([&] { return unlocks.load(); }));
    cluster.a().SetUnheard(false);
    EXPECT_EQ(ReasonOf(unlocking.get()), ErrorReason::kTimedOut);
    cluster.a().OnSend(nullptr);
    lock.type = LockType::kExclusive;
    EXPECT_TRUE(Eventually([&] { return cluster.b().fs().SetLock(file, lock).ok(); }));
  }
}

}  // namespace
}  // namespace mosa::sai
