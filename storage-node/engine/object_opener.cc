#include "storage-node/engine/object_opener.h"

#include <fmt/format.h>

#include <utility>

namespace mosa::node {

Result<OpenedObject> ObjectOpener::Open(FileId file, OpenMode mode, const Changer* changer) {
  const bool make = mode == OpenMode::kCreate;
  while (true) {
    OpenedObject opened;
    opened.object = make ? table_.FindOrAdd(file, changer) : table_.Find(file);
    if (opened.object == nullptr && make) {
      MOSA_RETURN_IF_ERROR(table_.CheckRefusals(file, *changer));
      continue;
    }
    if (opened.object == nullptr) return opened;
    if (changer != nullptr) verifier_.VerifyAll(opened.object, {});
    opened.lock = std::unique_lock(opened.object->mutex);
    opened.object->mutex.AssertHeld();
    if (opened.object->dropped) continue;  // It is being dropped, and has not left the table yet.
    Result<UniqueFd> fd = store_.Open(file, mode);
    if (fd.ok()) {
      if (changer != nullptr)
        MOSA_RETURN_IF_ERROR(BeginChange(*opened.object, fd->get(), *changer));
      opened.fd = *std::move(fd);
      return opened;
    }
    // An object that could not be created leaves no entry.
    if (opened.object->allocated_bytes == 0 && opened.object->size_bytes == 0 &&
        store_.Open(file, OpenMode::kRead).status().code() == StatusCode::kNotFound) {
      ledger_.Remove(*opened.object);
    }
    return std::move(fd).status();
  }
}

Status ObjectOpener::BeginChange(Object& object, int fd, const Changer& changer) {
  MOSA_RETURN_IF_ERROR(table_.Admits(object, changer));
  if (!changer.is_order) records_.SetGeneration(object, changer.generation);
  // A partial write relies on the rest of its block, so all blocks are verified first.
  verifier_.VerifyRest(object, fd);
  ++object.changes_begun;
  return records_.Forget(object);
}

Status AbsentError(FileId file) {
  return NotFoundError(fmt::format("there is no object of file {}", file.value));
}

Status Named(const Status& status, FileId file) {
  if (status.ok()) return status;
  return Status(status.code(), fmt::format("file {}: {}", file.value, MessageOf(status)));
}

}  // namespace mosa::node
