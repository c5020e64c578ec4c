// Envelopes as `mosa envelope run` writes them: JSON with stable names.
//
//   {"mosa_envelope": 1, ...
//    "cells": [{"system": "nfs", "operation": "1-to-1 read", "size_bytes": 1024, "clients": 4,
//               "operations_per_second": {"median": 812.3, "low": 790.1, "high": 833.0}, ...}]}
//
// An envelope that was measured by other means may be written by hand: anything else in it is not
// read. Pure.
#ifndef MOSA_PREDICTOR_ENVELOPE_ENVELOPE_JSON_H_
#define MOSA_PREDICTOR_ENVELOPE_ENVELOPE_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "predictor/envelope/envelope.h"

namespace mosa::predict {

inline constexpr int kEnvelopeVersion = 1;

// In the order in which the text names their systems. InvalidArgument says what is wrong with it;
// an envelope without cells is none.
Result<std::vector<Envelope>> ReadEnvelopes(std::string_view text);

// Operation, size and clients of one of the "cells". InvalidArgument if there can be none such;
// throws as nlohmann::json does where one is left out.
Result<EnvelopeCell> EnvelopeCellOf(const nlohmann::json& object);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ENVELOPE_ENVELOPE_JSON_H_
