// posix_battery PATH [PATH2]: runs every check below PATH and prints `N passed, N failed, N
// skipped`.
//
// PATH2 is the same store seen through another mount; it turns on the checks of two mounts.
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/posix/battery/battery.h"

namespace mosa::posix {
namespace {

struct Options {
  std::string path;
  std::string second_path;
  std::string reference;
  std::string filter;
  std::string only;
  std::vector<std::string> except;
  bool json = false;
  bool list = false;
  bool slow = false;
  bool keep = false;
  int limit_s = 20;
};

enum class Verdict { kPassed, kFailed, kSkipped };

struct Outcome {
  std::string name;
  Verdict verdict = Verdict::kPassed;
  std::string text = {};
  int64_t milliseconds = 0;
};

const char* WordOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return "passed";
    case Verdict::kFailed:
      return "FAILED";
    case Verdict::kSkipped:
      return "skipped";
  }
  return "";
}

int RemoveOne(const char* path, const struct stat*, int, struct FTW*) { return ::remove(path); }

void RemoveTree(const std::string& path) {
  ::nftw(path.c_str(), &RemoveOne, 16, FTW_DEPTH | FTW_PHYS);
}

// A process stuck in a dead mount cannot be reaped; it is left behind after two seconds.
void ReapInTime(pid_t runner) {
  for (int turn = 0; turn < 200 && ::waitpid(runner, nullptr, WNOHANG) == 0; ++turn) SleepMs(10);
}

// A check with a time limit: it and its children are one process group, killed when time is up.
Outcome RunInTime(const Check& check, const Place& place, int limit_s) {
  Outcome outcome{.name = check.name};
  int ends[2];
  MUST(::pipe2(ends, O_CLOEXEC));
  const pid_t runner = MUST(::fork());
  if (runner == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::string text;
    try {
      InChild([&] {
        ::umask(022);
        MUST(::chdir(place.absolute.c_str()));
        check.body(place);
      });
    } catch (const Skipped& skipped) {
      text = std::string("S") + skipped.what();
    } catch (const std::exception& failure) {
      text = std::string("F") + failure.what();
    }
    if (!text.empty() && ::write(ends[1], text.data(), text.size()) < 0) ::_exit(2);
    ::_exit(0);
  }
  ::setpgid(runner, runner);
  ::close(ends[1]);
  pollfd waiting{.fd = ends[0], .events = POLLIN, .revents = 0};
  std::string text(4096, '\0');
  if (::poll(&waiting, 1, limit_s * 1000) == 0) {
    text = fmt::format("Fnot done after {} s", limit_s);
  } else {
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(ends[0], text.data(), 4096))));
  }
  ::close(ends[0]);
  ::kill(-runner, SIGKILL);
  ReapInTime(runner);
  if (!text.empty()) {
    outcome.verdict = text[0] == 'S' ? Verdict::kSkipped : Verdict::kFailed;
    outcome.text = text.substr(1);
  }
  return outcome;
}

Outcome RunOne(const Check& check, const Options& options, int number) {
  const std::string name = fmt::format("battery.{}.{}", ::getpid(), number);
  const std::string second = options.second_path.empty() ? options.path : options.second_path;
  const Place place{.a = ".", .b = second + "/" + name, .absolute = options.path + "/" + name};
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome{.name = check.name};
  if (::mkdir(place.absolute.c_str(), 0755) != 0) {
    outcome.verdict = Verdict::kFailed;
    outcome.text = fmt::format("mkdir({}) failed: {}", place.absolute, ::strerrorname_np(errno));
    return outcome;
  }
  outcome =
      RunInTime(check, place, check.kind == Kind::kSlow ? options.limit_s * 15 : options.limit_s);
  outcome.milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(
                             std::chrono::steady_clock::now() - begin)
                             .count();
  if (options.keep && outcome.verdict == Verdict::kFailed) return outcome;
  RemoveTree(place.absolute);
  if (::access(place.absolute.c_str(), F_OK) == 0 && outcome.verdict == Verdict::kPassed) {
    outcome.verdict = Verdict::kFailed;
    outcome.text = "its directory " + place.absolute + " cannot be removed afterwards";
  }
  return outcome;
}

