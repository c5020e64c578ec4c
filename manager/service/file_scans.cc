#include "manager/service/file_scans.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mosa::manager {

void FileScans::Ask(const FileScanQuestion& question, const std::string& caller, Done done) {
  size_t own = 0;
  for (const Question& asked : questions_)
    own += static_cast<size_t>(
        std::count_if(asked.calls.begin(), asked.calls.end(),
                      [&caller](const Call& call) { return call.caller == caller; }));
  if (calls_ >= kCallsMax || own >= kCallsPerCallerMax)
    return done(
        ResourceExhaustedError(fmt::format("{} queries about all files are already waiting, {} of "
                                           "them yours: try again in a moment",
                                           calls_, own)),
        FileScan(question));
  const auto same = std::find_if(questions_.begin(), questions_.end(), [&](const Question& asked) {
    return !asked.has_begun && asked.scan.question == question;
  });
  Question& asked = same == questions_.end() ? questions_.emplace_back(question) : *same;
  asked.calls.push_back({caller, std::move(done)});
  ++calls_;
}

void FileScans::Continue(const ManagerCore& core) {
  if (questions_.empty()) return;
  Question& first = questions_.front();
  first.has_begun = true;
  if (core.ContinueScan(first.scan, kStepsAtOnce)) End(OkStatus());
}

void FileScans::EndAll() {
  while (!questions_.empty()) End(UnavailableError("the manager is stopping; try again"));
}

void FileScans::End(const Status& status) {
  const Question first = std::move(questions_.front());
  questions_.pop_front();
  calls_ -= first.calls.size();
  for (const Call& call : first.calls) call.done(status, first.scan);
}

}  // namespace mosa::manager
