// What the conversions of this folder share: checked reading of single fields, and the values that
// occur in several conversations. Included only inside proto/convert.
//
// Write(value, out) fills a fresh message. Read(message, checker) gives the value; what is out of
// bounds is noted in the checker, and the value that comes back is then not to be used.
#ifndef MOSA_PROTO_CONVERT_FIELDS_H_
#define MOSA_PROTO_CONVERT_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/model/attributes.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "common/model/messages.h"
#include "common/model/residence.h"
#include "common/model/session.h"
#include "common/model/storage.h"
#include "mosa/v1/types.pb.h"

namespace mosa {

namespace wire = ::mosa::v1;

inline constexpr size_t kPathBytesMax = 4096;
inline constexpr size_t kLongPathBytesMax = size_t{1}
                                            << 20;  // Deeper than what a system call takes.
inline constexpr size_t kTextBytesMax = 64 * 1024;
inline constexpr size_t kXattrValueBytesMax = 64 * 1024;
inline constexpr size_t kOpaqueBytesMax = 1024;  // Capabilities and keys.
inline constexpr size_t kNodesMax = 4096;
inline constexpr size_t kSegmentsMax = 65'536;
inline constexpr size_t kListMax = size_t{1} << 20;  // Ids, opens, locks, items of one message.
inline constexpr uint64_t kBytesMax = INT64_MAX;

// Remembers the first field that was out of bounds, by its name on the wire. One message, one
// thread.
class FieldChecker {
 public:
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

  // `value`, or an empty string if it is longer than `bytes_max`.
  std::string Bytes(std::string_view field, const std::string& value, size_t bytes_max,
                    ErrorReason reason = ErrorReason::kInvalid);
  std::string Name(std::string_view field, const std::string& value) {
    return Bytes(field, value, kNameBytesMax, ErrorReason::kNameTooLong);
  }
  uint64_t Number(std::string_view field, uint64_t value, uint64_t value_max = kBytesMax);
  uint32_t Permissions(std::string_view field, uint32_t value) {
    return static_cast<uint32_t>(Number(field, value, 07777));
  }
  // False, and noted, if there are more than `count_max`.
  bool Count(std::string_view field, int count, size_t count_max);
  // False, and noted, if a message that must be there is not.
  bool Present(std::string_view field, bool present);
  // An enum of the model whose values are `first` to `last`, as on the wire.
  template <typename E>
  E Enum(std::string_view field, int value, E first, E last) {
    if (value < static_cast<int>(first) || value > static_cast<int>(last)) {
      Unknown(field, value);
      return first;
    }
    return static_cast<E>(value);
  }
  // Notes that `field` has a value that this version does not know.
  void Unknown(std::string_view field, int value);
  void Wrong(std::string_view field, std::string_view what);

 private:
  void Note(std::string text, ErrorReason reason);

  Status status_;
};

void Write(const Attributes& value, wire::Attributes* out);
void Write(const Entry& value, wire::Entry* out);
void Write(const Segment& value, wire::Segment* out);
void Write(const Layout& value, wire::Layout* out);
void Write(const DataAccess& value, wire::DataAccess* out);
void Write(const Failure& value, wire::Failure* out);
void Write(const NodeAddress& value, wire::NodeAddress* out);
void Write(const Lock& value, wire::Lock* out);
void Write(const SessionStart& value, wire::SessionStart* out);
void Write(const NodeHeartbeat& value, wire::NodeHeartbeat* out);
void Write(const ResidenceQuery& value, wire::ResidenceQuery* out);
void Write(const ResidenceReport& value, wire::ResidenceReport* out);

Attributes Read(const wire::Attributes& in, FieldChecker& check);
Entry Read(const wire::Entry& in, FieldChecker& check);
Segment Read(const wire::Segment& in, FieldChecker& check);
Layout Read(const wire::Layout& in, FieldChecker& check);
DataAccess Read(const wire::DataAccess& in, FieldChecker& check);
Failure Read(const wire::Failure& in, FieldChecker& check);
NodeAddress Read(const wire::NodeAddress& in, FieldChecker& check);
Lock Read(const wire::Lock& in, FieldChecker& check);
HeldOpen Read(const wire::HeldOpen& in, FieldChecker& check);
HeldLock Read(const wire::HeldLock& in, FieldChecker& check);
HeldGrant Read(const wire::HeldGrant& in, FieldChecker& check);
SessionStart Read(const wire::SessionStart& in, FieldChecker& check);
NodeHeartbeat Read(const wire::NodeHeartbeat& in, FieldChecker& check);
ResidenceQuery Read(const wire::ResidenceQuery& in, FieldChecker& check);
RequestLogOrder OrderOf(wire::RequestLogOrder order);
wire::RequestLogOrder ToProto(RequestLogOrder order);
ResidenceReport Read(const wire::ResidenceReport& in, FieldChecker& check);

// A list of numbers as strong ids, and back.
template <typename Id, typename Repeated>
std::vector<Id> ReadIds(std::string_view field, const Repeated& in, size_t count_max,
                        FieldChecker& check) {
  std::vector<Id> ids;
  if (!check.Count(field, in.size(), count_max)) return ids;
  ids.reserve(static_cast<size_t>(in.size()));
  for (const auto value : in) ids.push_back(Id{value});
  return ids;
}
template <typename Id, typename Repeated>
void WriteIds(const std::vector<Id>& ids, Repeated* out) {
  out->Reserve(static_cast<int>(ids.size()));
  for (const Id id : ids) out->Add(id.value);
}

// A list of messages as values, and back.
template <typename Value, typename Repeated>
std::vector<Value> ReadList(std::string_view field, const Repeated& in, size_t count_max,
                            FieldChecker& check) {
  std::vector<Value> values;
  if (!check.Count(field, in.size(), count_max)) return values;
  values.reserve(static_cast<size_t>(in.size()));
  for (const auto& item : in) {
    values.push_back(Read(item, check));
    if (!check.ok()) return {};
  }
  return values;
}
template <typename Value, typename Repeated>
void WriteList(const std::vector<Value>& values, Repeated* out) {
  out->Reserve(static_cast<int>(values.size()));
  for (const Value& value : values) Write(value, out->Add());
}

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_FIELDS_H_
