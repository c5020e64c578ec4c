#include "proto/convert/hints.h"

#include <utility>

#include "proto/convert/fields.h"

namespace mosa {

namespace {

constexpr size_t kHintsMax = 64;  // For one file or rule; more than there are names.
// Chunk ranges of one file, as an extended attribute holds them and a little more.
constexpr size_t kChunkTextBytesMax = 2 * kXattrValueBytesMax;

void Write(const HintValue& value, wire::HintValue* out) {
  out->set_name(value.name);
  out->set_value(value.value);
}
HintValue Read(const wire::HintValue& in, FieldChecker& check) {
  return {.name = check.Name("hint.name", in.name()),
          .value = check.Bytes("hint.value", in.value(), kTextBytesMax)};
}

void Write(const ExplainedHint& value, wire::ExplainedHint* out) {
  out->set_name(value.name);
  out->set_value(value.value);
  out->set_source(static_cast<wire::HintSource>(value.source));
  out->set_origin(value.origin);
  out->set_note(value.note);
}
ExplainedHint Read(const wire::ExplainedHint& in, FieldChecker& check) {
  return {.name = check.Name("hints.name", in.name()),
          .value = check.Bytes("hints.value", in.value(), kTextBytesMax),
          .source = check.Enum("hints.source", in.source(), HintSource::kDefault, HintSource::kOwn),
          .origin = check.Bytes("hints.origin", in.origin(), kLongPathBytesMax),
          .note = check.Bytes("hints.note", in.note(), kTextBytesMax)};
}

void Write(const FileLocation& value, wire::FileLocation* out) {
  if (value.failure) Write(*value.failure, out->mutable_failure());
  for (const std::string& node : value.nodes) out->add_nodes(node);
  out->set_chunks(value.chunks);
  out->set_size_bytes(value.size_bytes);
  out->set_file_id(value.file.value);
  out->set_data_version(value.data_version);
}
FileLocation Read(const wire::FileLocation& in, FieldChecker& check) {
  FileLocation location;
  if (in.has_failure()) location.failure = Read(in.failure(), check);
  if (check.Count("files.nodes", in.nodes_size(), kNodesMax)) {
    for (const std::string& node : in.nodes())
      location.nodes.push_back(check.Bytes("files.nodes", node, kPathBytesMax));
  }
  location.chunks = check.Bytes("files.chunks", in.chunks(), kChunkTextBytesMax);
  location.size_bytes = check.Number("files.size_bytes", in.size_bytes());
  location.file = FileId{in.file_id()};
  location.data_version = in.data_version();
  return location;
}

template <typename Value, typename Repeated>
void WriteAll(const std::vector<Value>& values, Repeated* out) {
  out->Reserve(static_cast<int>(values.size()));
  for (const Value& value : values) Write(value, out->Add());
}

template <typename Value, typename Repeated>
std::vector<Value> ReadAll(std::string_view field, const Repeated& in, size_t count_max,
                           FieldChecker& check) {
  std::vector<Value> values;
  if (!check.Count(field, in.size(), count_max)) return values;
  values.reserve(static_cast<size_t>(in.size()));
  for (const auto& item : in) values.push_back(Read(item, check));
  return values;
}

}  // namespace

void ToProto(const LocationQuery& query, v1::ListLocationsRequest* out) {
  for (const std::string& path : query.paths) out->add_paths(path);
  out->set_chunks(query.chunks);
}

Result<LocationQuery> FromProto(const v1::ListLocationsRequest& message) {
  FieldChecker check;
  LocationQuery query{.paths = {}, .chunks = message.chunks()};
  if (check.Count("paths", message.paths_size(), kLocationPathsMax)) {
    query.paths.reserve(static_cast<size_t>(message.paths_size()));
    for (const std::string& path : message.paths())
      query.paths.push_back(check.Bytes("paths", path, kLongPathBytesMax));
  }
  if (!check.ok()) return check.status();
  return query;
}

void ToProto(const std::vector<FileLocation>& locations, v1::ListLocationsResponse* out) {
  WriteAll(locations, out->mutable_files());
}

Result<std::vector<FileLocation>> FromProto(const v1::ListLocationsResponse& message) {
  FieldChecker check;
  std::vector<FileLocation> locations =
      ReadAll<FileLocation>("files", message.files(), kLocationPathsMax, check);
  if (!check.ok()) return check.status();
  return locations;
}

void ToProto(const HintExplanation& explanation, v1::ExplainHintsResponse* out) {
  out->set_exists(explanation.exists);
  WriteAll(explanation.hints, out->mutable_hints());
}

Result<HintExplanation> FromProto(const v1::ExplainHintsResponse& message) {
  FieldChecker check;
  HintExplanation explanation{
      .exists = message.exists(),
      .hints = ReadAll<ExplainedHint>("hints", message.hints(), kHintsMax, check)};
  if (!check.ok()) return check.status();
  return explanation;
}

void ToProto(const HintRule& rule, v1::HintRule* out) {
  out->set_rule_id(rule.id);
  out->set_glob(rule.glob);
  WriteAll(rule.hints, out->mutable_hints());
  if (rule.owner) out->set_owner_uid(*rule.owner);
}

Result<HintRule> FromProto(const v1::HintRule& message) {
  FieldChecker check;
  HintRule rule{.id = message.rule_id(),
                .glob = check.Bytes("rule.glob", message.glob(), kTextBytesMax),
                .hints = ReadAll<HintValue>("rule.hints", message.hints(), kHintsMax, check)};
  if (message.has_owner_uid()) rule.owner = message.owner_uid();
  if (!check.ok()) return check.status();
  return rule;
}

}  // namespace mosa
