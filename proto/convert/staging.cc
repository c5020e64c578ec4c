#include "proto/convert/staging.h"

#include "proto/convert/fields.h"

namespace mosa {

void ToProto(const std::vector<StagedFile>& files, v1::MarkStagedRequest* out) {
  for (const StagedFile& file : files) {
    v1::StagedFile* const item = out->add_files();
    item->set_file_id(file.file.value);
    item->set_data_version(file.data_version);
  }
}

Result<std::vector<StagedFile>> FromProto(const v1::MarkStagedRequest& message) {
  FieldChecker check;
  std::vector<StagedFile> files;
  if (!check.Count("files", message.files_size(), kStagedFilesMax)) return check.status();
  for (const v1::StagedFile& item : message.files())
    files.push_back({.file = FileId{item.file_id()}, .data_version = item.data_version()});
  return files;
}

void ToProto(const std::vector<StageOutcome>& outcomes, v1::MarkStagedResponse* out) {
  for (const StageOutcome outcome : outcomes)
    out->add_outcomes(static_cast<v1::StageOutcome>(outcome));
}

Result<std::vector<StageOutcome>> FromProto(const v1::MarkStagedResponse& message) {
  FieldChecker check;
  std::vector<StageOutcome> outcomes;
  if (!check.Count("outcomes", message.outcomes_size(), kStagedFilesMax)) return check.status();
  for (const int outcome : message.outcomes())
    outcomes.push_back(check.Enum("outcomes", outcome, StageOutcome::kStaged, StageOutcome::kBusy));
  if (!check.ok()) return check.status();
  return outcomes;
}

void ToProto(const UnstagedFiles& files, v1::ListUnstagedResponse* out) {
  out->set_files(files.files);
  out->set_bytes(files.bytes);
  out->set_kept_files(files.kept_files);
  out->set_all_files(files.all_files);
  out->set_all_bytes(files.all_bytes);
  for (const UnstagedFile& file : files.first) {
    v1::UnstagedFile* const item = out->add_first();
    item->set_path(file.path);
    item->set_file_id(file.file.value);
    item->set_size_bytes(file.size_bytes);
  }
}

Result<UnstagedFiles> FromProto(const v1::ListUnstagedResponse& message) {
  FieldChecker check;
  UnstagedFiles files{.files = message.files(),
                      .bytes = message.bytes(),
                      .first = {},
                      .kept_files = message.kept_files(),
                      .all_files = message.all_files(),
                      .all_bytes = message.all_bytes()};
  if (!check.Count("first", message.first_size(), kStagedFilesMax)) return check.status();
  for (const v1::UnstagedFile& item : message.first())
    files.first.push_back({.path = check.Bytes("first.path", item.path(), kLongPathBytesMax),
                           .file = FileId{item.file_id()},
                           .size_bytes = item.size_bytes()});
  if (!check.ok()) return check.status();
  return files;
}

}  // namespace mosa
