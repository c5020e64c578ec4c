#include "tools/wrap/acting.h"

#include <limits.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/log.h"
#include "fmt/format.h"

namespace mosa::wrap {
namespace {

constexpr uint64_t kKeepingBits = uint64_t{1} << CAP_FSETID;

// This thread's capabilities. glibc has no name for the two calls.
struct Capabilities {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};

  static Capabilities Read() {
    Capabilities read;
    MOSA_CHECK(syscall(SYS_capget, &read.head, read.sets.data()) == 0);
    return read;
  }
  uint64_t effective() const { return sets[0].effective | uint64_t{sets[1].effective} << 32; }
  // Never more than is permitted, so it cannot fail.
  void SetEffective(uint64_t effective) {
    sets[0].effective = static_cast<uint32_t>(effective);
    sets[1].effective = static_cast<uint32_t>(effective >> 32);
    MOSA_CHECK(syscall(SYS_capset, &head, sets.data()) == 0);
  }
};

// As the process was started; all its threads are the same outside of the classes below.
const Capabilities& Started() {
  static const Capabilities started = Capabilities::Read();
  return started;
}

// As Started().
const std::vector<gid_t>& StartedGroups() {
  static const std::vector<gid_t> started = [] {
    std::vector<gid_t> groups(NGROUPS_MAX);
    const int count = getgroups(NGROUPS_MAX, groups.data());
    MOSA_CHECK(count >= 0);
    groups.resize(static_cast<size_t>(count));
    return groups;
  }();
  return started;
}

// For this thread alone: glibc's own call changes all threads. Fails only where a user namespace
// forbids it, and then nobody there has groups.
void SetGroups(const std::vector<gid_t>& groups) {
  if (syscall(SYS_setgroups, groups.size(), groups.data()) == 0) return;
  static std::once_flag told;
  std::call_once(told, [error = errno] {
    LogWarning("cannot take on the groups of callers, so what only a group permits is denied: {}",
               strerrorname_np(error));
  });
}

// The supplementary groups of a thread. None if the thread is gone.
std::vector<gid_t> GroupsOf(pid_t pid) {
  constexpr std::string_view kTitle = "Groups:";
  std::vector<gid_t> groups;
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; pid > 0 && std::getline(status, line);) {
    if (!line.starts_with(kTitle)) continue;
    std::istringstream words(line.substr(kTitle.size()));
    for (gid_t group = 0; words >> group;) groups.push_back(group);
    break;
  }
  return groups;
}

}  // namespace

ActingFor::ActingFor(const Caller& caller)
    : acts_(geteuid() == 0 && (caller.uid != 0 || caller.gid != 0)) {
  if (!acts_) return;
  Capabilities capabilities = Started();
  StartedGroups();  // Before this thread's are others.
  SetGroups(GroupsOf(caller.pid));
  setfsgid(caller.gid);
  setfsuid(caller.uid);  // Takes the capabilities of files away, too.
  capabilities.SetEffective(capabilities.effective() & ~(caller.uid != 0 ? kKeepingBits : 0));
}

ActingFor::~ActingFor() {
  if (!acts_) return;
  SetGroups(StartedGroups());
  setfsuid(0);
  setfsgid(0);
  Capabilities capabilities = Started();
  capabilities.SetEffective(capabilities.effective());
}

KillingPrivileges::KillingPrivileges(bool killing)
    : acts_(killing && (Started().effective() & kKeepingBits) != 0) {
  if (!acts_) return;
  Capabilities capabilities = Started();
  capabilities.SetEffective(capabilities.effective() & ~kKeepingBits);
}

KillingPrivileges::~KillingPrivileges() {
  if (!acts_) return;
  Capabilities capabilities = Started();
  capabilities.SetEffective(capabilities.effective());
}

}  // namespace mosa::wrap
