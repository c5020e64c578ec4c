// MetricsServer: answers GET /metrics over HTTP with a page that is made for each request, on one
// thread of its own (libmicrohttpd's). For a monitoring system; there is no authentication.
//
// Bounded: 16 connections at once, 8 of one address, 16 KiB of memory for each one's headers, and
// some seconds without a byte. What is more is closed. A connection's whole time has no bound: who
// sends a byte now and then keeps it, and two such addresses keep all others out.
#ifndef MOSA_COMMON_OBSERVE_METRICS_SERVER_H_
#define MOSA_COMMON_OBSERVE_METRICS_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"

namespace mosa {

struct MetricsServerOptions {
  std::string listen;  // HOST:PORT; port 0: any that is free.
  unsigned silence_seconds_max = 5;
};

class MetricsServer {
 public:
  // Called on the server's thread.
  using Page = std::function<std::string()>;

  // InvalidArgument if the address is none, another error if it cannot be had.
  static Result<std::unique_ptr<MetricsServer>> Start(const MetricsServerOptions& options,
                                                      Page page);
  // Ends all connections; the page is not asked for any more.
  ~MetricsServer();

  // host:port with the real port.
  const std::string& address() const;

 private:
  struct Parts;
  explicit MetricsServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

// What a daemon serves at its --metrics: null if `listen` is empty.
Result<std::unique_ptr<MetricsServer>> ServeMetrics(const std::string& listen,
                                                    MetricsServer::Page page);

}  // namespace mosa

#endif  // MOSA_COMMON_OBSERVE_METRICS_SERVER_H_
