// Residence times <-> the wire (common/model/residence.h). FromProto as in messages.h:
// InvalidArgument names the field. Safe from any thread.
#ifndef MOSA_PROTO_CONVERT_RESIDENCE_H_
#define MOSA_PROTO_CONVERT_RESIDENCE_H_

#include <cstddef>
#include <string>

#include "common/base/status.h"
#include "common/model/residence.h"
#include "common/observe/duration_table.h"
#include "common/observe/processor_use.h"
#include "common/observe/request_log.h"
#include "mosa/v1/manager_service.pb.h"
#include "mosa/v1/residence.pb.h"

namespace mosa {

inline constexpr size_t kResidenceRowsMax = 10'000;

// What the table has by now, behind the snapshot's rows; of more than kResidenceRowsMax the rest is
// left out.
void AppendRows(const DurationTable& table, ResidenceSnapshot& snapshot);

// How long the daemon's processor has worked for it, and, if it is known, which machine it is on
// (`machine_id`) and what that one's processors have done.
void AppendProcessorUse(const ProcessorUse& use, ResidenceSnapshot& snapshot);

void ToProto(const ResidenceSnapshot& snapshot, v1::ResidenceSnapshot* out);
Result<ResidenceSnapshot> FromProto(const v1::ResidenceSnapshot& message);

void ToProto(const ResidenceSource& source, v1::GetResidenceRequest* out);
ResidenceSource FromProto(const v1::GetResidenceRequest& message);

// What is asked for beside the source. QueryOf: InvalidArgument of a directory that no daemon would
// take.
void ToProto(const ResidenceQuery& query, v1::GetResidenceRequest* out);
Result<ResidenceQuery> QueryOf(const v1::GetResidenceRequest& message);

// Begins or ends the log of `snapshot`'s daemon, on `host`, as the query orders, and says in the
// snapshot how it is by then. Waits for no disk.
void ObeyQuery(const ResidenceQuery& query, const std::string& host, RequestLog& log,
               ResidenceSnapshot& snapshot);

// The answer to a query; if a snapshot is too long for it, the last rows are left out.
ResidenceReport ReportOf(const ResidenceQuery& query, const ResidenceSnapshot& snapshot);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_RESIDENCE_H_
