// The same transfers in Mosa's predictor and in SimGrid, and what processor time each of them
// takes.
//
// Ours are des::EventLoop and Machines, as predictions use them; SimGrid's are one-sided
// communications over a star of links, one actor per connection. SimGrid is told to leave out what
// it knows of TCP (kFactors): that links carry 3 % less than their nominal rate, that latencies are
// 13 times longer, that far connections get less, and that answers load the way back. Our rates and
// latencies are measured through TCP and have that in them. So what is compared is how links are
// shared: max-min by SimGrid; by ours equally at each of the two links that a transfer crosses.
//
// A flow goes in pieces of 1 MiB of which four are under way, as simulated clients fetch, in both;
// beside that whole, as one transfer, which is how flows are mostly put to SimGrid. Ours is judged
// in pieces, against both. What it would be whole is only told: predictions move 1 MiB at a time at
// most, since a long transfer would be through one link before the other lets it, and leave more
// room there than it does.
//
// Writes a table (Markdown). Ends with 1 if a makespan is more than --limit apart.
#include <fmt/format.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "predictor/des/activity.h"
#include "predictor/des/event_loop.h"
#include "predictor/des/waiting.h"
#include "predictor/model/cost.h"
#include "predictor/run/machines.h"

namespace mosa::predict {
namespace {

constexpr const char* kFactors[] = {
    "--cfg=network/model:CM02",       "--cfg=network/bandwidth-factor:1",
    "--cfg=network/latency-factor:1", "--cfg=network/weight-S:0",
    "--cfg=network/crosstraffic:0",
    "--cfg=network/TCP-gamma:1e12",  // No window limits a connection.
};

struct Flow {
  uint32_t from = 0;
  uint32_t to = 0;
  uint64_t bytes = 0;  // Not 0.
  Duration start;      // The earliest.
};

// What is transferred over which links. Flows of a row go one after the other, rows beside each
// other.
struct Case {
  std::string name;
  uint32_t hosts = 0;
  uint64_t out_bytes_per_second = 125'000'000;
  uint64_t in_bytes_per_second = 125'000'000;
  std::map<uint32_t, uint64_t> links_bytes_per_second = {};  // For hosts that differ from others.
  Duration latency = Microseconds(50);
  std::vector<std::vector<Flow>> rows;

