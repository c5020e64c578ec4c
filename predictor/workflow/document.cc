#include "predictor/workflow/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace mosa::predict {
namespace {

// Leaves the parser from its callbacks; does not escape this file.
class Refusal : public std::runtime_error {
 public:
  Refusal(int line, const std::string& what)
      : std::runtime_error(fmt::format("line {}: {}", line, what)) {}
};

// Builds the tree from either parser's events.
class DocumentBuilder {
 public:
  void Scalar(std::string text, int line) {
    Value value;
    value.kind = Value::Kind::kScalar;
    value.text = std::move(text);
    value.line = line;
    Add(std::move(value));
  }
  void Null(int line) {
    Value value;
    value.line = line;
    Add(std::move(value));
  }
  void Start(Value::Kind kind, int line) {
    if (open_.size() >= static_cast<size_t>(kDocumentDepthMax)) {
      throw Refusal(line, fmt::format("nested more than {} levels deep", kDocumentDepthMax));
    }
    open_.emplace_back();
    open_.back().value.kind = kind;
    open_.back().value.line = line;
  }
  void Key(std::string key) {
    open_.back().key = std::move(key);
    open_.back().has_key = true;
  }
  void End() {
    Value value = std::move(open_.back().value);
    open_.pop_back();
    CheckKeys(value);
    Add(std::move(value));
  }
  // Whether the next scalar is a map's key.
  bool WantsKey() const {
    return !open_.empty() && open_.back().value.kind == Value::Kind::kMap && !open_.back().has_key;
  }
  Value Take() { return std::move(root_); }

 private:
  struct Open {
    Value value;
    std::string key;
    bool has_key = false;
  };

  void Add(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().value.kind == Value::Kind::kList) {
      open_.back().value.items.push_back(std::move(value));
    } else {
      open_.back().value.fields.push_back({std::move(open_.back().key), std::move(value)});
      open_.back().has_key = false;
    }
  }

  static void CheckKeys(const Value& map) {
    std::vector<std::pair<std::string_view, int>> keys;
    for (const auto& [key, value] : map.fields) keys.emplace_back(key, value.line);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(
        keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice != keys.end()) {
      throw Refusal(std::next(twice)->second, fmt::format("'{}' occurs twice", twice->first));
    }
  }

  Value root_;
  std::vector<Open> open_;
};

// Counts the lines that the JSON parser has read.
class LineIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineIterator(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  LineIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  LineIterator operator++(int) {
    LineIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  int* line_;
};

// The JSON parser's callbacks; it prescribes their names.
class JsonEvents {
 public:
  using Json = nlohmann::json;
  JsonEvents(DocumentBuilder& builder, const int& line) : builder_(builder), line_(line) {}

  bool null() { return builder_.Null(line_), true; }
  bool boolean(bool value) { return builder_.Scalar(value ? "true" : "false", line_), true; }
  bool number_integer(Json::number_integer_t value) { return Number(fmt::format("{}", value)); }
  bool number_unsigned(Json::number_unsigned_t value) { return Number(fmt::format("{}", value)); }
  bool number_float(Json::number_float_t, const std::string& text) { return Number(text); }
  bool string(std::string& value) { return builder_.Scalar(std::move(value), line_), true; }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return builder_.Start(Value::Kind::kMap, line_), true; }
  bool key(std::string& value) { return builder_.Key(std::move(value)), true; }
  bool end_object() { return builder_.End(), true; }
  bool start_array(size_t) { return builder_.Start(Value::Kind::kList, line_), true; }
  bool end_array() { return builder_.End(), true; }
  bool parse_error(size_t, const std::string& last, const nlohmann::detail::exception&) {
    throw Refusal(line_, fmt::format("not JSON at '{}'", last.substr(0, 80)));
  }

 private:
  bool Number(std::string text) { return builder_.Scalar(std::move(text), line_), true; }

  DocumentBuilder& builder_;
  const int& line_;
};

class YamlEvents final : public YAML::EventHandler {
 public:
  explicit YamlEvents(DocumentBuilder& builder) : builder_(builder) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refusal(mark.line + 1, "aliases are not supported: write out what it stands for");
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    NeedNoKey(mark);
    builder_.Null(mark.line + 1);
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    if (builder_.WantsKey()) {
      builder_.Key(value);
    } else {
      builder_.Scalar(value, mark.line + 1);
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    NeedNoKey(mark);
    builder_.Start(Value::Kind::kList, mark.line + 1);
  }
  void OnSequenceEnd() override { builder_.End(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    NeedNoKey(mark);
    builder_.Start(Value::Kind::kMap, mark.line + 1);
  }
  void OnMapEnd() override { builder_.End(); }

 private:
  void NeedNoKey(const YAML::Mark& mark) const {
    if (builder_.WantsKey()) throw Refusal(mark.line + 1, "a key must be a single word");
  }

  DocumentBuilder& builder_;
};

void ParseJson(std::string_view text, DocumentBuilder& builder) {
  int line = 1;
  JsonEvents events(builder, line);
  nlohmann::json::sax_parse(LineIterator(text.data(), &line),
                            LineIterator(text.data() + text.size(), &line), &events);
}

void ParseYaml(std::string_view text, DocumentBuilder& builder) {
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  YamlEvents events(builder);
  if (!parser.HandleNextDocument(events)) throw Refusal(1, "the text is empty");
  DocumentBuilder rest;
  YamlEvents more(rest);
  if (parser.HandleNextDocument(more)) throw Refusal(1, "more than one document in one text");
}

}  // namespace

const Value* Value::Find(std::string_view key) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key == key; });
  return found == fields.end() ? nullptr : &found->value;
}

Result<Value> ParseDocument(std::string_view text) {
  if (text.size() > kDocumentBytesMax) {
    return InvalidArgumentError(fmt::format(
        "a text of {} bytes is too long: at most {} are allowed", text.size(), kDocumentBytesMax));
  }
  DocumentBuilder builder;
  try {
    const size_t first = text.find_first_not_of(" \t\r\n");
    const bool json = first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
    if (json) {
      ParseJson(text, builder);
    } else {
      ParseYaml(text, builder);
    }
    return builder.Take();
  } catch (const YAML::Exception& error) {
    return InvalidArgumentError(
        fmt::format("line {}: not YAML: {}", error.mark.line + 1, error.msg));
  } catch (const std::exception& error) {
    return InvalidArgumentError(error.what());
  }
}

}  // namespace mosa::predict
