#include "common/observe/processor_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "common/base/hash.h"

namespace mosa {
namespace {

constexpr uint64_t kSecond_ns = 1'000'000'000;

uint64_t UsedBy(int who) {
  rusage use{};
  getrusage(who, &use);
  const auto ns = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * kSecond_ns +
           static_cast<uint64_t>(time.tv_usec) * 1'000;
  };
  return ns(use.ru_utime) + ns(use.ru_stime);
}

uint64_t MachineNumber() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!std::getline(file, id) || id.empty()) return 0;
  return Hash64(id) >> 11;
}

// Parses "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", in microseconds.
uint64_t WaitedForProcessors() {
  std::ifstream file("/proc/pressure/cpu");
  for (std::string word; file >> word;)
    if (word.starts_with("total=")) return std::strtoull(word.c_str() + 6, nullptr, 10) * 1'000;
  return 0;
}

}  // namespace

ProcessorUse ReadProcessorUse() {
  ProcessorUse use;
  use.own_ns = UsedBy(RUSAGE_SELF) + UsedBy(RUSAGE_CHILDREN);
  std::ifstream file("/proc/stat");
  std::string name;
  uint64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0,
           stolen = 0;
  const uint64_t machine = MachineNumber();
  if (machine == 0 ||
      !(file >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen))
    return use;
  const uint64_t tick_ns = kSecond_ns / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  use.machine = machine;
  use.processors = static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_ONLN));
  use.busy_ns = (user + nice + system) * tick_ns;
  use.stolen_ns = stolen * tick_ns;
  use.waited_ns = WaitedForProcessors();
  return use;
}

}  // namespace mosa
