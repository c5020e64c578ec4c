// Envelopes as pictures, after Figures 10 to 19 of the MTC Envelope paper. Pure.
#ifndef MOSA_TOOLS_DRAW_ENVELOPE_DRAWING_H_
#define MOSA_TOOLS_DRAW_ENVELOPE_DRAWING_H_

#include <string>
#include <vector>

#include "predictor/envelope/envelope.h"

namespace mosa::cli {

// One page, as SVG: the eight metrics over clients, each with all stores, by sizes; then for each
// store heat maps of write bandwidth and throughput, including creation, and a Kiviat diagram of
// how the metrics grow with the clients. All scales are logarithmic. Precondition: at least one
// store.
std::string DrawEnvelopes(const std::vector<predict::Envelope>& envelopes);

// The stores of all files on one page, as SVG. InvalidArgument if there are too many.
Result<std::string> DrawEnvelopeFiles(const std::vector<std::string>& paths);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_DRAW_ENVELOPE_DRAWING_H_
