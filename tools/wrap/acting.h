// Whose the calls of a wrapper's thread are. A wrapper that root runs serves everybody: what a
// program makes is to be that program's user's. One that another user runs serves him alone, and
// nothing here does anything.
#ifndef MOSA_TOOLS_WRAP_ACTING_H_
#define MOSA_TOOLS_WRAP_ACTING_H_

#include <sys/types.h>

namespace mosa::wrap {

// While there is one, this thread makes files for that user and group, who is also in the groups of
// the thread `pid` and in none of root's, with no set-user-id and set-group-id bits that he may not
// give. What it may do otherwise stays as it was: the kernel has
// asked already whether the caller may. At most one of this and the next class per thread.
class ActingFor {
 public:
  struct Caller {
    uid_t uid = 0;
    gid_t gid = 0;
    pid_t pid = 0;  // 0, or one that is gone: in no other groups.
  };
  explicit ActingFor(const Caller& caller);
  ~ActingFor();
  ActingFor(const ActingFor&) = delete;
  ActingFor& operator=(const ActingFor&) = delete;

 private:
  const bool acts_;
};

// While there is one, what this thread writes or cuts loses its set-user-id and set-group-id bits,
// if `killing`, as it would for a program that may not keep them.
class KillingPrivileges {
 public:
  explicit KillingPrivileges(bool killing);
  ~KillingPrivileges();
  KillingPrivileges(const KillingPrivileges&) = delete;
  KillingPrivileges& operator=(const KillingPrivileges&) = delete;

 private:
  const bool acts_;
};

}  // namespace mosa::wrap

#endif  // MOSA_TOOLS_WRAP_ACTING_H_
