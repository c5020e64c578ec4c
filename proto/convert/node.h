// The storage node's stream messages <-> values of the model (common/model/storage.h).
//
// A registration travels as one message without objects, pages of what is put aside (if anything
// is), and then pages of objects; of either the last page says so. An order that names many files
// travels as several. FromProto as in messages.h:
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
// Objects that were put aside: in a page, of a node; ranges with data of one, and as how many runs
// they are described. A page stays below the largest message.
inline constexpr size_t kAsidePerPage = 64;
inline constexpr size_t kAsidePerNodeMax = size_t{1} << 20;
inline constexpr uint64_t kDataRangesMax = uint64_t{1} << 20;
inline constexpr size_t kDataRunsMax = 4096;

struct NodeObjectsPage {
  std::vector<FileId> files;
  std::vector<HeldSize> sizes;
  bool last = false;
  bool operator==(const NodeObjectsPage&) const = default;
};
struct NodeAsidePage {
  std::vector<AsideObject> objects;
  bool last = false;
  bool operator==(const NodeAsidePage&) const = default;
};
using NodeMessage = std::variant<NodeRegistration, NodeObjectsPage, NodeHeartbeat, CopyReport,
                                 ResidenceReport, NodeAsidePage>;
// Failure: the registration is refused.
using ManagerToNode = std::variant<NodeRegistered, NodeOrder, Failure, ResidenceQuery>;

// In the order in which they are to be sent.
std::vector<v1::NodeMessage> ToProto(const NodeRegistration& registration);
std::vector<v1::ManagerToNode> ToProto(const ManagerToNode& message);
void ToProto(const NodeHeartbeat& heartbeat, v1::NodeMessage* out);
void ToProto(const CopyReport& report, v1::NodeMessage* out);
void ToProto(const ResidenceReport& report, v1::NodeMessage* out);
std::vector<v1::NodeMessage> ToProto(const NodeAside& aside);

// A NodeRegistration comes back without objects and what is put aside: AppendPage adds them.
Result<NodeMessage> FromProto(const v1::NodeMessage& message);
Result<ManagerToNode> FromProto(const v1::ManagerToNode& message);

// InvalidArgument if the node would have more than kObjectsPerNodeMax.
Status AppendPage(const NodeObjectsPage& page, NodeRegistration& registration);
// InvalidArgument if there would be more than kAsidePerNodeMax.
Status AppendPage(NodeAsidePage page, std::vector<AsideObject>& objects);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_NODE_H_
