#include "proto/convert/adoption.h"

#include "proto/convert/fields.h"

namespace mosa {
namespace {

AsideFile ReadFile(const v1::AsideFile& in, FieldChecker& check) {
  AsideFile file{.file = FileId{in.file_id()}, .parts = {}};
  if (!check.Count("files.parts", in.parts_size(), kNodesMax)) return file;
  for (const v1::AsideFile::Part& part : in.parts())
    file.parts.push_back(
        {.node_name = check.Bytes("files.parts.node_name", part.node_name(), kPathBytesMax),
         .size_bytes = check.Number("files.parts.size_bytes", part.size_bytes()),
         .allocated_bytes = check.Number("files.parts.allocated_bytes", part.allocated_bytes()),
         .modified = {part.modify_time_ns()}});
  return file;
}

}  // namespace

void ToProto(const std::vector<AsideFile>& files, v1::ListAsideResponse* out) {
  for (const AsideFile& file : files) {
    v1::AsideFile* const item = out->add_files();
    item->set_file_id(file.file.value);
    for (const AsidePart& part : file.parts) {
      v1::AsideFile::Part* const out_part = item->add_parts();
      out_part->set_node_name(part.node_name);
      out_part->set_size_bytes(part.size_bytes);
      out_part->set_allocated_bytes(part.allocated_bytes);
      out_part->set_modify_time_ns(part.modified.ns);
    }
  }
}

Result<std::vector<AsideFile>> FromProto(const v1::ListAsideResponse& message) {
  FieldChecker check;
  std::vector<AsideFile> files;
  if (!check.Count("files", message.files_size(), kAdoptedFilesMax)) return check.status();
  for (const v1::AsideFile& item : message.files()) files.push_back(ReadFile(item, check));
  if (!check.ok()) return check.status();
  return files;
}

Result<std::vector<FileId>> FromProto(const v1::AdoptFilesRequest& message) {
  FieldChecker check;
  std::vector<FileId> files =
      ReadIds<FileId>("file_ids", message.file_ids(), kAdoptedFilesMax, check);
  if (!check.ok()) return check.status();
  return files;
}

void ToProto(const std::vector<AdoptOutcome>& outcomes, v1::AdoptFilesResponse* out) {
  for (const AdoptOutcome& outcome : outcomes) {
    v1::AdoptFilesResponse::Outcome* const item = out->add_outcomes();
    item->set_path(outcome.path);
    item->set_refusal(outcome.refusal);
  }
}

Result<std::vector<AdoptOutcome>> FromProto(const v1::AdoptFilesResponse& message) {
  FieldChecker check;
  std::vector<AdoptOutcome> outcomes;
  if (!check.Count("outcomes", message.outcomes_size(), kAdoptedFilesMax)) return check.status();
  for (const v1::AdoptFilesResponse::Outcome& item : message.outcomes())
    outcomes.push_back({.path = check.Bytes("outcomes.path", item.path(), kLongPathBytesMax),
                        .refusal = check.Bytes("outcomes.refusal", item.refusal(), kTextBytesMax)});
  if (!check.ok()) return check.status();
  return outcomes;
}

}  // namespace mosa
