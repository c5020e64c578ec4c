// A JSON or YAML text as a tree of plain values that know their lines, so that whoever reads a
// workflow can say where a fault stands. Pure; never throws.
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
  int line = 0;      // Line of its first character, from 1.
  std::string text;  // For a scalar; numbers and truth values as they are written.
  std::vector<Value> items;
  std::vector<Field> fields;  // In the text's order; no key twice.

  bool is_scalar() const { return kind == Kind::kScalar; }
  // The field's value, or null if there is none or this is no map.
  const Value* Find(std::string_view key) const;
};

struct Field {
  std::string key;
  Value value;
};

inline constexpr size_t kDocumentBytesMax = size_t{256} << 20;
inline constexpr int kDocumentDepthMax = 64;
// No more faults than this are reported for one text.
inline constexpr size_t kFaultsMax = 100;

// JSON if the text begins with '{' or '[', else YAML: one document without anchors and aliases.
// InvalidArgument names the line.
Result<Value> ParseDocument(std::string_view text);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_DOCUMENT_H_
