// Extracts typed fields from a parsed text. Each fault becomes a sentence with its line.
#ifndef MOSA_PREDICTOR_WORKFLOW_FIELDS_H_
#define MOSA_PREDICTOR_WORKFLOW_FIELDS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/time.h"
#include "predictor/workflow/document.h"

namespace mosa::predict {

// One object per text; `faults` receives the sentences.
class Fields {
 public:
  explicit Fields(std::vector<std::string>& faults) : faults_(faults) {}

  void Fault(int line, const std::string& what);

  // `of` names the owner in the sentence, such as "the task". An absent field gives an empty
  // result.
  std::string Text(const Value& map, std::string_view key, std::string_view of);
  std::vector<std::string> Texts(const Value& map, std::string_view key, std::string_view of);
  // A size: "10M", or a number of bytes.
  std::optional<uint64_t> Bytes(const Value& map, std::string_view key, std::string_view of);
  // A whole number from 1 to `most`.
  std::optional<uint32_t> Count(const Value& map, std::string_view key, std::string_view of,
                                uint32_t most);
  std::optional<Duration> Seconds(const Value& map, std::string_view key, std::string_view of);
  // The items of a list of maps; any other item is a fault and left out.
  std::vector<const Value*> Maps(const Value& map, std::string_view key, std::string_view of);

  // Reports a fault for each key that is not in `keys`.
  void AllowOnly(const Value& map, const std::vector<std::string_view>& keys, std::string_view of);

 private:
  std::vector<std::string>& faults_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_FIELDS_H_
