// What one client of `mosa envelope` does to the files of a sample: another client prepares them,
// all clients use them at the same time, and they are compared byte for byte afterwards.
//
// A sample's files are "DIRECTORY/CLIENT-INDEX" and, for N-to-1 reads, "DIRECTORY/shared". A client
// keeps what it reads until it has been compared, and prepares what it writes beforehand, so that
// only the store's work is timed.
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
  uint32_t client = 0;      // The client whose files these are.
  std::string directory;
  uint64_t seed = 0;  // Seed of the files' bytes.

  std::string name(uint64_t index) const;  // A file's name in the directory.
};
nlohmann::json ToJson(const ClientSample& sample);
ClientSample ClientSampleOf(const nlohmann::json& words);  // Throws like nlohmann::json.

// By the client's own monotonic clock.
struct ClientSpan {
  Time told;  // When to begin; later if the message came late.
  Time begin;
  Time end;
  // Between these times: of the machine, and of one direction of its busiest link.
  ProcessorTicks processors;
  std::optional<uint64_t> link_bytes;  // Nothing if its kernel does not report it.
};

// For one thread. Errors name the file and the reason.
class EnvelopeClient {
 public:
  // Creates the files that must exist, for `sample.client`. Their bytes are then on the store, and
  // no pages of them are cached here, as far as the system drops them.
  static Status Prepare(const ClientSample& sample);
  // Does everything that can be done beforehand. `warm`: reads once what will be read.
  Status Ready(const ClientSample& sample, bool warm);
  // Does not begin before `begin`. Precondition: Ready() of the same sample.
  Result<ClientSpan> Go(const ClientSample& sample, Time begin);
  // Compares everything that Go() read.
  Status CheckRead(const ClientSample& sample);
  // Checks for `sample.client`, which has created or written them, that the files are as they must
  // be. Some stores, such as GlusterFS and NFS, show names and sizes late to other hosts: files
  // that are missing or too short are checked again for up to `patience`; wrong bytes are an error
  // at once. Returns an upper limit of the largest delay, counted from the call.
  static Result<Duration> CheckStored(const ClientSample& sample, Duration patience);

 private:
  Status Operate(const ClientSample& sample, uint64_t index);
  std::byte* Slot(const ClientSample& sample, uint64_t index) {
    return bytes_.get() + index * sample.size_bytes;
  }

  std::unique_ptr<std::byte[]> bytes_;  // Bytes of all operations, one after the other.
};

// The steps of a process on a host: "prepare", "ready", "go", "check", "check-stored".
Result<nlohmann::json> DoClientStep(EnvelopeClient& client, const std::string& step,
                                    const nlohmann::json& words);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_ENVELOPE_CLIENT_H_
