// Which requests give access to a file's bytes.
#ifndef MOSA_MANAGER_CORE_ACCESS_FILE_H_
#define MOSA_MANAGER_CORE_ACCESS_FILE_H_

#include <variant>

#include "common/model/ids.h"
#include "common/model/messages.h"

namespace mosa::manager {

// Returns the file that a successful reply to `request` gives access to; 0 if none.
inline FileId AccessFileOf(const Request& request) {
  if (const auto* open = std::get_if<OpenRequest>(&request)) return open->file;
  if (const auto* bind = std::get_if<BindRequest>(&request)) return bind->file;
  if (const auto* freeze = std::get_if<FreezeRequest>(&request)) return freeze->file;
  if (const auto* relocate = std::get_if<RelocateRequest>(&request)) return relocate->file;
  if (const auto* make = std::get_if<MakeRequest>(&request)) return make->file;
  if (const auto* cut = std::get_if<SetAttributesRequest>(&request); cut && cut->size_bytes == 0U)
    return cut->file;
  return FileId{};
}

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_ACCESS_FILE_H_
