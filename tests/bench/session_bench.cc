// How fast clients' sessions are: a manager process on loopback, N clients in this process, each
// with a session of its own. Prints one JSON object: per phase, operations per second over all
// clients and the round trip's median and 99th percentile in microseconds.
//
// Phases: stat (attributes of one file), make (an empty file), create (make and commit with 1 KiB
// inline, one envelope).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client-sai/api/grpc_manager_api.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "tests/support/process_cluster.h"

namespace mosa {
namespace {

using WallClock = std::chrono::steady_clock;

struct BenchFlags {
  std::string manager = MOSA_BINARY_DIR "/mosa-manager";
  int clients = 1;
  int operations = 5000;  // Per client and phase.
  std::vector<std::string> manager_flags;
};

[[noreturn]] void Die(const std::string& text) {
  std::fprintf(stderr, "session_bench: %s\n", text.c_str());
  std::exit(1);
}

class BenchClient final : public sai::SessionListener {
 public:
  BenchClient(const std::string& address, uint64_t number)
      : number_(number), api_(sai::NewGrpcManagerApi({.address = address, .secret = {}})) {}
  ~BenchClient() override { api_->Stop(); }

  void Open() {
    const Status started = api_->Start(*this);
    if (!started.ok()) Die(MessageOf(started));
    directory_ = Make(kRootFile, fmt::format("d{}", number_), FileType::kDirectory, false);
    file_ = Make(directory_, "stat", FileType::kRegular, false);
  }

  void Stat() { Expect(api_->Call({GetAttributesRequest{file_}}, kWaitMax)); }
  void MakeOne() { Make(directory_, NextName(), FileType::kRegular, false); }
  void CreateOne() { Make(directory_, NextName(), FileType::kRegular, true); }

  void OnSessionReady(const SessionReady& ready) override {
    now_ = ready.now;
    next_file_ = ready.file_ids.first.value;
    end_file_ = next_file_ + ready.file_ids.count;
  }
  void OnPush(const Push& push) override {
    const auto* const recall = std::get_if<RecallPush>(&push);
    if (recall == nullptr) return;
    api_->Send({RecallDoneRequest{.recall = recall->recall, .holds_open = false}},
               [](std::vector<Reply>) {});
  }
  void OnLeaseRenewed(Time, Time) override {}
  SessionStart SessionHeld() override {
    SessionStart start;
    start.client = ClientId{number_ + 1};
    start.host_identity = "bench";
    start.mount_point = "/bench";
    return start;
  }

 private:
  std::string NextName() { return fmt::format("file{}", ++names_); }

  std::vector<Reply> Expect(std::vector<Reply> replies) {
    if (const auto* const failure = std::get_if<Failure>(&replies.back())) Die(failure->message);
    return replies;
  }

  FileId NextFile() {
    if (next_file_ == end_file_) {
      const auto range =
          std::get<FileIdRangeReply>(Expect(api_->Call({FileIdRangeRequest{}}, kWaitMax)).back());
      next_file_ = range.first.value;
      end_file_ = next_file_ + range.count;
    }
    return FileId{next_file_++};
  }

  FileId Make(FileId parent, std::string name, FileType type, bool commit) {
    MakeRequest make;
    make.parent = parent;
    make.name = std::move(name);
    make.file = NextFile();
    make.type = type;
    make.permissions = 0644;
    make.now = now_;
    make.open = commit;
    const FileId file = make.file;
    std::vector<Request> requests{std::move(make)};
    if (commit) {
      CommitRequest bytes;
      bytes.file = file;
      bytes.size_bytes = 1024;
      bytes.inline_data = std::string(1024, 'x');
      bytes.last_close = true;
      requests.emplace_back(std::move(bytes));
    }
    Expect(api_->Call(std::move(requests), kWaitMax));
    return file;
  }

  const uint64_t number_;
  const std::unique_ptr<sai::ManagerApi> api_;
  Time now_;
  uint64_t next_file_ = 0;
  uint64_t end_file_ = 0;
  uint64_t names_ = 0;
  FileId directory_;
  FileId file_;
};

nlohmann::json Phase(std::vector<std::unique_ptr<BenchClient>>& clients, int operations,
                     const std::function<void(BenchClient&)>& operation) {
  std::vector<std::vector<double>> micros(clients.size());
  const auto began = WallClock::now();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < clients.size(); ++i) {
    threads.emplace_back([&, i] {
      micros[i].reserve(static_cast<size_t>(operations));
      for (int n = 0; n < operations; ++n) {
        const auto sent = WallClock::now();
        operation(*clients[i]);
        micros[i].push_back(
            std::chrono::duration<double, std::micro>(WallClock::now() - sent).count());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(WallClock::now() - began).count();
  std::vector<double> all;
  for (const auto& part : micros) all.insert(all.end(), part.begin(), part.end());
  std::sort(all.begin(), all.end());
  return {{"per_second", static_cast<double>(all.size()) / seconds},
          {"median_us", all[all.size() / 2]},
          {"p99_us", all[all.size() * 99 / 100]}};
}

int Run(const BenchFlags& flags) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / fmt::format("mosa_session_bench.{}", ::getpid());
  std::filesystem::create_directories(directory);
  const std::string ready_file = directory / "ready";
  std::vector<std::string> command = {flags.manager, "--listen", "127.0.0.1:0", "--data-dir",
                                      directory / "store"};
  command.insert(command.end(), flags.manager_flags.begin(), flags.manager_flags.end());
  testing::DaemonProcess manager(command, directory / "log", ready_file);
  const Result<nlohmann::json> ready = manager.Start();
  if (!ready.ok()) Die(MessageOf(ready.status()));
  nlohmann::json report = {{"clients", flags.clients}, {"operations", flags.operations}};
  {
    std::vector<std::unique_ptr<BenchClient>> clients;
    for (int i = 0; i < flags.clients; ++i) {
      clients.push_back(std::make_unique<BenchClient>(ready->at("address").get<std::string>(),
                                                      static_cast<uint64_t>(i)));
      clients.back()->Open();
    }
    report["stat"] = Phase(clients, flags.operations, [](BenchClient& c) { c.Stat(); });
    report["make"] = Phase(clients, flags.operations, [](BenchClient& c) { c.MakeOne(); });
    report["create"] = Phase(clients, flags.operations, [](BenchClient& c) { c.CreateOne(); });
  }
  const Result<int> stopped = manager.Stop();
  std::filesystem::remove_all(directory);
  std::printf("%s\n", report.dump(2).c_str());
  return stopped.ok() && *stopped == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mosa

int main(int argc, char** argv) {
  mosa::BenchFlags flags;
  CLI::App app("Round trips and rates of client sessions");
  app.add_option("--manager", flags.manager, "The mosa-manager program")->capture_default_str();
  app.add_option("--clients", flags.clients)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--operations", flags.operations, "Per client and phase")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--manager-flag", flags.manager_flags, "Passed on; may be given several times");
  CLI11_PARSE(app, argc, argv);
  return mosa::Run(flags);
}
