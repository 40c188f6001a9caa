#include "ipam-server/cloud/azure/token_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "ipam-server/cloud/azure/endpoints.h"

namespace spoke::ipam::azure {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1506480000);

Endpoints Public() { return *EndpointsOf("public"); }

http::Response Ok(std::string body, http::Headers headers = {}) {
  return {200, std::move(headers), std::move(body)};
}

TEST(EndpointsOf, KnowsTheCloudsByName) {
  EXPECT_EQ(EndpointsOf("public")->resource_manager, "https://management.azure.com");
  EXPECT_EQ(EndpointsOf("usgovernment")->authority, "https://login.microsoftonline.us");
  EXPECT_EQ(EndpointsOf("china")->resource_manager, "https://management.chinacloudapi.cn");
  EXPECT_EQ(EndpointsOf("Public").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(BuildTokenRequest, AsksTheMetadataServiceForManagedIdentities) {
  const auto own = BuildTokenRequest({}, Public(), "");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->method, "GET");
  EXPECT_EQ(own->url,
            "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01"
            "&resource=https%3A%2F%2Fmanagement.azure.com%2F");
  EXPECT_EQ(own->headers.Find("Metadata"), "true");
  EXPECT_EQ(own->headers.Find("X-Forwarded-For"), std::nullopt);
  const auto chosen = BuildTokenRequest({.client_id = "a b&c"}, Public(), "");
  EXPECT_NE(chosen->url.find("&client_id=a%20b%26c"), std::string::npos);
}

TEST(BuildTokenRequest, ExchangesTheTokenOfAWorkload) {
  const auto request =
      BuildTokenRequest({.kind = Identity::Kind::kWorkload, .client_id = "c-1", .tenant = "t-1"},
                        Public(), "ey.J+x\n");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->method, "POST");
  EXPECT_EQ(request->url, "https://login.microsoftonline.com/t-1/oauth2/v2.0/token");
  EXPECT_EQ(request->headers.Find("content-type"), "application/x-www-form-urlencoded");
  EXPECT_EQ(request->body,
            "grant_type=client_credentials&client_id=c-1"
            "&scope=https%3A%2F%2Fmanagement.azure.com%2F.default"
            "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3A"
            "jwt-bearer&client_assertion=ey.J%2Bx");
}

TEST(BuildTokenRequest, SendsASecretInTheBodyAlone) {
  const auto request =
      BuildTokenRequest({.kind = Identity::Kind::kClientSecret, .client_id = "c", .tenant = "t"},
                        Public(), " s3cret~&= \r\n");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_NE(request->body.find("&client_secret=s3cret~%26%3D"), std::string::npos);
  EXPECT_EQ(request->url.find("s3cret"), std::string::npos);
}

