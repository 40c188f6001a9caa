#include "tests/fabric/offload.h"

#include "gtest/gtest.h"
#include "tests/fabric/frames_for_test.h"

namespace spoke::fabric {
namespace {

// Returns the header as the kernel writes it on a little-endian machine: a checksum to be filled
// in, segments of 1448 bytes, the transport's header 34 bytes into the frame.
Offload Segments(uint8_t type) { return {1, type, 0xFF, 0, 0xA8, 0x05, 34, 0, 16, 0}; }

// A frame of which only the length of the TCP header, 32 bytes, is told.
FrameBytes TcpFrame() {
  FrameBytes frame(66, 0);
  frame[34 + 12] = 0x80;
  return frame;
}

TEST(SegmentBytes, AreHeadersAndPayloadOfOneSegment) {
  EXPECT_EQ(SegmentBytes(Segments(1), TcpFrame()), 20U + 32U + 1448U);
  EXPECT_EQ(SegmentBytes(Segments(0x81), TcpFrame()), 20U + 32U + 1448U);  // This is with ECN.
  EXPECT_EQ(SegmentBytes(Segments(4), TcpFrame()), 20U + 32U + 1448U);
  EXPECT_EQ(SegmentBytes(Segments(5), TcpFrame()), 20U + 8U + 1448U);  // This is UDP.
}

TEST(SegmentBytes, AreNoneForAPlainFrameOrOneCutShort) {
  EXPECT_EQ(SegmentBytes(Offload{}, TcpFrame()), 0U);
  EXPECT_EQ(SegmentBytes(Segments(1), FrameBytes(46, 0)), 0U);
}

TEST(ShiftedBy, MovesOnlyAChecksumThatIsToBeFilledIn) {
  Offload want = Segments(1);
  want[6] = 38;
  EXPECT_EQ(ShiftedBy(Segments(1), 4), want);
  EXPECT_EQ(ShiftedBy(Offload{}, 4), Offload{});
}

}  // namespace
}  // namespace spoke::fabric
