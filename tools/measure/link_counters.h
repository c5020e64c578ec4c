// Bytes that the links of a host moved, as its kernel counts them.
#ifndef MOSA_TOOLS_MEASURE_LINK_COUNTERS_H_
#define MOSA_TOOLS_MEASURE_LINK_COUNTERS_H_

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace mosa::cli {

struct LinkCounter {
  uint64_t received = 0;
  uint64_t sent = 0;
};
// By link, in bytes; without the loopback.
using LinkCounters = std::map<std::string, LinkCounter>;

// Parses /proc/net/dev: a line "eth0: 1200 9 0 0 0 0 0 0 800 ...", of which the ninth number is
// what was sent.
inline LinkCounters ParseLinkCounters(std::istream& text) {
  LinkCounters links;
  for (std::string line; std::getline(text, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream name_of(line.substr(0, colon)), numbers(line.substr(colon + 1));
    std::string name;
    name_of >> name;
    LinkCounter link;
    numbers >> link.received;
    for (int i = 0; i < 8; ++i) numbers >> link.sent;
    if (numbers && name != "lo") links[name] = link;
  }
  return links;
}

// Reads the network namespace of this process. Empty if the kernel reports nothing.
inline LinkCounters ReadLinkCounters() {
  std::ifstream file("/proc/self/net/dev");
  return ParseLinkCounters(file);
}

// What the busiest link moved in one direction.
inline uint64_t BusiestLinkBytes(const LinkCounters& after, const LinkCounters& before) {
  uint64_t most = 0;
  for (const auto& [name, now] : after) {
    const auto was = before.find(name);
    if (was == before.end()) continue;
    for (const auto field : {&LinkCounter::received, &LinkCounter::sent})
      if (now.*field > was->second.*field) most = std::max(most, now.*field - was->second.*field);
  }
  return most;
}

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_LINK_COUNTERS_H_
