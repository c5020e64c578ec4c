// `mosa envelope`: measures a store's throughput for many small and large files, and finds what
// bounds an application on it (the MTC Envelope paper).
#ifndef MOSA_TOOLS_MOSA_ENVELOPE_H_
#define MOSA_TOOLS_MOSA_ENVELOPE_H_

#include "tools/mosa/command.h"

namespace mosa::cli {

void AddEnvelope(CLI::App& app, CommandLine& line);
// Each adds one verb.
void AddEnvelopeRun(CLI::App& noun, CommandLine& line);
void AddEnvelopeProfile(CLI::App& noun, CommandLine& line);
void AddEnvelopeClassify(CLI::App& noun, CommandLine& line);
void AddEnvelopePlot(CLI::App& noun, CommandLine& line);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_ENVELOPE_H_
