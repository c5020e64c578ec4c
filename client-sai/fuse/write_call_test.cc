#include "client-sai/fuse/write_call.h"

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <string>

#include "fmt/format.h"

namespace mosa::sai {
namespace {

TEST(WriteCall, TheLengthOfAWriteIsItsThirdArgument) {
  const std::string rest = " 0x0 0x0 0x0 0x7ffd5c 0x7f12ab";
  EXPECT_EQ(BytesOfWriteCall(getpid(), "1 0x3 0x7f00deadbeef 0x400000" + rest), 4u << 20);
  EXPECT_EQ(BytesOfWriteCall(getpid(), "18 0x3 0x7f00deadbeef 0x21" + rest), 33u);
}

TEST(WriteCall, TheLengthOfAVectorIsThatOfItsParts) {
  std::array<char, 10> bytes{};
  const std::array<iovec, 3> parts{{{bytes.data(), 3}, {bytes.data(), 0}, {bytes.data(), 10}}};
  const auto text = [&](uint64_t address, uint64_t count) {
    return fmt::format("20 0x3 {:#x} {:#x} 0x0 0x0 0x0 0x1 0x2", address, count);
  };
  const auto address = reinterpret_cast<uint64_t>(parts.data());
  EXPECT_EQ(BytesOfWriteCall(getpid(), text(address, 3)), 13u);
  EXPECT_EQ(BytesOfWriteCall(getpid(), text(8, 3)), 0u);
  EXPECT_EQ(BytesOfWriteCall(getpid(), text(address, 1 << 20)), 0u);
}

TEST(WriteCall, OfAnythingElseNothingIsKnown) {
  for (const char* text : {"", "running", "-1 0x0 0x0", "0 0x3 0x1 0x400000 0x0", "1", "1 0x3 0x4",
                           "1 3 4 5 6", "x", "1 0x3 0x1 0xffffffffffffffffff 0x0"})
    EXPECT_EQ(BytesOfWriteCall(getpid(), text), 0u) << text;
  EXPECT_EQ(BytesOfWriteCall(0), 0u);
  EXPECT_EQ(BytesOfWriteCall(0x3fffffff), 0u);
}

}  // namespace
}  // namespace mosa::sai
