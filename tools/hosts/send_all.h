// Writing to the socket of another process.
#ifndef MOSA_TOOLS_HOSTS_SEND_ALL_H_
#define MOSA_TOOLS_HOSTS_SEND_ALL_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace mosa::cli {

// Waits until all of it is sent. False if the other side is gone.
inline bool SendAll(int channel, const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t bytes = send(channel, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (bytes < 0 && errno != EINTR) return false;
    sent += static_cast<size_t>(std::max<ssize_t>(0, bytes));
  }
  return true;
}

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_HOSTS_SEND_ALL_H_
