#include "lib/ip/address.h"

#include "gtest/gtest.h"

namespace spoke::ip {
namespace {

TEST(Address, ParsesAndPrintsBothFamilies) {
  for (const char* text : {"0.0.0.0", "10.1.2.3", "255.255.255.255", "::", "fd00::1", "fe80::1",
                           "2001:db8:0:1:1:1:1:1"}) {
    const auto address = Address::Parse(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->ToString(), text);
    EXPECT_EQ(*Address::FromBytes(address->ToBytes()), *address);
  }
}

TEST(Address, RefusesWhatIsNotOneAddress) {
  for (const std::string text : {"", "10.1.2", "10.1.2.3.4", "256.0.0.1", "10.1.2.3/32",
                                 " 10.1.2.3", "fe80::1%eth0", "1:2:3", "10.1.2.03x"}) {
    EXPECT_EQ(Address::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(Address::Parse(std::string("10.1.2.3\0", 9)).ok());
  EXPECT_FALSE(Address::FromBytes("12345").ok());
}

TEST(Address, CountsAcrossTheWordBoundary) {
  const Address base = *Address::Parse("2001:db8::ffff:ffff:ffff:ffff");
  EXPECT_EQ(Advance(base, 1).ToString(), "2001:db8:0:1::");
  EXPECT_EQ(Distance(base, Advance(base, 77)), 77U);
  EXPECT_EQ(Advance(*Address::Parse("10.0.0.255"), 1).ToString(), "10.0.1.0");
}

TEST(MacAddress, ParsesEitherCaseAndRefusesTheRest) {
  EXPECT_EQ(MacAddress::Parse("12:34:56:78:9A:bc")->ToString(), "12:34:56:78:9a:bc");
  EXPECT_TRUE(MacAddress::Parse("01:00:5e:00:00:01")->is_multicast());
  for (const char* text : {"", "12:34:56:78:9a", "12-34-56-78-9a-bc", "12:34:56:78:9a:bg",
                           "12:34:56:78:9a:bc:de", "123:4:56:78:9a:bc"}) {
    EXPECT_FALSE(MacAddress::Parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace spoke::ip
