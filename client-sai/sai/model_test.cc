// Random operations of two mounts, compared with files in memory. Every open and close is one step,
// so close-to-open consistency promises that each step sees all earlier ones.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "common/base/rng.h"
#include "tests/support/local_mount.h"

namespace mosa::sai {
namespace {

using testing::LocalManager;
using testing::LocalMount;
using testing::LocalNodes;

constexpr uint64_t kSizeMax = 1 << 20;

class ModelRun {
 public:
  ModelRun(uint64_t seed, uint64_t a_bytes, uint64_t b_bytes, uint64_t chunk_bytes) : rng_(seed) {
    manager::ManagerOptions options;
    options.chunk_bytes = chunk_bytes;
    options.turns_to_share = 1;
    manager_ = std::make_unique<LocalManager>(options, clock_);
    nodes_ = std::make_unique<LocalNodes>(*manager_);
    nodes_->Add("a", a_bytes);
    nodes_->Add("b", b_bytes);
    for (const char* name : {"a", "b"})
      mounts_.push_back(std::make_unique<LocalMount>(*manager_, *nodes_, name, clock_));
    EXPECT_TRUE(mounts_[0]->MakeDirectory("/s").ok());
    EXPECT_TRUE(mounts_[1]->MakeDirectory("/l").ok());
    EXPECT_TRUE(mounts_[1]->SetXattr("/l", "user.mosa.placement", "local").ok());
  }
  ~ModelRun() {
    mounts_.clear();
    manager_.reset();
  }

  void Step() {
    LocalMount& mount = *mounts_[rng_.Below(2)];
    const std::string path =
        std::string(rng_.Chance(500) ? "/s/f" : "/l/f") + std::to_string(rng_.Below(4));
    switch (rng_.Below(10)) {
      case 0:
        return Remove(mount, path);
      case 1:
        return Truncate(mount, path);
      case 2:
        return Rename(mount, path);
      case 3:
      case 4:
      case 5:
      case 6:
        return Change(mount, path);
      default:
        return Verify(mount, path);
    }
  }

  void VerifyAll() {
    for (const auto& mount : mounts_)
      for (const char* directory : {"/s/f", "/l/f"})
        for (int i = 0; i < 4; ++i) Verify(*mount, directory + std::to_string(i));
  }

 private:
  using Files = std::map<std::string, std::string>;

  uint64_t Offset() {
    // Small files, sizes around the inline limit, and any size.
    const uint64_t limit = rng_.Chance(400) ? 20'000 : rng_.Chance(500) ? 200'000 : kSizeMax;
    return rng_.Below(limit);
  }

  void Remove(LocalMount& mount, const std::string& path) {
    const auto outcome = mount.Unlink(path);
    EXPECT_EQ(outcome.ok(), files_.erase(path) == 1) << path;
  }

  void Truncate(LocalMount& mount, const std::string& path) {
    const uint64_t size = rng_.Chance(200) ? 0 : Offset();
    const auto outcome = mount.Truncate(path, size);
    const auto file = files_.find(path);
    ASSERT_EQ(outcome.ok(), file != files_.end())
        << path << (outcome.ok() ? "" : outcome.failure().message);
    if (file != files_.end()) file->second.resize(size);
  }

  void Rename(LocalMount& mount, const std::string& path) {
    const std::string target = path.substr(0, 4) + std::to_string(rng_.Below(4));
    const auto outcome = mount.Rename(path, target);
    const auto file = files_.find(path);
    ASSERT_EQ(outcome.ok(), file != files_.end()) << path;
    if (file == files_.end() || path == target) return;
    files_[target] = std::move(file->second);
    files_.erase(path);
  }

