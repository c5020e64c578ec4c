// The storage node's stream messages <-> values of the model (common/model/storage.h).
//
// A registration travels as one message without objects and then pages of objects, of which the
// last says so; an order that names many files travels as several. FromProto as in messages.h:
// InvalidArgument names the field. Pure functions, safe from any thread.
#ifndef MOSA_PROTO_CONVERT_NODE_H_
#define MOSA_PROTO_CONVERT_NODE_H_

#include <cstddef>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/model/messages.h"
#include "common/model/residence.h"
#include "common/model/storage.h"
#include "mosa/v1/node.pb.h"

namespace mosa {

inline constexpr size_t kObjectsPerPage = 65'536;
inline constexpr size_t kObjectsPerNodeMax = size_t{1} << 24;
inline constexpr int kNodeMessageBytesMax = 16 << 20;

struct NodeObjectsPage {
  std::vector<FileId> files;
  bool last = false;
  bool operator==(const NodeObjectsPage&) const = default;
};
using NodeMessage =
    std::variant<NodeRegistration, NodeObjectsPage, NodeHeartbeat, CopyReport, ResidenceReport>;
// Failure: the registration is refused.
using ManagerToNode = std::variant<NodeRegistered, NodeOrder, Failure, ResidenceQuery>;

// In the order in which they are to be sent.
std::vector<v1::NodeMessage> ToProto(const NodeRegistration& registration);
std::vector<v1::ManagerToNode> ToProto(const ManagerToNode& message);
void ToProto(const NodeHeartbeat& heartbeat, v1::NodeMessage* out);
void ToProto(const CopyReport& report, v1::NodeMessage* out);
void ToProto(const ResidenceReport& report, v1::NodeMessage* out);

// A NodeRegistration comes back without objects: AppendPage adds them.
Result<NodeMessage> FromProto(const v1::NodeMessage& message);
Result<ManagerToNode> FromProto(const v1::ManagerToNode& message);

// InvalidArgument if the node would have more than kObjectsPerNodeMax.
Status AppendPage(const NodeObjectsPage& page, NodeRegistration& registration);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_NODE_H_
