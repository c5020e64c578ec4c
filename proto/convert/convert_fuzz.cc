// libFuzzer entry: bytes from a peer, taken as one message of any conversation. Whatever is
// accepted must come back from the wire as the same value. The first byte says which conversation.
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "proto/convert/admin.h"
#include "proto/convert/hints.h"
#include "proto/convert/messages.h"
#include "proto/convert/node.h"
#include "proto/convert/read_cost.h"
#include "proto/convert/residence.h"
#include "proto/convert/session.h"

namespace mosa {
namespace {

template <typename Wire, typename Back>
void Check(const uint8_t* data, size_t size, const Back& back) {
  Wire in;
  if (!in.ParseFromArray(data, static_cast<int>(size))) return;
  const auto value = FromProto(in);
  if (!value.ok()) return;
  const auto again = FromProto(back(*value));
  MOSA_CHECK(again.ok());
  MOSA_CHECK(*again == *value);
}

template <typename Wire, typename Value>
Wire One(const Value& value) {
  Wire out;
  ToProto(value, &out);
  return out;
}

void CheckNodeMessage(const uint8_t* data, size_t size) {
  v1::NodeMessage in;
  if (!in.ParseFromArray(data, static_cast<int>(size))) return;
  Result<NodeMessage> value = FromProto(in);
  if (!value.ok()) return;
  if (const auto* const report = std::get_if<CopyReport>(&*value)) {
    MOSA_CHECK(std::get<CopyReport>(*FromProto(One<v1::NodeMessage>(*report))) == *report);
  } else if (const auto* const heartbeat = std::get_if<NodeHeartbeat>(&*value)) {
    MOSA_CHECK(std::get<NodeHeartbeat>(*FromProto(One<v1::NodeMessage>(*heartbeat))) == *heartbeat);
  } else if (const auto* const registration = std::get_if<NodeRegistration>(&*value)) {
    const auto messages = ToProto(*registration);
    MOSA_CHECK(std::get<NodeRegistration>(*FromProto(messages.at(0))) == *registration);
  } else if (const auto* const residence = std::get_if<ResidenceReport>(&*value)) {
    MOSA_CHECK(std::get<ResidenceReport>(*FromProto(One<v1::NodeMessage>(*residence))) ==
               *residence);
  } else if (auto* const aside = std::get_if<NodeAsidePage>(&*value)) {
    aside->last = true;
    const auto messages = ToProto(NodeAside{aside->objects});
    MOSA_CHECK(std::get<NodeAsidePage>(*FromProto(messages.at(0))) == *aside);
  }
}

}  // namespace
}  // namespace mosa

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mosa;
  if (size == 0) return 0;
  const uint8_t which = data[0] % 13;
  ++data;
  --size;
  switch (which) {
    case 0:
      Check<v1::ClientMessage>(data, size, One<v1::ClientMessage, ClientMessage>);
      break;
    case 1:
      Check<v1::ManagerMessage>(data, size, One<v1::ManagerMessage, ManagerMessage>);
      break;
    case 2:
      CheckNodeMessage(data, size);
      break;
    case 3:
      Check<v1::ManagerToNode>(data, size,
                               [](const ManagerToNode& value) { return ToProto(value).at(0); });
      break;
    case 4:
      Check<v1::GetClusterStatusResponse>(data, size,
                                          One<v1::GetClusterStatusResponse, ClusterStatus>);
      break;
    case 6:
      Check<v1::ListLocationsRequest>(data, size, One<v1::ListLocationsRequest, LocationQuery>);
      break;
    case 7:
      Check<v1::ListLocationsResponse>(data, size,
                                       One<v1::ListLocationsResponse, std::vector<FileLocation>>);
      break;
    case 8:
      Check<v1::ExplainHintsResponse>(data, size, One<v1::ExplainHintsResponse, HintExplanation>);
      break;
    case 9:
      Check<v1::HintRule>(data, size, One<v1::HintRule, HintRule>);
      break;
    case 10:
      Check<v1::PredictReadsRequest>(data, size, One<v1::PredictReadsRequest, ReadCostQuery>);
      break;
    case 11:
      Check<v1::PredictReadsResponse>(data, size, One<v1::PredictReadsResponse, ReadCostAnswer>);
      break;
    case 12:
      Check<v1::ResidenceSnapshot>(data, size, One<v1::ResidenceSnapshot, ResidenceSnapshot>);
      break;
    default:
      Check<v1::FileStatus>(data, size, One<v1::FileStatus, FileStatus>);
  }
  return 0;
}
