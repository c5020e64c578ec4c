#include "tools/observe/report_page.h"

#include <map>

namespace mosa::cli {
namespace {

using nlohmann::json;

// As JSON, without bytes that are no UTF-8: browsers have one more idea of these than we have.
std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string EscapeHtml(const std::string& text) {
  const std::string valid = json::parse(Dump(json(text))).get<std::string>();
  std::string escaped;
  for (const char byte : valid) {
    switch (byte) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\0':
        break;
      default:
        escaped += byte;
    }
  }
  return escaped;
}

// No end of the element, and no comment, can begin in it.
std::string EscapeScript(const std::string& text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char byte : text) {
    if (byte == '<')
      escaped += "\\u003c";
    else
      escaped += byte;
  }
  return escaped;
}

}  // namespace

std::string MakeReportPage(const std::string& title, const std::string& verdict, const json& data) {
  const std::map<std::string_view, std::string> parts = {{"TITLE", EscapeHtml(title)},
                                                         {"VERDICT", EscapeHtml(verdict)},
                                                         {"DATA", EscapeScript(Dump(data))},
                                                         {"STYLE", std::string(kReportStyle)},
                                                         {"SCRIPT", std::string(kReportScript)}};
  // "{{TITLE}}" stands for its part, once through: what a part holds is not looked at.
  std::string page;
  std::string_view rest = kReportHtml;
  for (size_t at = rest.find("{{"); at != std::string_view::npos; at = rest.find("{{")) {
    const size_t end = rest.find("}}", at);
    page += rest.substr(0, at);
    page += parts.at(rest.substr(at + 2, end - at - 2));
    rest = rest.substr(end + 2);
  }
  page += rest;
  return page;
}

}  // namespace mosa::cli
