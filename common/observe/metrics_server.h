// MetricsServer: serves GET /metrics over HTTP to monitoring systems, without authentication. It
// runs one thread (libmicrohttpd's), and generates the page for each request.
//
// Limits: 16 connections, 8 per address, 16 KiB of memory for the headers of each, and some seconds
// of silence. Excess connections are closed. The total time of a connection is not limited: a
// client that sends a byte now and then keeps it, and two such addresses lock out all others.
#ifndef MOSA_COMMON_OBSERVE_METRICS_SERVER_H_
#define MOSA_COMMON_OBSERVE_METRICS_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"

namespace mosa {

struct MetricsServerOptions {
  std::string listen;  // HOST:PORT; port 0: any free port.
  unsigned silence_seconds_max = 5;
};

class MetricsServer {
 public:
  // Called on the server's thread.
  using Page = std::function<std::string()>;

  // InvalidArgument if the address is malformed, another error if it cannot be used.
  static Result<std::unique_ptr<MetricsServer>> Start(const MetricsServerOptions& options,
                                                      Page page);
  // Closes all connections; the page function is not called any more.
  ~MetricsServer();

  // host:port with the actual port.
  const std::string& address() const;

 private:
  struct Parts;
  explicit MetricsServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

// Starts the server of a daemon's --metrics. Returns null if `listen` is empty.
Result<std::unique_ptr<MetricsServer>> ServeMetrics(const std::string& listen,
                                                    MetricsServer::Page page);

}  // namespace mosa

#endif  // MOSA_COMMON_OBSERVE_METRICS_SERVER_H_