  void Add(const Flow& flow) { rows.push_back({flow}); }
  size_t Flows() const {
    size_t flows = 0;
    for (const auto& row : rows) flows += row.size();
    return flows;
  }
};

// How a flow's bytes go: so many pieces at once.
struct Cut {
  uint64_t piece_bytes;
  uint32_t at_once;
  uint64_t Transfers(const Flow& flow) const {
    return flow.bytes / piece_bytes + (flow.bytes % piece_bytes != 0);
  }
  uint64_t Connections(const Flow& flow) const {
    return std::min<uint64_t>(at_once, Transfers(flow));
  }
};
constexpr Cut kInPieces{1 << 20, 4};
constexpr Cut kWhole{std::numeric_limits<uint64_t>::max(), 1};

// ---- Cases

Case Of(std::string name, uint32_t hosts) {
  Case made;
  made.name = std::move(name);
  made.hosts = hosts;
  return made;
}

// Each pair of hosts has links of its own, as the stages of a pipeline without a common host.
Case Pairs(uint32_t hosts, uint64_t bytes) {
  Case made = Of("pairs", hosts);
  for (uint32_t i = 0; i + 1 < hosts; i += 2) made.Add({i, i + 1, bytes, {}});
  return made;
}

Case InCast(uint32_t hosts, uint64_t bytes) {
  Case made = Of("in-cast", hosts);
  for (uint32_t i = 1; i < hosts; ++i) made.Add({i, 0, bytes, Milliseconds(10) * int64_t{i}});
  return made;
}

Case Broadcast(uint32_t hosts, uint64_t bytes) {
  Case made = Of("broadcast", hosts);
  for (uint32_t i = 1; i < hosts; ++i) made.Add({0, i, bytes, {}});
  return made;
}

// Every host reads a file that is striped over all others.
Case AllToAll(uint32_t hosts, uint64_t stripe_bytes) {
  Case made = Of("all to all", hosts);
  for (uint32_t from = 0; from < hosts; ++from)
    for (uint32_t to = 0; to < hosts; ++to)
      if (from != to) made.Add({from, to, stripe_bytes, {}});
  return made;
}

// 100 KB to 100 MB, each magnitude as often.
uint64_t RandomBytes(Rng& rng) {
  const double exponent = 5 + 3 * static_cast<double>(rng.Below(1'000'001)) / 1e6;
  return static_cast<uint64_t>(std::llround(std::pow(10, exponent)));
}

// `hot_per_mille` of them go to host 0.
Case Random(std::string name, uint32_t hosts, uint32_t flows, Duration within, uint64_t seed,
            uint64_t hot_per_mille = 0) {
  Case made = Of(fmt::format("{}, seed {}", name, seed), hosts);
  Rng rng(seed);
  while (made.rows.size() < flows) {
    Flow flow;
    flow.from = static_cast<uint32_t>(rng.Below(hosts));
    flow.to = rng.Chance(hot_per_mille) ? 0 : static_cast<uint32_t>(rng.Below(hosts));
    flow.bytes = RandomBytes(rng);
    flow.start = Nanoseconds(static_cast<int64_t>(rng.Below(static_cast<uint64_t>(within.ns) + 1)));
    if (flow.from != flow.to) made.Add(flow);
  }
  return made;
}

// Each host reads `flows` files one after the other, each from another host, in `rows` places: when
// one of them begins hangs on when the others before it ended.
Case Chains(uint32_t hosts, uint32_t rows, uint32_t flows, uint64_t seed) {
  Case made = Of(fmt::format("one after the other, seed {}", seed), hosts);
  Rng rng(seed);
  for (uint32_t i = 0; i < hosts * rows; ++i) {
    std::vector<Flow>& row = made.rows.emplace_back();
    const uint32_t to = i % hosts;
    for (uint32_t n = 0; n < flows; ++n) {
      const auto other = static_cast<uint32_t>(1 + rng.Below(hosts - 1));
      row.push_back({(to + other) % hosts, to, RandomBytes(rng), {}});
    }
  }
  return made;
}

// What is received is slower than what is sent.
Case Uneven(uint64_t seed) {
  Case made = Random("random, in at 40 %", 19, 200, Seconds(5), seed);
  made.in_bytes_per_second = 50'000'000;
  return made;
}

// Every third host has a link of its own rate, in both directions.
Case Unequal(uint64_t seed) {
  Case made = Random("random, unequal hosts", 19, 200, Seconds(5), seed);
  for (uint32_t host = 0; host < made.hosts; host += 3)
    made.links_bytes_per_second[host] = uint64_t{10'000'000} * (1 + host);
  return made;
}

// A latency that counts.
Case Far(uint64_t seed) {
  Case made = Random("random, 2 ms away", 19, 200, Seconds(5), seed);
  made.latency = Milliseconds(2);
  return made;
}

// Built to part the two: host 0 sends to two, and when one of these has had time to take its part
// alone, another sends it as much. Whole, ours is through its receiver's link by then, though the
// sender's, which is shared, has let only half of it pass.
Case MetLate(uint64_t bytes) {
  Case made = Of("met late", 4);
  const auto alone_s = static_cast<double>(bytes) / static_cast<double>(made.in_bytes_per_second);
  const Duration alone = Nanoseconds(std::llround(alone_s * 1e9));
  made.Add({0, 1, bytes, {}});
  made.Add({0, 2, bytes, {}});
  made.Add({3, 1, bytes, alone});
  return made;
}

std::vector<Case> SmallCases() {
  return {Pairs(8, 20'000'000),
          InCast(8, 4'000'000),
          Broadcast(8, 4'000'000),
          AllToAll(8, 4'000'000),
          Random("random", 8, 40, Seconds(1), 1),
          Chains(8, 2, 5, 1),
          Uneven(1),
          Unequal(1),
          Far(1),
          MetLate(20'000'000)};
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const uint32_t hosts : {4u, 19u}) {
    cases.push_back(Pairs(hosts, 100'000'000));
    cases.push_back(InCast(hosts, 20'000'000));
    cases.push_back(Broadcast(hosts, 20'000'000));
    cases.push_back(AllToAll(hosts, 10'000'000));
  }
  for (const uint64_t seed : {1u, 2u, 3u}) {
    cases.push_back(Random("random at once", 19, 200, {}, seed));
    cases.push_back(Random("random", 19, 200, Seconds(5), seed));
    cases.push_back(Random("random, a third to one", 19, 200, Seconds(5), seed, 333));
    cases.push_back(Chains(19, 2, 10, seed));
    cases.push_back(Uneven(seed));
    cases.push_back(Unequal(seed));
    cases.push_back(Far(seed));
  }
  cases.push_back(Chains(8, 2, 5, 1));
  cases.push_back(MetLate(20'000'000));
  cases.push_back(MetLate(100'000'000));
  cases.push_back(Random("random", 100, 1000, Seconds(5), 1));
  cases.push_back(Random("random", 1000, 10'000, Seconds(5), 1));
  cases.push_back(AllToAll(100, 2'000'000));
  return cases;
}

// ---- The two simulations

struct Times {
  double makespan_s = 0;
  std::vector<double> flows_s;  // How long each took, from when it could begin.
};

des::Activity<void> Connection(Machines& machines, const Flow& flow, uint64_t piece_bytes,
                               uint64_t& left_bytes) {
  while (left_bytes > 0) {
    const uint64_t bytes = std::min(piece_bytes, left_bytes);
    left_bytes -= bytes;
    co_await machines.Transfer(MachineIndex{flow.from}, MachineIndex{flow.to}, bytes);
  }
}

des::Activity<void> ConnectionBeside(Machines& machines, const Flow& flow, uint64_t piece_bytes,
                                     uint64_t& left_bytes, des::Group& beside) {
  co_await Connection(machines, flow, piece_bytes, left_bytes);
  beside.End();
}

des::Activity<void> Row(des::EventLoop& loop, Machines& machines, const std::vector<Flow>& row,
                        const Cut& cut, double* flows_s) {
  for (const Flow& flow : row) {
    co_await loop.Until(std::max(loop.now(), Time{} + flow.start));
    const Time begin = loop.now();
    uint64_t left_bytes = flow.bytes;
    des::Group beside(loop);
    for (uint64_t n = 1; n < cut.Connections(flow); ++n) {
      beside.Begin();
      des::Spawn(loop, ConnectionBeside(machines, flow, cut.piece_bytes, left_bytes, beside));
    }
    co_await Connection(machines, flow, cut.piece_bytes, left_bytes);
    while (beside.under_way() > 0) co_await beside.changed().Wait();
    *flows_s++ = SecondsOf(loop.now() - begin);
  }
}

Times Ours(const Case& given, const Cut& cut) {
  Platform platform;
  platform.host.out_bytes_per_second = given.out_bytes_per_second;
  platform.host.in_bytes_per_second = given.in_bytes_per_second;
  platform.network.latency_ns = static_cast<uint64_t>(given.latency.ns);
  Configuration configuration;
  configuration.hosts = given.hosts;
  for (const auto& [host, rate] : given.links_bytes_per_second) {
    configuration.unequal_hosts[host].out_bytes_per_second = rate;
    configuration.unequal_hosts[host].in_bytes_per_second = rate;
  }
  des::EventLoop loop;
  Machines machines(loop, platform, configuration);
  Times times{0, std::vector<double>(given.Flows())};
  double* flows_s = times.flows_s.data();
  for (const std::vector<Flow>& row : given.rows) {
    des::Spawn(loop, Row(loop, machines, row, cut, flows_s));
    flows_s += row.size();
  }
  loop.Run();
  times.makespan_s = SecondsOf(loop.now() - Time{});
  return times;
}

std::vector<simgrid::s4u::Host*> StarOf(const Case& given) {
  simgrid::s4u::NetZone* const star = simgrid::s4u::create_star_zone("star");
  std::vector<simgrid::s4u::Host*> hosts;
  for (uint32_t i = 0; i < given.hosts; ++i) {
    auto* const host = star->create_host(fmt::format("h{}", i), 1e9);
    const auto own = given.links_bytes_per_second.find(i);
    const bool is_own = own != given.links_bytes_per_second.end();
    const uint64_t out_rate = is_own ? own->second : given.out_bytes_per_second;
    const uint64_t in_rate = is_own ? own->second : given.in_bytes_per_second;
    auto* const out = star->create_link(fmt::format("out{}", i), static_cast<double>(out_rate));
    auto* const in = star->create_link(fmt::format("in{}", i), static_cast<double>(in_rate));
    out->set_latency(static_cast<double>(given.latency.ns) / 1e9)->seal();
    in->set_latency(0)->seal();
    star->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                    {simgrid::s4u::LinkInRoute(out)}, false);
    star->add_route(nullptr, host->get_netpoint(), nullptr, nullptr,
                    {simgrid::s4u::LinkInRoute(in)}, false);
    hosts.push_back(host);
  }
  star->seal();
  return hosts;
}

void RunRow(const std::vector<simgrid::s4u::Host*>& hosts, const std::vector<Flow>& row,
            const Cut& cut, double* flows_s) {
  for (const Flow& flow : row) {
    simgrid::s4u::this_actor::sleep_until(SecondsOf(flow.start));
    const double begin_s = simgrid::s4u::Engine::get_clock();
    uint64_t left_bytes = flow.bytes;
    const auto connection = [&] {
      while (left_bytes > 0) {
        const uint64_t bytes = std::min(cut.piece_bytes, left_bytes);
        left_bytes -= bytes;
        simgrid::s4u::Comm::sendto(hosts[flow.from], hosts[flow.to], bytes);
      }
    };
    std::vector<simgrid::s4u::ActorPtr> beside;
    for (uint64_t n = 1; n < cut.Connections(flow); ++n)
      beside.push_back(simgrid::s4u::Actor::create("beside", hosts[flow.from], connection));
    connection();
    for (const simgrid::s4u::ActorPtr& each : beside) each->join();
    *flows_s++ = simgrid::s4u::Engine::get_clock() - begin_s;
  }
}

// A process can do this once: SimGrid's engine is a singleton.
Times SimGrids(const Case& given, const Cut& cut) {
  std::vector<std::string> words = {"simgrid", "--log=xbt_cfg.thres:warning"};
  words.insert(words.end(), std::begin(kFactors), std::end(kFactors));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  auto argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  simgrid::s4u::Engine engine(&argc, argv.data());
  const std::vector<simgrid::s4u::Host*> hosts = StarOf(given);
  Times times{0, std::vector<double>(given.Flows())};
  double* flows_s = times.flows_s.data();
  for (const std::vector<Flow>& row : given.rows) {
    simgrid::s4u::Actor::create("row", hosts[row.front().to],
                                [&, flows_s] { RunRow(hosts, row, cut, flows_s); });
    flows_s += row.size();
  }
  engine.run();
  times.makespan_s = simgrid::s4u::Engine::get_clock();
  return times;
}

// ---- Beside each other

using Simulation = Times (*)(const Case&, const Cut&);

struct Outcome {
  double cpu_s = 0;
  Times times;
};

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

bool Write(FILE* to, const Outcome& outcome) {
  const std::vector<double>& flows_s = outcome.times.flows_s;
  return fwrite(&outcome.cpu_s, sizeof(double), 1, to) == 1 &&
         fwrite(&outcome.times.makespan_s, sizeof(double), 1, to) == 1 &&
         fwrite(flows_s.data(), sizeof(double), flows_s.size(), to) == flows_s.size() &&
         fflush(to) == 0;
}

bool Read(FILE* from, size_t flows, Outcome& outcome) {
  std::vector<double>& flows_s = outcome.times.flows_s;
  flows_s.resize(flows);
  return fread(&outcome.cpu_s, sizeof(double), 1, from) == 1 &&
         fread(&outcome.times.makespan_s, sizeof(double), 1, from) == 1 &&
         fread(flows_s.data(), sizeof(double), flows, from) == flows;
}

// Runs it in a process of its own. Nothing if that does not end well.
std::optional<Outcome> InChild(Simulation simulation, const Case& given, const Cut& cut) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    Outcome outcome;
    const double begin_s = CpuSeconds();
    outcome.times = simulation(given, cut);
    outcome.cpu_s = CpuSeconds() - begin_s;
    _exit(Write(fdopen(ends[1], "w"), outcome) ? 0 : 1);
  }
  close(ends[1]);
  FILE* const from = fdopen(ends[0], "r");
  Outcome outcome;
  const bool has_come = child > 0 && Read(from, given.Flows(), outcome);
  fclose(from);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  if (!has_come || status != 0) return std::nullopt;
  return outcome;
}

