// fio, the I/O tester, as a program on this host.
#ifndef MOSA_TOOLS_MEASURE_FIO_H_
#define MOSA_TOOLS_MEASURE_FIO_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/capacity/capacity.h"

namespace mosa::cli {

// Runs fio with these arguments to its end, and returns what it prints. Ends it early, with
// Aborted, as soon as `until_readable` has anything to read, and together with this process.
// NotFound: there is no fio; Unavailable: a signal ended it; ResourceExhausted or
// FailedPrecondition: its own message.
Result<std::string> RunFio(const std::vector<std::string>& arguments, int until_readable);

// What all jobs of a run with --output-format=json did after their ramp. FailedPrecondition if the
// text has another form, or a job did nothing.
Result<predict::OperationRates> FioRatesOf(const std::string& printed);

// The steps of a process on a host: "version", or "run" with "arguments".
Result<nlohmann::json> DoFioStep(const std::string& step, const nlohmann::json& words,
                                 int until_readable);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_FIO_H_
