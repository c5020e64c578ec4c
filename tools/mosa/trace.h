// The verbs of `mosa trace`.
#ifndef MOSA_TOOLS_MOSA_TRACE_H_
#define MOSA_TOOLS_MOSA_TRACE_H_

#include "tools/mosa/command.h"

namespace mosa::cli {

void AddTraceStart(CLI::App& noun, CommandLine& line);
void AddTraceStop(CLI::App& noun, CommandLine& line);
void AddTraceRun(CLI::App& noun, CommandLine& line);
void AddTraceShow(CLI::App& noun, CommandLine& line);
void AddTraceWorkload(CLI::App& noun, CommandLine& line);
void AddTraceWrap(CLI::App& noun, CommandLine& line);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_TRACE_H_