  void Change(LocalMount& mount, const std::string& path) {
    const bool append = rng_.Chance(150);
    const bool truncate = rng_.Chance(100);
    auto handle =
        mount.Open(path, O_CREAT | O_RDWR | (append ? O_APPEND : 0u) | (truncate ? O_TRUNC : 0u));
    ASSERT_TRUE(handle.ok()) << path << ": " << handle.failure().message;
    std::string& model = files_[path];
    if (truncate) model.clear();
    const uint64_t changes = rng_.Below(6);
    for (uint64_t i = 0; i < changes; ++i) {
      const uint64_t offset = Offset();
      const uint64_t length = 1 + rng_.Below(rng_.Chance(300) ? 150'000 : 5'000);
      const uint64_t what = append ? 0 : rng_.Below(10);
      if (what < 6) {
        std::string data(length, static_cast<char>('a' + rng_.Below(26)));
        const auto written = mount.Write(handle->handle, offset, data);
        ASSERT_TRUE(written.ok()) << path << ": " << written.failure().message;
        const uint64_t at = append ? model.size() : offset;
        if (model.size() < at + length) model.resize(at + length);
        model.replace(at, length, data);
      } else if (what == 6) {
        const auto punched = mount.fs().Allocate(
            handle->handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
        ASSERT_TRUE(punched.ok()) << path << ": " << punched.failure().message;
        if (offset < model.size())
          model.replace(offset, std::min(length, model.size() - offset),
                        std::string(std::min(length, model.size() - offset), '\0'));
      } else if (what == 7) {
        const auto allocated = mount.fs().Allocate(handle->handle, 0, offset, length);
        ASSERT_TRUE(allocated.ok()) << path << ": " << allocated.failure().message;
        if (model.size() < offset + length) model.resize(offset + length);
      } else if (what == 8) {
        ASSERT_TRUE(mount.fs().Fsync(handle->handle).ok());
        Verify(*mounts_[rng_.Below(2)], path);
      } else {
        const auto read = mount.Read(handle->handle, offset, length);
        ASSERT_TRUE(read.ok()) << path << ": " << read.failure().message;
        const std::string expected = offset < model.size() ? model.substr(offset, length) : "";
        ASSERT_TRUE(*read == expected) << path << " at " << offset;
      }
    }
    SeekAgrees(mount, handle->handle, model);
    const auto closed = mount.Close(handle->handle);
    ASSERT_TRUE(closed.ok()) << path << ": " << closed.failure().message;
  }

  // Where Seek reports a hole, the file is zero.
  void SeekAgrees(LocalMount& mount, HandleId handle, const std::string& model) {
    const uint64_t offset = model.empty() ? 0 : rng_.Below(model.size() + 10);
    const auto data = mount.fs().Seek(handle, offset, SeekKind::kData);
    if (offset >= model.size()) {
      ASSERT_FALSE(data.ok());
      return;
    }
    const uint64_t zero_until = data.ok() ? *data : model.size();
    ASSERT_LE(zero_until, model.size());
    for (uint64_t i = offset; i < zero_until; ++i) ASSERT_EQ(model[i], '\0') << i;
    const auto hole = mount.fs().Seek(handle, offset, SeekKind::kHole);
    ASSERT_TRUE(hole.ok());
    ASSERT_GE(*hole, offset);
    ASSERT_LE(*hole, model.size());
  }

  void Verify(LocalMount& mount, const std::string& path) {
    const auto file = files_.find(path);
    const auto stat = mount.Stat(path);
    ASSERT_EQ(stat.ok(), file != files_.end()) << path;
    if (file == files_.end()) return;
    ASSERT_EQ(stat->size_bytes, file->second.size()) << path;
    const auto read = mount.ReadFile(path);
    ASSERT_TRUE(read.ok()) << path << ": " << read.failure().message;
    if (*read == file->second) return;
    size_t at = 0;
    while (at < read->size() && at < file->second.size() && (*read)[at] == file->second[at]) ++at;
    FAIL() << path << ": " << read->size() << " bytes of " << file->second.size()
           << ", the first wrong one at " << at;
  }

  Rng rng_;
  Files files_;
  SystemClock clock_;
  std::unique_ptr<LocalManager> manager_;
  std::unique_ptr<LocalNodes> nodes_;
  std::vector<std::unique_ptr<LocalMount>> mounts_;
};

struct Row {
  uint64_t a_bytes, b_bytes, chunk_bytes;
};

// MOSA_TEST_SEED repeats a run.
TEST(Model, TwoMountsAgreeWithFilesInMemory) {
  const char* given = std::getenv("MOSA_TEST_SEED");
  const uint64_t first = given ? std::strtoull(given, nullptr, 10) : 1;
  const uint64_t runs = given ? 1 : 6;
  const Row rows[] = {
      {64 << 20, 64 << 20, 64 << 10}, {64 << 20, 64 << 20, 1 << 20}, {2 << 20, 64 << 20, 64 << 10}};
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    for (const Row& row : rows) {
      SCOPED_TRACE("MOSA_TEST_SEED=" + std::to_string(seed) + " chunks of " +
                   std::to_string(row.chunk_bytes) + ", node a of " + std::to_string(row.a_bytes));
      ModelRun run(seed, row.a_bytes, row.b_bytes, row.chunk_bytes);
      for (int step = 0; step < 150; ++step) {
        run.Step();
        if (::testing::Test::HasFailure()) {
          std::printf("step %d\n", step);
          return;
        }
      }
      run.VerifyAll();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace mosa::sai
