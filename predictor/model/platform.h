// Platform: how long operations take on a deployment, as measured on a few of its hosts. Plain
// values.
//
// Every figure is a *service* time: how long one request alone keeps its server busy. The
// simulation adds waiting. All rates are of payload, as a program sees it.
#ifndef MOSA_PREDICTOR_MODEL_PLATFORM_H_
#define MOSA_PREDICTOR_MODEL_PLATFORM_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/base/time.h"

namespace mosa::predict {

inline constexpr int kPlatformVersion = 4;
// No single service takes longer (11 days), so that sums do not overflow.
inline constexpr Duration kServiceMax = Seconds(1'000'000);
// The lowest rate of a link. On a slower one, transfer times would overflow.
inline constexpr uint64_t kLinkBytesPerSecondMin = 10'000;
// Limits for a host's cores.
inline constexpr double kSpeedMin = 0.001;
inline constexpr double kSpeedMax = 1000;
inline constexpr uint32_t kCoresMax = 4096;
inline constexpr double kSpreadMax = 1;

// The processor time of one call: `ns_per_call + bytes * ns_per_byte`.
struct Cost {
  double ns_per_call = 0;
  double ns_per_byte = 0;
  // Standard deviation of the whole between measurements, as a share of it: 0.05 is 5 %.
  double spread = 0;

  // At most kServiceMax. Call() is the part before the first byte, OfBytes() the rest.
  Duration Of(uint64_t bytes) const;
  Duration Call() const { return Of(0); }
  Duration OfBytes(uint64_t bytes) const { return Of(bytes) - Of(0); }
  bool operator==(const Cost&) const = default;
};

// One host.
struct HostPlatform {
  uint32_t cores = 1;
  double speed = 1;  // Speed of its cores, relative to the measured host's.
  uint64_t out_bytes_per_second = 125'000'000;
  uint64_t in_bytes_per_second = 125'000'000;
  uint64_t page_cache_bytes = uint64_t{1} << 30;  // For files of other hosts.
  uint64_t store_bytes = uint64_t{4} << 30;       // The limit of its storage node.
  bool operator==(const HostPlatform&) const = default;
};

// More would change little: the slower half of the streams is already left with a fifth.
inline constexpr double kUnevennessMax = 1;

struct NetworkPlatform {
  uint64_t latency_ns = 50'000;           // One way, between two hosts.
  uint64_t loopback_latency_ns = 15'000;  // One way, inside a host.
  Cost loopback;                          // For bytes that cross a socket inside a host.
  // The longest that a small message waits behind bulk data. `out`: on the link of its own host,
  // behind each stream that leaves there.
  uint64_t out_queue_ns_max = 10'000'000;
  // `in`: before a host at which streams of several others meet (in-cast), where connections fill a
  // switch's buffers.
  uint64_t in_queue_ns_max = 20'000'000;
  // The burst that each direction of a link carries at once after it was idle for long: the depth
  // of its token bucket. 0: no limiter.
  uint64_t burst_bytes = 0;
  // How uneven the shares of streams are: the standard deviation of their logarithms. `out`:
  // streams that leave one host; `in`: streams of several hosts that meet before another. 0: even.
  double out_unevenness = 0;
  double in_unevenness = 0;
  double spread = 0;  // Spread of the links' rates, like Cost::spread.
  bool operator==(const NetworkPlatform&) const = default;
};

// Each is the cost of one request; an envelope costs the sum of its requests.
struct ManagerPlatform {
  Cost lookup;
  Cost make;
  Cost open;
  Cost bind;
  Cost commit;  // Per byte: those kept inline.
  Cost grant;
  Cost attribute;  // Reading or setting attributes or an extended attribute.
  Cost other;
  Cost persist;  // One batch of changes to the durable image; per byte of keys and values.
  bool operator==(const ManagerPlatform&) const = default;
};

struct ClientPlatform {
  Cost call;               // A FUSE call without data: lookup, open, close, and so on.
  Cost fuse_read;          // A FUSE read of bytes in the mount, without moving them.
  Cost fuse_write;         // A FUSE write into memory, without moving the bytes.
  Cost send;               // Putting bytes on a socket.
  Cost receive;            // Taking bytes off a socket.
  Cost passthrough_read;   // The kernel reads an object of this host.
  Cost passthrough_write;  // The kernel writes fresh pages of an object of this host.
  Cost local_read;         // The SAI reads an object of this host.
  Cost local_write;        // The SAI writes fresh pages of one.
  Cost page_cache_read;    // Reading what the kernel has cached.
  bool passthrough = true;
  uint64_t fuse_read_bytes = 1 << 20;  // The kernel's largest request, and a program's.
  uint64_t fuse_write_bytes = 1 << 20;
  // As in sai::FilesystemOptions.
  uint64_t write_behind_bytes_max = uint64_t{64} << 20;
  uint64_t write_behind_file_bytes_max = uint64_t{16} << 20;
  uint64_t read_ahead_bytes_max = uint64_t{24} << 20;
  uint32_t io_threads = 8;
  uint32_t fetch_threads = 16;
  bool operator==(const ClientPlatform&) const = default;
};

struct NodePlatform {
  Cost make;   // An object: once for each file on each node that it is written to.
  Cost read;   // A piece of an object, onto a socket.
  Cost write;  // Off a socket, into an object.
  bool operator==(const NodePlatform&) const = default;
};

struct RunnerPlatform {
  Cost dispatch;  // The runner, for one task; tasks are dispatched one after the other.
  Cost launch;    // The task's host, to start its program.
  Cost look;      // The runner, to look at one file.
  // From a task's end until the runner notices it.
  uint64_t notice_ns = 1'000'000;
  bool operator==(const RunnerPlatform&) const = default;
};

// The error of the simulation itself, which remains however well the figures are known: it leaves
// things out.
struct ModelPlatform {
  // Root mean square of the logarithm of measured over modelled times: 0.05 is 5 %. `mosa identify`
  // derives it from the residuals of its fit (identify.h).
  double spread = 0;
  bool operator==(const ModelPlatform&) const = default;
};

struct Platform {
  std::string machine;   // For people: what was measured,
  std::string measured;  // when,
  std::string by;        // and by what.
  HostPlatform host;     // Every host, unless a configuration says otherwise.
  // All hosts together share this many cores and have none of their own (an emulated cluster). 0:
  // each host has its own.
  uint32_t shared_cores = 0;
  NetworkPlatform network;
  ManagerPlatform manager;
  ClientPlatform client;
  NodePlatform node;
  RunnerPlatform runner;
  ModelPlatform model;
  bool operator==(const Platform&) const = default;
};

// Returns one sentence for the first figure that no machine can have: negative, not a number, no
// core.
Status Check(const Platform& platform);

// The platform with every figure that has a spread multiplied by a random factor, which `draw`
// selects. Draw 0 is the platform as measured. Rates and times stay positive.
Platform Perturbed(const Platform& platform, uint64_t draw);
// The model's error in that draw: a factor on times, with median 1; 1 in draw 0. It is the same for
// all configurations, so that it does not change their comparison.
double ModelFactor(const Platform& platform, uint64_t draw);
// The error factor of a whole time when the model is off by `factor`. Tasks' computing is given,
// not modelled, so that part has no error. Precondition: 0 <= computing <= time.
double FactorOfWhole(double factor, Duration time, Duration computing);
// Whether draws differ at all.
bool HasSpread(const Platform& platform);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_PLATFORM_H_