TEST(BuildTokenRequest, RefusesWhatCannotBeAnIdentity) {
  const auto code = [](const Identity& identity, std::string_view credential) {
    return BuildTokenRequest(identity, Public(), credential).status().code();
  };
  Identity identity{.kind = Identity::Kind::kWorkload, .client_id = "c", .tenant = "t"};
  EXPECT_EQ(code(identity, " \n"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(identity, std::string(100000, 'x')), absl::StatusCode::kFailedPrecondition);
  identity.tenant = "../evil";
  EXPECT_EQ(code(identity, "x"), absl::StatusCode::kFailedPrecondition);
  identity.tenant = "t";
  identity.client_id = "";
  EXPECT_EQ(code(identity, "x"), absl::StatusCode::kFailedPrecondition);
}

struct Case {
  const char* name;
  const char* fields;
  const char* date;  // Empty: no header.
  int64_t want;      // Seconds; 0: refused.
};

class TokenLifetimeTest : public testing::TestWithParam<Case> {};

TEST_P(TokenLifetimeTest, IsTheMoreCarefulOfBothFieldsWhateverOurClockSays) {
  http::Headers headers;
  if (*GetParam().date != 0) headers.Add("Date", GetParam().date);
  const auto token = DecodeToken(
      Ok(fmt::format(R"({{"access_token":"x",{}}})", GetParam().fields), headers), kNow);
  if (GetParam().want == 0) {
    EXPECT_EQ(token.status().code(), absl::StatusCode::kInvalidArgument);
    return;
  }
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->expires - kNow, absl::Seconds(GetParam().want));
  EXPECT_GT(token->refresh, kNow);
  EXPECT_LE(token->refresh, std::max(token->expires, kNow + absl::Seconds(30)));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, TokenLifetimeTest,
    testing::Values(
        Case{"AsText", R"("expires_in":"3599","expires_on":"1506483599")", "", 3599},
        Case{"AsNumbers", R"("expires_in":3599,"token_type":"Bearer")", "", 3599},
        Case{"ExpiresOnAlone", R"("expires_on":"1506484173")", "", 4173},
        // The metadata service keeps tokens, and expires_in counts from when they were made.
        Case{"KeptToken", R"("expires_in":"86400","expires_on":"1506480600")", "", 600},
        Case{"OurClockIsAhead", R"("expires_in":"3599","expires_on":"1506470000")", "", 3599},
        Case{"OurClockIsAheadAndTheirsIsKnown", R"("expires_in":"86400","expires_on":"1506470000")",
             "Tue, 26 Sep 2017 22:53:20 GMT", 3600},
        Case{"OurClockIsBehind", R"("expires_in":"86400","expires_on":"1506567600")",
             "Thu, 28 Sep 2017 02:00:00 GMT", 3600},
        Case{"TooLong", R"("expires_in":99999999999)", "", 7 * 86400},
        Case{"NoLifetime", R"("token_type":"Bearer")", "", 0},
        Case{"Nonsense", R"("expires_in":"soon","expires_on":"never")", "", 0},
        Case{"Over", R"("expires_in":"0","expires_on":"1")", "", 0},
        Case{"Negative", R"("expires_in":-5)", "", 0},
        Case{"OtherType", R"("expires_in":3599,"token_type":"mac")", "", 0}),
    [](const auto& test) { return test.param.name; });

TEST(DecodeToken, RefusesOtherShapesWithoutQuotingThem) {
  for (const char* body :
       {"", "[]", R"({"access_token":"SECRET","expires_in":3599)", R"({"access_token":7})",
        R"({"access_token":"SE CRET","expires_in":3599})",
        R"({"access_token":"SECRET\r\nX: y","expires_in":3599})",
        R"({"access_token":"","expires_in":3599})", R"({"access_token":"SECRET"})"}) {
    const auto token = DecodeToken(Ok(body), kNow);
    EXPECT_EQ(token.status().code(), absl::StatusCode::kInvalidArgument) << body;
    EXPECT_EQ(token.status().ToString().find("SE"), std::string::npos) << token.status();
  }
}

TEST(DecodeToken, IsRefreshedWellBeforeItsEnd) {
  const auto token = DecodeToken(Ok(R"({"access_token":"x","expires_in":10000})"), kNow);
  EXPECT_EQ(token->refresh - kNow, absl::Seconds(7000));
}

TEST(DescribeTokenError, IsALine) {
  EXPECT_EQ(DescribeTokenError({400, {}, R"({"error":"invalid_request",
                                             "error_description":"Identity\r\nnot found"})"}),
            "HTTP 400, invalid_request: Identity  not found");
  EXPECT_EQ(DescribeTokenError({502, {}, "<html>"}), "HTTP 502");
}

TEST(Describe, NamesTheIdentity) {
  EXPECT_EQ(Describe(Identity{}), "the machine's own managed identity");
  EXPECT_EQ(Describe(Identity{.client_id = "c"}), "the managed identity with client id c");
  EXPECT_EQ(Describe(Identity{.kind = Identity::Kind::kWorkload, .client_id = "c", .tenant = "t"}),
            "the workload identity with client id c of tenant t");
}

}  // namespace
}  // namespace spoke::ipam::azure
