#include "predictor/run/simulated_residence.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/model/request_kinds.h"

namespace mosa::predict {

const char* ToText(Daemon daemon) {
  static constexpr const char* kNames[] = {"manager", "storage", "mount"};
  return kNames[static_cast<size_t>(daemon)];
}

const EnvelopeNames& NamesOf(const std::vector<Request>& requests) {
  static const std::vector<std::string> kAtMount = EnvelopeKindNames("manager.");
  static const std::vector<std::string> kAtManager = EnvelopeKindNames("");
  static const std::vector<std::string> kDecisions = EnvelopeKindNames("", ".core");
  static const std::vector<EnvelopeNames> kNames = [] {
    std::vector<EnvelopeNames> names;
    for (size_t i = 0; i < kAtMount.size(); ++i)
      names.push_back({kAtMount[i], kAtManager[i], kDecisions[i]});
    return names;
  }();
  MOSA_CHECK(!requests.empty());
  return kNames[EnvelopeKindOf(requests)];
}

std::vector<PredictedDaemon> SimulatedResidence::Take() const {
  std::vector<PredictedDaemon> daemons;
  for (const auto& [key, times] : rows_) {
    if (daemons.empty() || daemons.back().daemon != key.daemon ||
        daemons.back().machine != key.machine)
      daemons.push_back({key.daemon, key.machine, {}});
    daemons.back().rows.push_back(
        {std::string(key.name),
         key.peer == kNoPeer ? std::string() : fmt::format("h{}", key.peer.value + 1), times});
  }
  return daemons;
}

}  // namespace mosa::predict
