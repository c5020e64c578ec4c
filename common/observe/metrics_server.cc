#include "common/observe/metrics_server.h"

#include <fmt/format.h>
#include <microhttpd.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "common/base/errno_status.h"
#include "common/base/socket_address.h"
#include "common/base/unique_fd.h"

namespace mosa {

namespace {

constexpr unsigned kConnectionsMax = 16;
constexpr unsigned kConnectionsOfAddressMax = 8;
constexpr size_t kConnectionBytesMax = size_t{16} << 10;
constexpr int kBacklog = 16;

MHD_Result Reply(MHD_Connection* connection, unsigned status, std::string_view text) {
  MHD_Response* const response = MHD_create_response_from_buffer(
      text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                          "text/plain; version=0.0.4; charset=utf-8");
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  const MHD_Result queued = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return queued;
}

// Called when the headers are complete, and again while a body arrives, which is not awaited.
MHD_Result Answer(void* page, MHD_Connection* connection, const char* url, const char* method,
                  const char*, const char*, size_t*, void**) {
  const std::string_view asked = method;
  if (asked != MHD_HTTP_METHOD_GET && asked != MHD_HTTP_METHOD_HEAD)
    return Reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is supported\n");
  if (std::string_view(url) != "/metrics")
    return Reply(connection, MHD_HTTP_NOT_FOUND, "only /metrics is served\n");
  return Reply(connection, MHD_HTTP_OK, (*static_cast<const MetricsServer::Page*>(page))());
}

// Errors of clients are not logged.
void Ignore(void*, const char*, va_list) {}

}  // namespace

struct MetricsServer::Parts {
  Page page;
  std::string address;
  MHD_Daemon* daemon = nullptr;
};

MetricsServer::MetricsServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

MetricsServer::~MetricsServer() {
  if (parts_->daemon != nullptr) MHD_stop_daemon(parts_->daemon);
}

const std::string& MetricsServer::address() const { return parts_->address; }

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const MetricsServerOptions& options,
                                                            Page page) {
  MOSA_ASSIGN_OR_RETURN(const SocketAddress address, ResolveAddress(options.listen));
  UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.get(), address.get(), address.size()) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot listen on {} for metrics", options.listen));
  }
  auto parts = std::make_unique<Parts>();
  parts->page = std::move(page);
  MOSA_ASSIGN_OR_RETURN(parts->address, LocalAddress(socket.get()));
  parts->daemon = MHD_start_daemon(
      MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ERROR_LOG, 0, nullptr, nullptr,
      &Answer, &parts->page, MHD_OPTION_EXTERNAL_LOGGER, &Ignore, nullptr, MHD_OPTION_LISTEN_SOCKET,
      socket.get(), MHD_OPTION_CONNECTION_LIMIT, kConnectionsMax,
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, kConnectionsOfAddressMax, MHD_OPTION_CONNECTION_TIMEOUT,
      options.silence_seconds_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytesMax,
      MHD_OPTION_END);
  if (parts->daemon == nullptr)
    return UnavailableError(fmt::format("cannot serve metrics at {}", parts->address));
  static_cast<void>(socket.release());  // The daemon closes it.
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(parts)));
}

Result<std::unique_ptr<MetricsServer>> ServeMetrics(const std::string& listen,
                                                    MetricsServer::Page page) {
  if (listen.empty()) return std::unique_ptr<MetricsServer>();
  return MetricsServer::Start({.listen = listen}, std::move(page));
}

}  // namespace mosa
