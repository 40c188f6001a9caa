#include "cni-plugin/result.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace spoke::cni {
namespace {

using nlohmann::json;

Invocation RequestOf(const std::string& version) {
  Invocation request;
  request.ifname = "eth0";
  request.netns = "/var/run/netns/cni-1";
  request.cni_version = version;
  return request;
}

const Attachment kAttachment{
    .host_link = "spk0123456789ab",
    .host_mac = "0a:00:00:00:00:01",
    .pod_mac = "0e:00:00:00:00:01",
    .mtu = 1500,
    .addresses = {{"10.1.0.5/32", "169.254.1.1"}, {"fd00::5/128", "fe80::1"}}};

// Covers B2, B3, B4.
TEST(FormatResult, HasBothEndsAndPointsAddressesAtThePod) {
  const json result = json::parse(FormatResult(RequestOf("1.0.0"), kAttachment));
  EXPECT_EQ(result["cniVersion"], "1.0.0");
  EXPECT_EQ(result["interfaces"][0],
            (json{{"name", "spk0123456789ab"}, {"mac", "0a:00:00:00:00:01"}}));
  EXPECT_EQ(
      result["interfaces"][1],
      (json{{"name", "eth0"}, {"mac", "0e:00:00:00:00:01"}, {"sandbox", "/var/run/netns/cni-1"}}));
  EXPECT_EQ(result["ips"][0],
            (json{{"interface", 1}, {"address", "10.1.0.5/32"}, {"gateway", "169.254.1.1"}}));
  EXPECT_EQ(result["routes"][1], (json{{"dst", "::/0"}, {"gw", "fe80::1"}}));
  EXPECT_EQ(result["dns"], json::object());
}

// Covers A4, B5, B6.
TEST(FormatResult, EachVersionHasItsShape) {
  for (const char* version : kSupportedVersions) {
    const json result = json::parse(FormatResult(RequestOf(version), kAttachment));
    const bool is_old = std::string(version).starts_with("0.");
    EXPECT_EQ(result["cniVersion"], version);
    EXPECT_EQ(result["ips"][0].value("version", ""), is_old ? "4" : "");
    EXPECT_EQ(result["ips"][1].value("version", ""), is_old ? "6" : "");
    for (const json& interface : result["interfaces"]) {
      EXPECT_EQ(interface.value("mtu", 0), std::string(version) == "1.1.0" ? 1500 : 0) << version;
    }
  }
}

TEST(FormatResult, AnAddressWithoutAGatewayHasNoRoute) {
  Attachment second = kAttachment;
  second.addresses = {{"10.1.0.6/32", ""}};
  const json result = json::parse(FormatResult(RequestOf("1.0.0"), second));
  EXPECT_EQ(result["ips"][0], (json{{"interface", 1}, {"address", "10.1.0.6/32"}}));
  EXPECT_EQ(result["routes"], json::array());
}

TEST(FormatResult, PassesDnsOn) {
  Invocation request = RequestOf("1.0.0");
  request.dns = R"({"nameservers":["10.0.0.10"]})";
  EXPECT_EQ(json::parse(FormatResult(request, kAttachment))["dns"]["nameservers"][0], "10.0.0.10");
}

TEST(FormatError, IsOneJsonObjectWhateverBytesItHolds) {
  const json result =
      json::parse(FormatError({kTryAgainLater, "no \xff\" address", "line\nbreak"}, "0.4.0"));
  EXPECT_EQ(result["code"], 11);
  EXPECT_EQ(result["cniVersion"], "0.4.0");
  EXPECT_EQ(result["details"], "line\nbreak");
  EXPECT_FALSE(json::parse(FormatError({}, "")).contains("details"));
  EXPECT_EQ(json::parse(FormatError({}, ""))["cniVersion"], "1.1.0");
}

TEST(FormatVersion, ListsWhatIsSpoken) {
  const json result = json::parse(FormatVersion());
  EXPECT_EQ(result["cniVersion"], "1.1.0");
  EXPECT_EQ(result["supportedVersions"], (json{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}));
}

}  // namespace
}  // namespace spoke::cni
