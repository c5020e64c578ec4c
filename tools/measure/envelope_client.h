// What one client of `mosa envelope` does to the files of a sample: they are prepared by another
// client, used at the same time by all, and compared byte for byte when the time is taken.
//
// A sample's files are "DIRECTORY/CLIENT-INDEX" and, for N-to-1 reads, "DIRECTORY/shared". What a
// client reads it keeps until it was compared, and what it writes it has made before, so that
// nothing but the store's work is timed.
#ifndef MOSA_TOOLS_MEASURE_ENVELOPE_CLIENT_H_
#define MOSA_TOOLS_MEASURE_ENVELOPE_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/time.h"
#include "predictor/envelope/envelope.h"
#include "tools/measure/processor_ticks.h"

namespace mosa::cli {

// The part of a sample that one client has.
struct ClientSample {
  predict::EnvelopeOperation operation = predict::EnvelopeOperation::kCreate;
  uint64_t size_bytes = 0;
  uint64_t operations = 0;  // By this client.
  uint32_t client = 0;      // Whose files they are.
  std::string directory;
  uint64_t seed = 0;  // For the files' bytes.

  std::string name(uint64_t index) const;  // A file's name, in the directory.
};
nlohmann::json ToJson(const ClientSample& sample);
ClientSample ClientSampleOf(const nlohmann::json& words);  // Throws as nlohmann::json does.

// By the own monotonic clock.
struct ClientSpan {
  Time told;  // When to begin: later than that if the word came late.
  Time begin;
  Time end;
  // Between these, the machine's, and one direction of the busiest of its links.
  ProcessorTicks processors;
  std::optional<uint64_t> link_bytes;  // Nothing: its kernel does not say.
};

// One thread. Errors name file and reason.
class EnvelopeClient {
 public:
  // Makes the files that are to be there, for `sample.client`; their bytes are on the store then,
  // and no pages of them are kept here, as far as the system drops them.
  static Status Prepare(const ClientSample& sample);
  // Whatever can be done beforehand. `warm`: reads once what will be read.
  Status Ready(const ClientSample& sample, bool warm);
  // Not before `begin`. Precondition: Ready() of the same sample.
  Result<ClientSpan> Go(const ClientSample& sample, Time begin);
  // Compares all that was read by Go().
  Status CheckRead(const ClientSample& sample);
  // Checks for `sample.client`, which has created or written them, whether the files are as they
  // must be.
  // Some stores tell other hosts late of names and sizes, as GlusterFS and NFS do: for so long
  // files that are missing or too short are looked at again; wrong bytes are wrong at once. How
  // late the latest was at most, counted from the call.
  static Result<Duration> CheckStored(const ClientSample& sample, Duration patience);

 private:
  Status Operate(const ClientSample& sample, uint64_t index);
  std::byte* Slot(const ClientSample& sample, uint64_t index) {
    return bytes_.get() + index * sample.size_bytes;
  }

  std::unique_ptr<std::byte[]> bytes_;  // All operations' bytes, one after the other.
};

// What a process on a host is told to do: "prepare", "ready", "go", "check", "check-stored".
Result<nlohmann::json> DoClientStep(EnvelopeClient& client, const std::string& step,
                                    const nlohmann::json& words);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_ENVELOPE_CLIENT_H_
