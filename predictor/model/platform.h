// Platform: how long things take on a deployment, as measured on a few of its hosts. Plain values.
//
// Every figure is a *service* time: what one request keeps its server busy for, alone. Waiting is
// what the simulation adds. All rates are of payload, as a program sees it.
#ifndef MOSA_PREDICTOR_MODEL_PLATFORM_H_
#define MOSA_PREDICTOR_MODEL_PLATFORM_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/base/time.h"

namespace mosa::predict {

inline constexpr int kPlatformVersion = 4;
// No single service takes longer, so that sums of them fit: 11 days.
inline constexpr Duration kServiceMax = Seconds(1'000'000);
// The least rate of a link: on a slower one, transfers would take longer than can be counted.
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
  // Standard deviation of the whole between measurements, as a part of it: 0.05 is 5 %.
  double spread = 0;

  // At most kServiceMax; what comes before the first byte, and the rest.
  Duration Of(uint64_t bytes) const;
  Duration Call() const { return Of(0); }
  Duration OfBytes(uint64_t bytes) const { return Of(bytes) - Of(0); }
  bool operator==(const Cost&) const = default;
};

// What one host is.
struct HostPlatform {
  uint32_t cores = 1;
  double speed = 1;  // Speed of its cores, relative to the measured host's.
  uint64_t out_bytes_per_second = 125'000'000;
  uint64_t in_bytes_per_second = 125'000'000;
  uint64_t page_cache_bytes = uint64_t{1} << 30;  // For files of other hosts.
  uint64_t store_bytes = uint64_t{4} << 30;       // The limit of its storage node.
  bool operator==(const HostPlatform&) const = default;
};

// More would change little: the lesser half of the streams is already left with a fifth.
inline constexpr double kUnevennessMax = 1;

struct NetworkPlatform {
  uint64_t latency_ns = 50'000;           // One way, between two hosts.
  uint64_t loopback_latency_ns = 15'000;  // One way, inside a host.
  Cost loopback;                          // For bytes inside a host that cross a socket.
  // The longest that a small message waits behind bulk data: on the link of its own host, behind
  // each stream that leaves there, and
  uint64_t out_queue_ns_max = 10'000'000;
  // before a host at which streams of several others meet (in-cast): there, connections fill what
  // room a switch has.
  uint64_t in_queue_ns_max = 20'000'000;
  // What each direction of a link that was idle for long carries at once, before its rate holds:
  // the depth of the token bucket that limits it; 0: none does.
  uint64_t burst_bytes = 0;
  // How uneven the shares are that streams get: the standard deviation of their logarithms, where
  // they leave one host, and where those of several hosts meet before another; 0: all are even.
  double out_unevenness = 0;
  double in_unevenness = 0;
  double spread = 0;  // Spread of the links' rates; as Cost::spread.
  bool operator==(const NetworkPlatform&) const = default;
};

// One request each; an envelope costs the sum of its requests.
struct ManagerPlatform {
  Cost lookup;
  Cost make;
  Cost open;
  Cost bind;
  Cost commit;  // Bytes: those kept inline.
  Cost grant;
  Cost attribute;  // Reading or setting an extended attribute, or attributes.
  Cost other;
  Cost persist;  // A batch of changes to the durable image; bytes: of keys and values.
  bool operator==(const ManagerPlatform&) const = default;
};

struct ClientPlatform {
  Cost call;               // A FUSE call without data: lookup, open, close, and so on.
  Cost fuse_read;          // A FUSE read of bytes that are there, and
  Cost fuse_write;         // a FUSE write into memory; besides what moves the bytes.
  Cost send;               // Putting bytes on a socket, and
  Cost receive;            // taking them off one.
  Cost passthrough_read;   // The kernel on an object of this host, and
  Cost passthrough_write;  // to fresh pages.
  Cost local_read;         // The SAI on an object of this host, and
  Cost local_write;        // to fresh pages.
  Cost page_cache_read;    // What the kernel has already.
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
  Cost dispatch;  // The runner, for one task; one after the other.
  Cost launch;    // The task's host, to start its program.
  Cost look;      // The runner, for one file that it looks at.
  // Between the end of a task and the runner's notice of it.
  uint64_t notice_ns = 1'000'000;
  bool operator==(const RunnerPlatform&) const = default;
};

// What the simulation gets wrong however well the figures are known: it leaves things out.
struct ModelPlatform {
  // Root mean square of the logarithm of measured by modelled times: 0.05 is 5 %. `mosa identify`
  // derives it from what its figures were fitted to (identify.h).
  double spread = 0;
  bool operator==(const ModelPlatform&) const = default;
};

struct Platform {
  std::string machine;   // For people: what was measured,
  std::string measured;  // when,
  std::string by;        // and by what.
  HostPlatform host;     // Every host, unless a configuration says otherwise.
  // All hosts share so many cores, and have none of their own: an emulated cluster. 0: they do not.
  uint32_t shared_cores = 0;
  NetworkPlatform network;
  ManagerPlatform manager;
  ClientPlatform client;
  NodePlatform node;
  RunnerPlatform runner;
  ModelPlatform model;
  bool operator==(const Platform&) const = default;
};

// One sentence for the first figure that no machine has: negative, not a number, no core.
Status Check(const Platform& platform);

// The platform as it would be if every figure were off by its spread times a draw from the normal
// distribution; `seed` names the draws. Rates and times stay positive.
Platform Perturbed(const Platform& platform, uint64_t seed);
// What times on that drawn platform are off by besides, as the model is: a factor, 1 in the median.
// It is the same for all configurations, so that it changes no comparison of them.
double ModelFactor(const Platform& platform, uint64_t seed);
// What a whole time is off by, of which the model is off by `factor`: the part in which tasks
// compute is given, not modelled. Precondition: 0 <= computing <= time.
double FactorOfWhole(double factor, Duration time, Duration computing);
// Whether draws differ.
bool HasSpread(const Platform& platform);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_PLATFORM_H_
