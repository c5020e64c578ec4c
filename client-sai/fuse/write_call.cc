#include "client-sai/fuse/write_call.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "common/base/unique_fd.h"
#include "fmt/format.h"

namespace mosa::sai {
namespace {

// The number of the call and its first three arguments, as the kernel prints them.
struct Call {
  int64_t number = -1;
  std::array<uint64_t, 3> arguments{};
};

Call Parse(std::string_view text) {
  Call call;
  const char* const end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, call.number);
  if (error != std::errc()) return {};
  for (uint64_t& argument : call.arguments) {
    if (!std::string_view(at, end).starts_with(" 0x")) return {};
    const auto parsed = std::from_chars(at + 3, end, argument, 16);
    if (parsed.ec != std::errc()) return {};
    at = parsed.ptr;
  }
  return call;
}

// Sums the lengths of an iovec array in the program's memory.
uint64_t BytesOfVector(int32_t pid, uint64_t address, uint64_t count) {
  if (count == 0 || count > IOV_MAX) return 0;
  std::vector<iovec> parts(count);
  const iovec here{parts.data(), count * sizeof(iovec)};
  const iovec there{reinterpret_cast<void*>(address), count * sizeof(iovec)};
  const ssize_t bytes = process_vm_readv(pid, &here, 1, &there, 1, 0);
  if (bytes != static_cast<ssize_t>(count * sizeof(iovec))) return 0;
  uint64_t total = 0;
  for (const iovec& part : parts) total += part.iov_len;
  return total;
}

}  // namespace

uint64_t BytesOfWriteCall(int32_t pid, std::string_view text) {
  const Call call = Parse(text);
  switch (call.number) {
    case SYS_write:
    case SYS_pwrite64:
      return call.arguments[2];
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
      return BytesOfVector(pid, call.arguments[1], call.arguments[2]);
    default:
      return 0;
  }
}

uint64_t BytesOfWriteCall(int32_t pid) {
  if (pid <= 0) return 0;
  const UniqueFd file(open(fmt::format("/proc/{}/syscall", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> text{};
  const ssize_t bytes = file.get() < 0 ? 0 : read(file.get(), text.data(), text.size());
  if (bytes <= 0) return 0;
  return BytesOfWriteCall(pid, {text.data(), static_cast<size_t>(bytes)});
}

}  // namespace mosa::sai
