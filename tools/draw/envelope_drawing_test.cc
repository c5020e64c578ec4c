#include "tools/draw/envelope_drawing.h"

#include <gtest/gtest.h>

#include <string>

#include "predictor/envelope/envelope.h"

namespace mosa::cli {
namespace {

TEST(EnvelopeDrawing, DrawsWhatIsThere) {
  predict::Envelope envelope;
  envelope.name = "half";
  envelope.cells[{predict::EnvelopeOperation::kCreate, 0, 2}] = {100, 90, 120, 0.9};
  const std::string page = DrawEnvelopes({envelope});
  EXPECT_NE(page.find("create throughput"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
  EXPECT_EQ(page.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace mosa::cli
