#include "cni-plugin/result.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace spoke::cni {
namespace {

using nlohmann::json;

Request RequestOf(const std::string& version) {
  Request request;
  request.ifname = "eth0";
  request.netns = "/var/run/netns/cni-1";
  request.cni_version = version;
  return request;
}

const Attachment kAttachment{
    .host_link = "spk0123456789ab",
    .host_mac = "0a:00:00:00:00:01",
    .pod_mac = "0e:00:00:00:00:01",
    .addresses = {{"10.1.0.5/32", "169.254.1.1"}, {"fd00::5/128", "fe80::1"}}};

TEST(FormatResult, HasBothEndsAndPointsAddressesAtThePod) {
  const json result = json::parse(FormatResult(RequestOf("1.0.0"), kAttachment));
  EXPECT_EQ(result["cniVersion"], "1.0.0");
  EXPECT_EQ(result["interfaces"][0]["name"], "spk0123456789ab");
  EXPECT_FALSE(result["interfaces"][0].contains("sandbox"));
  EXPECT_EQ(result["interfaces"][1]["name"], "eth0");
  EXPECT_EQ(result["interfaces"][1]["sandbox"], "/var/run/netns/cni-1");
  EXPECT_EQ(result["ips"][0],
            (json{{"interface", 1}, {"address", "10.1.0.5/32"}, {"gateway", "169.254.1.1"}}));
  EXPECT_EQ(result["routes"][1], (json{{"dst", "::/0"}, {"gw", "fe80::1"}}));
  EXPECT_EQ(result["dns"], json::object());
}

TEST(FormatResult, OlderVersionsSayTheFamily) {
  for (const char* version : {"0.3.0", "0.3.1", "0.4.0"}) {
    const json result = json::parse(FormatResult(RequestOf(version), kAttachment));
    EXPECT_EQ(result["cniVersion"], version);
    EXPECT_EQ(result["ips"][0]["version"], "4");
    EXPECT_EQ(result["ips"][1]["version"], "6");
  }
}

TEST(FormatResult, PassesTheConfiguredDnsOn) {
  Request request = RequestOf("1.0.0");
  request.dns_json = R"({"nameservers":["10.0.0.10"]})";
  EXPECT_EQ(json::parse(FormatResult(request, kAttachment))["dns"]["nameservers"][0], "10.0.0.10");
}

TEST(FormatError, IsOneJsonObjectWhateverBytesItHolds) {
  const json result =
      json::parse(FormatError({kTryAgainLater, "no \xff\" address", "line\nbreak"}, "0.4.0"));
  EXPECT_EQ(result["code"], 11);
  EXPECT_EQ(result["cniVersion"], "0.4.0");
  EXPECT_EQ(result["details"], "line\nbreak");
  EXPECT_FALSE(json::parse(FormatError({}, "")).contains("details"));
}

TEST(FormatVersion, ListsWhatIsSpoken) {
  const json result = json::parse(FormatVersion());
  EXPECT_EQ(result["cniVersion"], "1.0.0");
  EXPECT_EQ(result["supportedVersions"], (json{"0.3.0", "0.3.1", "0.4.0", "1.0.0"}));
}

}  // namespace
}  // namespace spoke::cni
