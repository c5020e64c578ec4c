// bulk_bench: how fast and at what CPU cost bytes cross the bulk plane on loopback, in clear and
// encrypted, beside raw TCP in the same run. JSON on standard output: per row the median of MB/s
// and of CPU seconds per GB (client and server together), and the ratio of the rates.
//
// Usage: bulk_bench [--rounds N] [--bytes SIZE]
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/socket_address.h"
#include "common/base/units.h"
#include "storage-node/store/object_store.h"
#include "tests/support/test_node.h"

namespace mosa {
namespace {

constexpr FileId kFile{1};

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Sample {
  double megabytes_per_second = 0;
  double cpu_seconds_per_gigabyte = 0;
};

Sample Measure(uint64_t total_bytes, const std::function<void()>& move) {
  const Time begin = SystemClock().Monotonic();
  const double cpu_begin = CpuSeconds();
  move();
  const auto seconds = static_cast<double>((SystemClock().Monotonic() - begin).ns) / 1e9;
  const auto bytes = static_cast<double>(total_bytes);
  return {bytes / seconds / 1e6, (CpuSeconds() - cpu_begin) / (bytes / 1e9)};
}

// Two ends of one TCP connection over loopback.
std::pair<UniqueFd, UniqueFd> ConnectTcp() {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto any = ResolveAddress("127.0.0.1:0");
  MOSA_CHECK(::bind(listener.get(), any->get(), any->size()) == 0);
  MOSA_CHECK(::listen(listener.get(), 1) == 0);
  const auto address = ResolveAddress(*LocalAddress(listener.get()));
  UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  MOSA_CHECK(::connect(client.get(), address->get(), address->size()) == 0);
  UniqueFd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const int on = 1;
  for (const int fd : {client.get(), server.get()})
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {std::move(client), std::move(server)};
}

void SendAll(int fd, const std::byte* bytes, size_t size) {
  while (size > 0) {
    const ssize_t n = ::send(fd, bytes, size, MSG_NOSIGNAL);
    MOSA_CHECK(n > 0);
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

void ReceiveAll(int fd, std::byte* bytes, size_t size) {
  MOSA_CHECK(::recv(fd, bytes, size, MSG_WAITALL) == static_cast<ssize_t>(size));
}

// Request and response of raw bytes from memory to memory; `reading` says which side has them.
Sample MeasureRaw(uint64_t total_bytes, size_t piece, bool reading) {
  auto [client, server] = ConnectTcp();
  const uint64_t pieces = total_bytes / piece;
  std::thread peer([fd = server.get(), pieces, piece, reading] {
    std::vector<std::byte> buffer(piece, std::byte{1});
    std::byte token{};
    for (uint64_t i = 0; i < pieces; ++i) {
      if (reading) {
        ReceiveAll(fd, &token, 1);
        SendAll(fd, buffer.data(), piece);
      } else {
        ReceiveAll(fd, buffer.data(), piece);
        SendAll(fd, &token, 1);
      }
    }
  });
  std::vector<std::byte> buffer(piece, std::byte{2});
  const Sample sample = Measure(total_bytes, [&, fd = client.get()] {
    std::byte token{};
    for (uint64_t i = 0; i < pieces; ++i) {
      if (reading) {
        SendAll(fd, &token, 1);
        ReceiveAll(fd, buffer.data(), piece);
      } else {
        SendAll(fd, buffer.data(), piece);
        ReceiveAll(fd, &token, 1);
      }
    }
  });
  peer.join();
  return sample;
}

Sample MeasureBulk(testing::TestNode& node, uint64_t total_bytes, size_t piece, bool reading) {
  const std::string capability = node.Seal(kFile, true, Seconds(3600));
  const sai::ObjectTarget target{testing::kTestNode, kFile, capability};
  std::vector<std::byte> buffer(piece, std::byte{3});
  return Measure(total_bytes, [&] {
    for (uint64_t at = 0; at < total_bytes; at += piece) {
      const Status status = reading ? node.client().Read(target, at, buffer)
                                    : node.client().Write(target, at, buffer);
      MOSA_CHECK(status.ok());
    }
  });
}

// Another node makes a copy of the file, which it must not have. Its pages are new, unlike those of
// the other measurements.
Sample MeasureCopy(testing::TestNode& source, testing::TestNode& target, uint64_t total_bytes,
                   uint64_t order_number) {
  CopyOrder order;
  order.file = kFile;
  order.order = order_number;
  order.data_version = 1;
  order.size_bytes = total_bytes;
  order.sources.chunk_bytes = 1 << 20;
  order.sources.segments = {{0, 1, {testing::kTestNode}}};
  order.nodes = {source.Address()};
  std::promise<bool> done;
  target.copier().Start([&done](const CopyReport& report) {
    if (report.done || report.failure) done.set_value(report.done);
  });
  return Measure(total_bytes, [&] {
    target.copier().Take(order);
    MOSA_CHECK(done.get_future().get());
  });
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Round {
  Sample bulk;
  Sample encrypted;
  Sample raw;
};

nlohmann::json Row(size_t piece, bool reading, const std::vector<Round>& rounds) {
  const auto median = [&rounds](const auto& number) {
    std::vector<double> numbers;
    for (const Round& round : rounds) numbers.push_back(number(round));
    return Median(std::move(numbers));
  };
  const auto rate = [](const Sample& sample) { return sample.megabytes_per_second; };
  const auto cpu = [](const Sample& sample) { return sample.cpu_seconds_per_gigabyte; };
  return {
      {"operation", reading ? "read" : "write"},
      {"piece_bytes", piece},
      {"bulk_mb_per_s", median([&](const Round& r) { return rate(r.bulk); })},
      {"encrypted_mb_per_s", median([&](const Round& r) { return rate(r.encrypted); })},
      {"raw_tcp_mb_per_s", median([&](const Round& r) { return rate(r.raw); })},
      {"ratio", median([&](const Round& r) { return rate(r.bulk) / rate(r.raw); })},
      {"encrypted_ratio", median([&](const Round& r) { return rate(r.encrypted) / rate(r.bulk); })},
      {"bulk_cpu_s_per_gb", median([&](const Round& r) { return cpu(r.bulk); })},
      {"encrypted_cpu_s_per_gb", median([&](const Round& r) { return cpu(r.encrypted); })},
      {"raw_tcp_cpu_s_per_gb", median([&](const Round& r) { return cpu(r.raw); })}};
}

// Whether the kernel encrypts by itself what OpenSSL hands to it.
bool KernelHasTls() {
  const auto [client, server] = ConnectTcp();
  return ::setsockopt(client.get(), IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls") == 0;
}

int Run(int rounds, uint64_t total_bytes) {
  const testing::TemporaryDirectory directory;
  auto store = node::OpenDirectoryStore({.path = directory.path() + "/o", .node_name = "n1"});
  MOSA_CHECK(store.ok());
  testing::TestNode node(*std::move(store), {.limit_bytes = 2 * total_bytes});
  auto other_store = node::OpenDirectoryStore({.path = directory.path() + "/e", .node_name = "n1"});
  MOSA_CHECK(other_store.ok());
  testing::TestNode encrypted(*std::move(other_store),
                              {.limit_bytes = 2 * total_bytes, .bulk_tls = true});
  // The pages are there from now on.
  MeasureBulk(node, total_bytes, 1 << 20, /*reading=*/false);
  MeasureBulk(encrypted, total_bytes, 1 << 20, /*reading=*/false);
  nlohmann::json rows = nlohmann::json::array();
  for (const bool reading : {true, false}) {
    for (const size_t piece : {size_t{64} << 10, size_t{1} << 20, size_t{16} << 20}) {
      std::vector<Round> samples;
      for (int i = 0; i < rounds; ++i) {
        samples.push_back({.bulk = MeasureBulk(node, total_bytes, piece, reading),
                           .encrypted = MeasureBulk(encrypted, total_bytes, piece, reading),
                           .raw = MeasureRaw(total_bytes, piece, reading)});
      }
      rows.push_back(Row(piece, reading, samples));
    }
  }
  std::vector<double> rates, cpu;
  for (int i = 0; i < rounds; ++i) {
    testing::TestNodeOptions options;
    options.id = NodeId{2};
    options.key = node.key();
    options.limit_bytes = 2 * total_bytes;
    auto copies = node::OpenDirectoryStore({.path = directory.path() + "/c", .node_name = "n2"});
    MOSA_CHECK(copies.ok());
    testing::TestNode other(*std::move(copies), options);
    const Sample sample = MeasureCopy(node, other, total_bytes, static_cast<uint64_t>(i) + 1);
    rates.push_back(sample.megabytes_per_second);
    cpu.push_back(sample.cpu_seconds_per_gigabyte);
    other.copier().Stop();
    other.engine().Drop(std::vector<FileId>{kFile});
  }
  rows.push_back({{"operation", "copy"},
                  {"bulk_mb_per_s", Median(rates)},
                  {"bulk_cpu_s_per_gb", Median(cpu)}});
  const nlohmann::json report = {{"total_bytes", total_bytes},
                                 {"rounds", rounds},
                                 {"cores", std::thread::hardware_concurrency()},
                                 {"kernel_has_tls", KernelHasTls()},
                                 {"rows", rows}};
  std::printf("%s\n", report.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace mosa

int main(int argc, char** argv) {
  CLI::App app("The bulk plane beside raw TCP on loopback");
  int rounds = 5;
  std::string bytes = "512M";
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 100))->capture_default_str();
  app.add_option("--bytes", bytes, "Moved per measurement; whole 16M")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  const auto parsed = mosa::ParseBytes(bytes);
  if (!parsed.ok() || *parsed <= 0 || *parsed % (16 << 20) != 0) {
    std::fprintf(stderr, "bulk_bench: --bytes must be a multiple of 16M, not %s\n", bytes.c_str());
    return 2;
  }
  return mosa::Run(rounds, static_cast<uint64_t>(*parsed));
}
