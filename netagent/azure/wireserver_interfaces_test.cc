#include "netagent/azure/wireserver_interfaces.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"

namespace spoke::netagent::azure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ip::Prefix P(std::string_view text) { return ip::Prefix::Parse(text).value(); }

std::string TestData(const std::string& name) {
  return os::ReadFile(SPOKE_SOURCE_DIR "/netagent/azure/testdata/" + name).value();
}

TEST(WireserverInterfaces, ANicWithSecondariesIsRead) {
  const auto nics = ParseWireserverInterfaces(TestData("getinterfaceinfov1_secondaries.xml"));
  ASSERT_TRUE(nics.ok()) << nics.status();
  ASSERT_EQ(nics->size(), 1U);
  EXPECT_EQ(nics->at(0).mac.ToString(), "00:0d:3a:31:45:48");
  EXPECT_TRUE(nics->at(0).is_primary);
  ASSERT_EQ(nics->at(0).subnets.size(), 1U);
  EXPECT_EQ(nics->at(0).subnets[0].prefix.ToString(), "10.0.0.0/24");
  EXPECT_THAT(nics->at(0).subnets[0].addresses, ElementsAre(HostAddress{P("10.0.0.4/32"), true},
                                                            HostAddress{P("10.0.0.5/32"), false}));
}

TEST(WireserverInterfaces, ANicWithItsPrimaryAloneIsRead) {
  const auto nics = ParseWireserverInterfaces(TestData("getinterfaceinfov1.xml"));
  ASSERT_TRUE(nics.ok()) << nics.status();
  EXPECT_EQ(nics->at(0).mac.ToString(), "00:22:48:26:3d:bd");
  EXPECT_THAT(nics->at(0).subnets.at(0).addresses,
              ElementsAre(HostAddress{P("10.240.0.4/32"), true}));
}

TEST(WireserverInterfaces, WhatIsNotKnownIsPassedOver) {
  const auto nics = ParseWireserverInterfaces(
      "<?xml version=\"1.0\" encoding=\"utf-8\"?><Interfaces New=\"1\"><Later/>"
      "<Interface MacAddress=\"000D3A314548\" Speed=\"&lt;10&gt;\"><Other><Deep/></Other>"
      "</Interface></Interfaces>");
  ASSERT_TRUE(nics.ok()) << nics.status();
  ASSERT_EQ(nics->size(), 1U);
  EXPECT_FALSE(nics->at(0).is_primary);
  EXPECT_THAT(nics->at(0).subnets, IsEmpty());
}

TEST(WireserverInterfaces, ABlockIsReadAsOne) {
  const auto nics = ParseWireserverInterfaces(
      "<Interfaces><Interface MacAddress=\"000D3A314548\"><IPSubnet Prefix=\"10.0.0.4/24\">"
      "<IPAddress Address=\"10.0.0.16/28\" IsPrimary=\"False\"/></IPSubnet></Interface>"
      "</Interfaces>");
  ASSERT_TRUE(nics.ok()) << nics.status();
  EXPECT_EQ(nics->at(0).subnets.at(0).prefix, P("10.0.0.0/24"));
  EXPECT_THAT(nics->at(0).subnets.at(0).addresses,
              ElementsAre(HostAddress{P("10.0.0.16/28"), false}));
}

struct BadDocument {
  std::string name;
  std::string text;
  std::string message;
};

class WireserverInterfacesRefused : public testing::TestWithParam<BadDocument> {};

TEST_P(WireserverInterfacesRefused, WithItsLine) {
  const auto nics = ParseWireserverInterfaces(GetParam().text);
  EXPECT_EQ(nics.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(nics.status().message()), HasSubstr(GetParam().message));
}

std::string In(const std::string& text) { return "<Interfaces>\n" + text + "</Interfaces>"; }
const std::string kMac = "MacAddress=\"000D3A314548\"";

INSTANTIATE_TEST_SUITE_P(
    Cases, WireserverInterfacesRefused,
    testing::Values(
        BadDocument{"Empty", "", "line 1: no element found"},
        BadDocument{"CutShort", "<Interfaces>\n<Interface", "line 2"},
        BadDocument{"NotXml", R"({"a": 1})", "line 1"},
        BadDocument{"ErrorPage", "<Error/>", "Error: is not what"},
        BadDocument{"NoMac", In("<Interface/>"), "line 2: Interface: no attribute MacAddress"},
        BadDocument{"BadMac", In("<Interface MacAddress=\"12\"/>"), "Interface: "},
        BadDocument{"InsideAnother",
                    In("<Interface " + kMac + "><Interface " + kMac + "/></Interface>"),
                    "inside another"},
        BadDocument{"SubnetOutside", In("<IPSubnet Prefix=\"10.0.0.0/24\"/>"), "out of its place"},
        BadDocument{"AddressOutside", In("<IPAddress Address=\"10.0.0.4\"/>"), "out of its place"},
        BadDocument{"BadPrefix", In("<Interface " + kMac + "><IPSubnet Prefix=\"x\"/></Interface>"),
                    "IPSubnet: "},
        BadDocument{"BadAddress",
                    In("<Interface " + kMac +
                       "><IPSubnet Prefix=\"10.0.0.0/24\"><IPAddress Address=\"10\"/>"
                       "</IPSubnet></Interface>"),
                    "IPAddress: "},
        BadDocument{"EntitiesThatMultiply",
                    "<!DOCTYPE Interfaces [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]>"
                    "<Interfaces>&b;</Interfaces>",
                    "document type"},
        BadDocument{"EntityOfAFile",
                    "<!DOCTYPE Interfaces [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>"
                    "<Interfaces>&a;</Interfaces>",
                    "document type"},
        BadDocument{"EntityNobodyDeclared", In("&a;"), "undefined entity"},
        BadDocument{"TooLong", std::string(kMaxWireserverBytes + 1, ' '), "more than"}),
    [](const auto& test) { return test.param.name; });

TEST(WireserverInterfaces, TooManyElementsAreRefused) {
  std::string text;
  for (size_t i = 0; i < kMaxWireserverElements; ++i) text += "<Later/>";
  EXPECT_THAT(std::string(ParseWireserverInterfaces(In(text)).status().message()),
              HasSubstr("more than 16384 elements"));
}

}  // namespace
}  // namespace spoke::netagent::azure