// What is skipped here although the reference file system passes it is a failure.
void JudgeByReference(const Check& check, const Options& options, int number, Outcome& outcome) {
  if (options.reference.empty() || outcome.verdict != Verdict::kSkipped) return;
  Options there = options;
  there.path = options.reference;
  there.second_path = options.second_path.empty() ? "" : options.reference;
  if (RunOne(check, there, number).verdict != Verdict::kPassed) return;
  outcome.verdict = Verdict::kFailed;
  outcome.text = fmt::format("skipped ({}), yet it passes on {}", outcome.text, options.reference);
}

bool Wanted(const Check& check, const Options& options) {
  if (check.kind == Kind::kTwoMounts && options.second_path.empty()) return false;
  if (check.kind == Kind::kSlow && !options.slow) return false;
  if (!options.only.empty() && options.only != check.name) return false;
  for (const std::string& name : options.except) {
    if (name == check.name) return false;
  }
  return std::string_view(check.name).find(options.filter) != std::string_view::npos;
}

void Print(const std::vector<Outcome>& outcomes, const Options& options) {
  int counts[3] = {0, 0, 0};
  auto rows = nlohmann::json::array();
  for (const Outcome& outcome : outcomes) {
    ++counts[static_cast<int>(outcome.verdict)];
    rows.push_back({{"name", outcome.name},
                    {"verdict", WordOf(outcome.verdict)},
                    {"text", outcome.text},
                    {"milliseconds", outcome.milliseconds}});
  }
  if (options.json) {
    const nlohmann::json all = {
        {"passed", counts[0]}, {"failed", counts[1]}, {"skipped", counts[2]}, {"checks", rows}};
    const auto replace = nlohmann::json::error_handler_t::replace;
    std::puts(all.dump(1, ' ', false, replace).c_str());
  } else {
    fmt::print("{} passed, {} failed, {} skipped\n", counts[0], counts[1], counts[2]);
  }
}

int Run(const Options& options) {
  std::vector<Outcome> outcomes;
  int number = 0;
  int failed = 0;
  for (const Check& check : Checks()) {
    if (options.list) {
      std::puts(check.name);
      continue;
    }
    if (!Wanted(check, options)) continue;
    outcomes.push_back(RunOne(check, options, ++number));
    Outcome& last = outcomes.back();
    JudgeByReference(check, options, number, last);
    if (last.verdict == Verdict::kFailed) ++failed;
    if (!options.json && last.verdict != Verdict::kPassed) {
      fmt::print("{} {}: {}\n", WordOf(last.verdict), last.name, last.text);
      std::fflush(stdout);
    }
  }
  if (options.list) return 0;
  Print(outcomes, options);
  if (outcomes.empty()) {
    fmt::print(stderr,
               "no check was wanted (slow ones need --slow, those of two mounts PATH2; --list "
               "shows all)\n");
    return 2;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mosa::posix

int main(int argc, char** argv) {
  CLI::App app{"Checks that a directory behaves as POSIX says (and as tmpfs does)."};
  mosa::posix::Options options;
  app.add_option("PATH", options.path, "directory to work in");
  app.add_option("PATH2", options.second_path, "the same store through a second mount");
  app.add_option("--reference", options.reference,
                 "directory of another file system: what it passes must not be skipped");
  app.add_option("--filter", options.filter, "only checks with this text in their name");
  app.add_option("--only", options.only, "only the check of exactly this name");
  app.add_option("--except", options.except, "leave out the check of this name (repeatable)");
  app.add_option("--limit", options.limit_s, "seconds that a check may take (slow ones 15 x)");
  app.add_flag("--json", options.json, "one JSON document instead of text");
  app.add_flag("--list", options.list, "print the names and do nothing");
  app.add_flag("--slow", options.slow, "run the slow checks too");
  app.add_flag("--keep", options.keep, "leave the directory of a failed check");
  CLI11_PARSE(app, argc, argv);
  if (options.path.empty() && !options.list) {
    fmt::print(stderr, "PATH is missing: name a directory below which to work\n");
    return 2;
  }
  for (std::string* path : {&options.path, &options.second_path, &options.reference}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path).string();
  }
  return mosa::posix::Run(options);
}
