#include "client-sai/wrap/acting.h"

#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "common/base/check.h"

namespace mosa::sai {
namespace {

constexpr uint64_t kKeepingBits = uint64_t{1} << CAP_FSETID;

// Of this thread. glibc has no name for the two calls.
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

}  // namespace

ActingFor::ActingFor(uid_t uid, gid_t gid) : acts_(geteuid() == 0 && (uid != 0 || gid != 0)) {
  if (!acts_) return;
  Capabilities capabilities = Started();
  setfsgid(gid);
  setfsuid(uid);  // Takes the capabilities of files away, too.
  capabilities.SetEffective(capabilities.effective() & ~(uid != 0 ? kKeepingBits : 0));
}

ActingFor::~ActingFor() {
  if (!acts_) return;
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

}  // namespace mosa::sai
