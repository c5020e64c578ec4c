// fio, the I/O tester, as a program on this host.
#ifndef MOSA_TOOLS_MEASURE_FIO_H_
#define MOSA_TOOLS_MEASURE_FIO_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/capacity/capacity.h"

namespace mosa::cli {

// Runs fio with these arguments to its end, and returns what it prints. It ends early, Aborted, as
// soon as there is anything to read from `until_readable`, and with this process. NotFound: there
// is no fio; Unavailable: a signal ended it; ResourceExhausted or FailedPrecondition: what it says.
Result<std::string> RunFio(const std::vector<std::string>& arguments, int until_readable);

// What all jobs of a run with --output-format=json did, after their ramp. FailedPrecondition if
// that is no such text, or a job did nothing.
Result<predict::OperationRates> FioRatesOf(const std::string& printed);

// What a process on a host is told to do: "version", or "run" with "arguments".
Result<nlohmann::json> DoFioStep(const std::string& step, const nlohmann::json& words,
                                 int until_readable);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_FIO_H_
