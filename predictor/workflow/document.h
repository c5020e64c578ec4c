// Parses JSON or YAML into a tree of plain values that carry line numbers, so that readers can say
// where a fault is. Pure; never throws.
#ifndef MOSA_PREDICTOR_WORKFLOW_DOCUMENT_H_
#define MOSA_PREDICTOR_WORKFLOW_DOCUMENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace mosa::predict {

struct Field;

struct Value {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;      // Line of its first character, counted from 1.
  std::string text;  // For a scalar; numbers and booleans as written.
  std::vector<Value> items;
  std::vector<Field> fields;  // In the text's order; keys are unique.

  bool is_scalar() const { return kind == Kind::kScalar; }
  // Returns the field's value, or null if there is none or this is not a map.
  const Value* Find(std::string_view key) const;
};

struct Field {
  std::string key;
  Value value;
};

inline constexpr size_t kDocumentBytesMax = size_t{256} << 20;
inline constexpr int kDocumentDepthMax = 64;
// At most this many faults are reported for one text.
inline constexpr size_t kFaultsMax = 100;

// Parses JSON if the text begins with '{' or '[', else YAML: one document without anchors or
// aliases. InvalidArgument names the line.
Result<Value> ParseDocument(std::string_view text);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_DOCUMENT_H_