// The least processor time of several, unless it takes long.
std::optional<Outcome> Measured(Simulation simulation, const Case& given, const Cut& cut,
                                int repeats) {
  std::optional<Outcome> best = InChild(simulation, given, cut);
  for (int i = 1; best && i < repeats && best->cpu_s < 5; ++i) {
    const std::optional<Outcome> again = InChild(simulation, given, cut);
    if (!again) return std::nullopt;
    if (again->cpu_s < best->cpu_s) best = again;
  }
  return best;
}

// How much longer or shorter a flow takes with us, in the mean over flows, either way.
double FlowsApart(const Times& ours, const Times& theirs) {
  double sum = 0;
  for (size_t i = 0; i < ours.flows_s.size(); ++i)
    sum += std::abs(ours.flows_s[i] / theirs.flows_s[i] - 1);
  return sum / static_cast<double>(ours.flows_s.size());
}

constexpr const char* kHead =
    "| CASE | HOSTS | FLOWS | TRANSFERS | OURS S | SIMGRID S | APART | FLOWS APART | SIMGRID WHOLE "
    "S | APART | OURS WHOLE APART | OURS CPU MS | SIMGRID CPU MS | TIMES | SIMGRID WHOLE CPU MS |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";

// Whether all went well, and within `limit`.
bool Compare(const Case& given, int repeats, double limit) {
  const std::optional<Outcome> ours = Measured(Ours, given, kInPieces, repeats);
  const std::optional<Outcome> ours_whole = Measured(Ours, given, kWhole, 1);
  const std::optional<Outcome> theirs = Measured(SimGrids, given, kInPieces, repeats);
  const std::optional<Outcome> theirs_whole = Measured(SimGrids, given, kWhole, repeats);
  if (!ours || !ours_whole || !theirs || !theirs_whole) {
    fmt::print(stderr, "{}: {} did not run to its end\n", given.name,
               ours && ours_whole ? "SimGrid" : "our simulation");
    return false;
  }
  uint64_t transfers = 0;
  for (const std::vector<Flow>& row : given.rows)
    for (const Flow& flow : row) transfers += kInPieces.Transfers(flow);
  const auto apart = [](const Outcome& one, const Outcome& other) {
    return one.times.makespan_s / other.times.makespan_s - 1;
  };
  const double same = apart(*ours, *theirs);
  const double whole = apart(*ours, *theirs_whole);
  fmt::print("| {} | {} | {} | {} | {:.3f} | {:.3f} | {:+.2f}% | {:.1f}% | {:.3f} | {:+.2f}% ",
             given.name, given.hosts, given.Flows(), transfers, ours->times.makespan_s,
             theirs->times.makespan_s, same * 100, FlowsApart(ours->times, theirs->times) * 100,
             theirs_whole->times.makespan_s, whole * 100);
  fmt::print("| {:+.2f}% | {:.2f} | {:.2f} | {:.0f} | {:.2f} |\n",
             apart(*ours_whole, *theirs_whole) * 100, ours->cpu_s * 1e3, theirs->cpu_s * 1e3,
             theirs->cpu_s / ours->cpu_s, theirs_whole->cpu_s * 1e3);
  std::fflush(stdout);
  if (std::abs(same) <= limit && std::abs(whole) <= limit) return true;
  fmt::print(stderr,
             "{}: makespans are {:.2f} % and {:.2f} % apart, at most {:.2f} % are allowed\n",
             given.name, same * 100, whole * 100, limit * 100);
  return false;
}

int Main(int argc, char** argv) {
  CLI::App app{"The same transfers in Mosa's predictor and in SimGrid."};
  bool small = false;
  double limit = 0.05;
  int repeats = 3;
  app.add_flag("--small", small, "A few small cases.");
  app.add_option("--limit", limit, "How far makespans may be apart, as a part.");
  app.add_option("--repeats", repeats, "Of which the least processor time is told.");
  CLI11_PARSE(app, argc, argv);
  fmt::print("{}", kHead);
  std::fflush(stdout);
  bool good = true;
  for (const Case& each : small ? SmallCases() : AllCases())
    good = Compare(each, repeats, limit) && good;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace mosa::predict

int main(int argc, char** argv) { return mosa::predict::Main(argc, argv); }
