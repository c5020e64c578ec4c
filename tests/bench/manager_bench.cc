// What the manager's core can do alone: steps per second, bytes of memory per file, and how long an
// image takes to load. One JSON object on stdout.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "manager/core/manager_core.h"
#include "manager/store/metadata_store.h"

namespace mosa::manager {
namespace {

constexpr ClientId kClient{7};

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Bytes that the process has from malloc and uses.
size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// A client that makes files in one directory per thousand, as fast as the core takes them.
class Maker {
 public:
  Maker(ManagerCore& core, MetadataStore* store) : core_(core), store_(store) {
    SessionStart start;
    start.client = kClient;
    start.node_name = "n1";
    Step(StartSession{start});
    for (int i = 1; i <= 4; ++i) {
      NodeRegistration node;
      node.name = fmt::format("n{}", i);
      node.incarnation = 1;
      node.limit_bytes = uint64_t{1} << 40;
      Step(RegisterNode{node});
    }
  }

  // Make and commit in one envelope, as a delegated client sends them; every second file is bound.
  void MakeFiles(size_t files) {
    for (size_t i = 0; i < files; ++i) {
      if (i % 1000 == 0) directory_ = MakeOne(kRootFile, fmt::format("dir{}", i / 1000), true);
      MakeOne(directory_, fmt::format("part{:06}", i), false);
    }
  }
  double store_seconds() const { return store_seconds_; }

 private:
  FileId MakeOne(FileId parent, std::string name, bool directory) {
    if (ids_left_ == 0) TakeIds();
    --ids_left_;
    MakeRequest make;
    make.parent = parent;
    make.name = std::move(name);
    make.file = FileId(next_id_++);
    make.type = directory ? FileType::kDirectory : FileType::kRegular;
    make.permissions = 0644;
    make.task = "bench";
    make.now = now_;
    std::vector<Request> requests = {make};
    if (!directory && make.file.value % 2 == 0) {
      requests.push_back(BindRequest{make.file, 65536});
      CommitRequest commit;
      commit.file = make.file;
      commit.size_bytes = 65536;
      commit.nodes = {{NodeId(1), 65536, 0}};
      commit.generation = 1;  // It is bound just now.
      commit.last_close = true;
      requests.push_back(std::move(commit));
    } else if (!directory) {
      CommitRequest commit;
      commit.file = make.file;
      commit.size_bytes = 100;
      commit.inline_data = std::string(100, 'x');
      commit.last_close = true;
      requests.push_back(std::move(commit));
    }
    Send(std::move(requests));
    return make.file;
  }

  void TakeIds() {
    const Effects effects = Send({FileIdRangeRequest{}});
    const auto& reply = std::get<ReplyEnvelope>(effects.to_clients.at(0).message);
    const auto& range = std::get<FileIdRangeReply>(reply.replies.at(0));
    next_id_ = range.first.value;
    ids_left_ = range.count;
  }

  Effects Send(std::vector<Request> requests) {
    ++last_request_;
    return Step(SessionRequest{
        kClient, {RequestId(last_request_), RequestId(last_request_), std::move(requests)}});
  }

  Effects Step(const Command& command) {
    now_ = now_ + Microseconds(1);
    Effects effects = core_.Step(command, now_);
    if (store_ != nullptr) {
      const auto begin = std::chrono::steady_clock::now();
      if (!store_->Commit(effects.writes).ok()) std::abort();
      store_seconds_ += SecondsSince(begin);
    }
    return effects;
  }

  ManagerCore& core_;
  MetadataStore* store_;
  FileId directory_ = kRootFile;
  Time now_{Seconds(1'700'000'000).ns};
  uint64_t next_id_ = 0, ids_left_ = 0, last_request_ = 0;
  double store_seconds_ = 0;
};

nlohmann::json Measure(size_t files, const std::string& directory) {
  nlohmann::json result = {{"files", files}};
  {
    const size_t before = HeapBytes();
    ManagerCore core{ManagerOptions{}};
    Maker maker(core, nullptr);
    const auto begin = std::chrono::steady_clock::now();
    maker.MakeFiles(files);
    result["make_and_commit_per_second"] = static_cast<double>(files) / SecondsSince(begin);
    result["bytes_per_file"] =
        static_cast<double>(HeapBytes() - before) / static_cast<double>(files);
  }
  auto store = OpenRocksStore({.path = directory});
  if (!store.ok()) throw std::runtime_error(MessageOf(store.status()));
  {
    ManagerCore core{ManagerOptions{}};
    Maker maker(core, store->get());
    const auto begin = std::chrono::steady_clock::now();
    maker.MakeFiles(files);
    const double seconds = SecondsSince(begin);
    result["make_and_commit_with_rocksdb_per_second"] = static_cast<double>(files) / seconds;
    result["rocksdb_commit_us"] = maker.store_seconds() * 1e6 / static_cast<double>(files);
  }
  store->reset();
  store = OpenRocksStore({.path = directory});
  if (!store.ok()) throw std::runtime_error(MessageOf(store.status()));
  ManagerCore core{ManagerOptions{}};
  const auto begin = std::chrono::steady_clock::now();
  const Status loaded =
      (*store)->Load(kInlineDataPrefix, [&core](std::string_view key, std::string_view value) {
        return core.LoadRecord(key, value);
      });
  if (!loaded.ok()) throw std::runtime_error(MessageOf(loaded));
  const Status finished = core.FinishLoad(Time{Seconds(1'700'001'000).ns});
  if (!finished.ok()) throw std::runtime_error(MessageOf(finished));
  result["load_seconds"] = SecondsSince(begin);
  result["files_loaded"] = core.GetClusterStatus(Time{}).files;
  return result;
}

}  // namespace
}  // namespace mosa::manager

int main(int argc, char** argv) {
  CLI::App app("Measures the manager's core alone");
  size_t files = 1'000'000;
  std::string directory;
  app.add_option("directory", directory, "Where the image is written; must not exist")->required();
  app.add_option("--files", files, "How many files are made")->check(CLI::Range(1, 100'000'000));
  CLI11_PARSE(app, argc, argv);
  if (std::filesystem::exists(directory)) {
    fmt::print(stderr, "{} exists: name a directory that does not\n", directory);
    return 2;
  }
  try {
    const nlohmann::json result = mosa::manager::Measure(files, directory);
    std::filesystem::remove_all(directory);
    if (result["files_loaded"] != files) {
      fmt::print(stderr, "{} files were made, {} loaded\n", files, result["files_loaded"].dump());
      return 1;
    }
    fmt::print("{}\n", result.dump(2));
  } catch (const std::exception& error) {
    std::filesystem::remove_all(directory);
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
