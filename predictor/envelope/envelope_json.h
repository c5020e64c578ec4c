// Envelopes as `mosa envelope run` writes them: JSON with stable names.
//
//   {"mosa_envelope": 1, ...
//    "cells": [{"system": "nfs", "operation": "1-to-1 read", "size_bytes": 1024, "clients": 4,
//               "operations_per_second": {"median": 812.3, "low": 790.1, "high": 833.0}, ...}]}
//
// An envelope measured by other means may be written by hand; unknown fields are ignored. Pure.
#ifndef MOSA_PREDICTOR_ENVELOPE_ENVELOPE_JSON_H_
#define MOSA_PREDICTOR_ENVELOPE_ENVELOPE_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "predictor/envelope/envelope.h"

namespace mosa::predict {

inline constexpr int kEnvelopeVersion = 1;

// Returns envelopes in the order in which the text first names their systems. InvalidArgument says
// what is wrong; an envelope needs at least one cell.
Result<std::vector<Envelope>> ReadEnvelopes(std::string_view text);

// Parses operation, size and clients of one element of "cells". InvalidArgument if no such cell can
// exist. Throws an nlohmann::json exception if a field is missing.
Result<EnvelopeCell> EnvelopeCellOf(const nlohmann::json& object);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ENVELOPE_ENVELOPE_JSON_H_
