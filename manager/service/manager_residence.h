// ManagerResidence: what the manager measures of its requests (common/model/residence.h).
//
// Each envelope has two rows: its residence from arrival to departure of the answer, which includes
// recalls that it waits for; and "NAME.core", the decision and the sealing of what it grants. "log"
// is each write to the database, shared by all envelopes of a round of the loop. Time in gRPC's
// queues before the loop is visible only to mounts, as what their own rows have in excess of these.
// Calls of users and schedulers are not counted.
//
// Thread-safe.
#ifndef MOSA_MANAGER_SERVICE_MANAGER_RESIDENCE_H_
#define MOSA_MANAGER_SERVICE_MANAGER_RESIDENCE_H_

#include "common/base/clock.h"
#include "common/model/request_kinds.h"
#include "common/model/residence.h"
#include "common/observe/duration_table.h"

namespace mosa::manager {

struct ManagerResidence {
  // The classes of `loop`.
  static constexpr DurationTable::ClassId kLog{0};
  static constexpr DurationTable::ClassId kHeartbeat{1};
  static constexpr DurationTable::ClassId kCopyReport{2};

  const Time started = SystemClock().Now();
  RequestLog log;
  DurationTable requests{EnvelopeKindNames(""), 0, &log};
  DurationTable decisions{EnvelopeKindNames("", ".core"), 0, &log};
  DurationTable loop{{"log", "heartbeat.core", "copy_report.core"}, 0, &log};
};

ResidenceSnapshot SnapshotOf(const ManagerResidence& residence);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_MANAGER_RESIDENCE_H_
