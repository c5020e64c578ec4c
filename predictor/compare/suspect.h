// Suspects: the parts of a deployment that may be slower than predicted.
#ifndef MOSA_PREDICTOR_COMPARE_SUSPECT_H_
#define MOSA_PREDICTOR_COMPARE_SUSPECT_H_

#include <compare>
#include <cstdint>
#include <string>

namespace mosa::predict {

enum class Part : uint8_t {
  kProcessor,  // On one host, like the next four.
  kLink,
  kNode,
  kPageCache,
  kMount,
  kComputing,  // What tasks do by themselves, on any host.
  kNetwork,    // All links.
  kMounts,     // Moving bytes, in mounts and nodes of all hosts.
  kManager,
  kLaunch,  // Starting tasks.
  kPlaces,  // Where files lie, and in which chunks.
};
const char* ToText(Part part);

struct Suspect {
  Part part = Part::kProcessor;
  std::string host;  // Set for the first five.
  auto operator<=>(const Suspect&) const = default;
};

// "the link of h2".
std::string Describe(const Suspect& suspect);

// What to look at first if the suspect is to blame.
std::string OpenFirst(const Suspect& suspect);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_SUSPECT_H_
