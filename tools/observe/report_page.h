// The page of a report: one HTML file that needs nothing else. Its text, looks and script are files
// of their own beside this one, which the build puts into the program.
#ifndef MOSA_TOOLS_OBSERVE_REPORT_PAGE_H_
#define MOSA_TOOLS_OBSERVE_REPORT_PAGE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mosa::cli {

// report_page.html, .css and .js.
extern const std::string_view kReportHtml;
extern const std::string_view kReportStyle;
extern const std::string_view kReportScript;

// `data` is what the script draws. Whatever bytes title, verdict and data hold, they are text on
// the page and nothing else.
std::string MakeReportPage(const std::string& title, const std::string& verdict,
                           const nlohmann::json& data);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_REPORT_PAGE_H_
