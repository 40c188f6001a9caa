#include "lib/ip/endpoint.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ip {
namespace {

TEST(Endpoint, IsReadAndPrintedTheSame) {
  for (const char* text : {"10.0.0.1:443", "0.0.0.0:1", "[fd00::1]:65535", "[::]:7"}) {
    const auto endpoint = Endpoint::Parse(text);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    EXPECT_EQ(endpoint->ToString(), text);
  }
  EXPECT_EQ(Endpoint::Parse("10.0.0.1:443").value(),
            (Endpoint{.address = Address::V4(0x0A000001), .port = 443}));
}

TEST(Endpoint, AnythingElseIsAMistakeThatShowsTheText) {
  for (const char* text :
       {"", ":", ":443", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:-1",
        "10.0.0.1:+1", "10.0.0.1:44x", "10.0.0.1: 44", "[10.0.0.1]:443", "fd00::1:443", "fd00::1",
        "[fd00::1]", "[fd00::1]443", "[]:443", "hub.example:443", "10.0.0.0/8:443"}) {
    const auto endpoint = Endpoint::Parse(text);
    EXPECT_EQ(endpoint.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(endpoint.status().message()),
                testing::HasSubstr(std::string("'") + text + "'"));
  }
}

TEST(Endpoint, OneAddressComesBeforeTheNextAndThenThePort) {
  const auto at = [](const char* text) { return Endpoint::Parse(text).value(); };
  EXPECT_LT(at("10.0.0.1:9"), at("10.0.0.2:1"));
  EXPECT_LT(at("10.0.0.1:1"), at("10.0.0.1:9"));
  EXPECT_LT(at("255.0.0.1:9"), at("[::]:1"));
}

}  // namespace
}  // namespace spoke::ip
