// Random protobuf messages within the limits that the conversions accept, for tests: every field
// that the schema has is filled, also those that a later change adds.
#ifndef MOSA_TESTS_SUPPORT_RANDOM_MESSAGE_H_
#define MOSA_TESTS_SUPPORT_RANDOM_MESSAGE_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

#include "common/base/rng.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "mosa/v1/node.pb.h"
#include "mosa/v1/session.pb.h"
#include "mosa/v1/types.pb.h"

namespace mosa::testing {

inline std::string RandomBytes(Rng& rng, uint64_t bytes_max) {
  std::string bytes(rng.Below(bytes_max + 1), '\0');
  for (char& c : bytes) c = static_cast<char>(rng.Below(256));
  return bytes;
}

// A number of one of several magnitudes.
inline uint64_t RandomNumber(Rng& rng, uint32_t bits) {
  return rng.Next() >> (64 - bits + rng.Below(bits));
}

class MessageFiller {
 public:
  explicit MessageFiller(Rng& rng) : rng_(rng) {}

  void Fill(google::protobuf::Message& message) {
    using google::protobuf::FieldDescriptor;
    const auto& descriptor = *message.GetDescriptor();
    for (int i = 0; i < descriptor.field_count(); ++i) {
      const FieldDescriptor& field = *descriptor.field(i);
      if (field.is_repeated()) {
        for (uint64_t n = rng_.Below(4); n > 0; --n) FillOne(message, field);
      } else if (field.real_containing_oneof() == nullptr &&
                 (!field.has_optional_keyword() || rng_.Chance(500))) {
        FillOne(message, field);
      }
    }
    for (int i = 0; i < descriptor.real_oneof_decl_count(); ++i) {
      const auto& oneof = *descriptor.oneof_decl(i);
      FillOne(
          message,
          *oneof.field(static_cast<int>(rng_.Below(static_cast<uint64_t>(oneof.field_count())))));
    }
    Repair(message);
  }

 private:
  using FieldDescriptor = google::protobuf::FieldDescriptor;

  void FillOne(google::protobuf::Message& message, const FieldDescriptor& field) {
    const google::protobuf::Reflection& reflect = *message.GetReflection();
    const bool many = field.is_repeated();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(many ? *reflect.AddMessage(&message, &field)
                         : *reflect.MutableMessage(&message, &field));
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string value = "x" + RandomBytes(rng_, 40);
        return many ? reflect.AddString(&message, &field, value)
                    : reflect.SetString(&message, &field, value);
      }
      case FieldDescriptor::CPPTYPE_UINT64: {
        const uint64_t value = RandomNumber(rng_, 49);
        return many ? reflect.AddUInt64(&message, &field, value)
                    : reflect.SetUInt64(&message, &field, value);
      }
      case FieldDescriptor::CPPTYPE_UINT32: {
        const auto value =
            static_cast<uint32_t>(RandomNumber(rng_, field.name() == "permissions" ? 12 : 32));
        return many ? reflect.AddUInt32(&message, &field, value)
                    : reflect.SetUInt32(&message, &field, value);
      }
      case FieldDescriptor::CPPTYPE_INT64:
        return reflect.SetInt64(&message, &field, static_cast<int64_t>(rng_.Next()));
      case FieldDescriptor::CPPTYPE_INT32:  // Only status codes.
        return reflect.SetInt32(&message, &field, 1 + static_cast<int32_t>(rng_.Below(16)));
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflect.SetBool(&message, &field, rng_.Chance(500));
      case FieldDescriptor::CPPTYPE_ENUM: {
        const auto count = static_cast<uint64_t>(field.enum_type()->value_count());
        return reflect.SetEnumValue(&message, &field, static_cast<int>(1 + rng_.Below(count - 1)));
      }
      default:
        MOSA_CHECK(false);  // A kind of field that the schema did not have.
    }
  }

  // Fields whose values depend on one another.
  void Repair(google::protobuf::Message& message) {
    if (auto* const layout = dynamic_cast<v1::Layout*>(&message)) {
      layout->set_chunk_bytes(1 + rng_.Below(kFileBytesMax));
      uint64_t begin = 0;
      for (v1::Segment& segment : *layout->mutable_segments()) {
        segment.set_begin_bytes(begin);
        begin += (1 + rng_.Below(1000)) * kSegmentUnit;
      }
    } else if (auto* const relocate = dynamic_cast<v1::RelocateRequest*>(&message)) {
      relocate->set_begin_bytes(rng_.Below(1000) * kSegmentUnit);
      relocate->set_end_bytes(rng_.Chance(300)
                                  ? UINT64_MAX
                                  : relocate->begin_bytes() + rng_.Below(1000) * kSegmentUnit);
    } else if (auto* const segment = dynamic_cast<v1::Segment*>(&message)) {
      segment->set_width(static_cast<uint32_t>(1 + rng_.Below(4)));
      segment->clear_node_ids();
      for (uint64_t n = segment->width() * (1 + rng_.Below(3)); n > 0; --n) {
        segment->add_node_ids(static_cast<uint32_t>(rng_.Next()));
      }
    } else if (auto* const drop = dynamic_cast<v1::DropObjectsOrder*>(&message)) {
      drop->clear_generations();
      uint64_t file = 0;
      for (uint64_t& id : *drop->mutable_file_ids()) {
        id = file += 1 + rng_.Below(1000);
        if (!rng_.Chance(500)) continue;
        v1::DroppedGeneration* const dropped = drop->add_generations();
        dropped->set_file_id(file);
        dropped->set_generation(RandomNumber(rng_, 49));
      }
    } else if (auto* const lock = dynamic_cast<v1::Lock*>(&message)) {
      lock->set_last_bytes(rng_.Chance(300) ? UINT64_MAX : lock->begin_bytes() + rng_.Below(100));
    } else if (auto* const start = dynamic_cast<v1::SessionStart*>(&message)) {
      if (start->client_id() == 0) start->set_client_id(1);
    } else if (message.GetDescriptor()->FindFieldByName("inline_bytes_max") != nullptr) {
      message.GetReflection()->SetUInt64(
          &message, message.GetDescriptor()->FindFieldByName("inline_bytes_max"),
          rng_.Below(kInlineBytesMax + 1));
    }
  }

  Rng& rng_;
};

}  // namespace mosa::testing

#endif  // MOSA_TESTS_SUPPORT_RANDOM_MESSAGE_H_
