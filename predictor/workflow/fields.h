// Taking typed fields out of a parsed text; what is wrong becomes a sentence with its line.
#ifndef MOSA_PREDICTOR_WORKFLOW_FIELDS_H_
#define MOSA_PREDICTOR_WORKFLOW_FIELDS_H_

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/time.h"
#include "predictor/workflow/document.h"

namespace mosa::predict {

// One per text; `faults` receives the sentences.
class Fields {
 public:
  explicit Fields(std::vector<std::string>& faults) : faults_(faults) {}

  void Fault(int line, const std::string& what);

  // `of` names the owner for the sentence: "the task". Absent fields are empty answers.
  std::string Text(const Value& map, std::string_view key, std::string_view of);
  std::vector<std::string> Texts(const Value& map, std::string_view key, std::string_view of);
  // Sizes as "10M" or bytes.
  std::optional<uint64_t> Bytes(const Value& map, std::string_view key, std::string_view of);
  std::optional<Duration> Seconds(const Value& map, std::string_view key, std::string_view of);
  // The items of a list of maps; whatever is none is a fault and left out.
  std::vector<const Value*> Maps(const Value& map, std::string_view key, std::string_view of);

  // A fault for each key that is not among those allowed.
  void AllowOnly(const Value& map, std::initializer_list<std::string_view> keys,
                 std::string_view of);

 private:
  std::vector<std::string>& faults_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_FIELDS_H_
