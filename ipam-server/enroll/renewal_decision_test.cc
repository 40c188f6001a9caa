#include "ipam-server/enroll/renewal_decision.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/authority/roots.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const ShownCertificate kGood{.dns_names = {"node-1"},
                             .uris = {"azure:///machines/7", "spoke-node:node-1?zone=1"},
                             .not_before = kNow - absl::Hours(12),
                             .not_after = kNow + absl::Hours(12),
                             .for_clients = true,
                             .is_ours = true,
                             .is_proved = true};

struct Case {
  std::string name;
  std::function<void(ShownCertificate&)> change;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string text;
  std::string node = "node-1";
};

class CheckRenewalTest : public testing::TestWithParam<Case> {};

TEST_P(CheckRenewalTest, Decides) {
  const Case& c = GetParam();
  ShownCertificate shown = kGood;
  c.change(shown);
  const absl::Status status = CheckRenewal(shown, c.node, kNow);
  EXPECT_EQ(status.code(), c.code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
}

constexpr absl::StatusCode kUnknown = absl::StatusCode::kUnauthenticated;
constexpr absl::StatusCode kForbidden = absl::StatusCode::kPermissionDenied;

INSTANTIATE_TEST_SUITE_P(
    Cases, CheckRenewalTest,
    testing::Values(
        Case{"Good", [](ShownCertificate&) {}},
        Case{"WithoutUris", [](auto& shown) { shown.uris.clear(); }},
        Case{"EndedInAnOutage", [](auto& shown) { shown.not_after = kNow - kRenewalGrace; }},
        Case{"EndedTooLongAgo",
             [](auto& shown) { shown.not_after = kNow - kRenewalGrace - absl::Seconds(1); },
             kUnknown, "renewed for 168h only"},
        Case{"NotGoodYet", [](auto& shown) { shown.not_before = kNow + absl::Seconds(1); },
             kUnknown, "clocks"},
        Case{"Foreign", [](auto& shown) { shown.is_ours = false; }, kUnknown, "another authority"},
        Case{"WrongSignature", [](auto& shown) { shown.is_proved = false; }, kUnknown,
             "not signed with the key"},
        Case{"AnotherNode", [](ShownCertificate&) {}, kForbidden, "not node node-2's", "node-2"},
        Case{"TwoNames", [](auto& shown) { shown.dns_names.emplace_back("node-2"); }, kForbidden,
             "not node node-1's"},
        Case{"NoName", [](auto& shown) { shown.dns_names.clear(); }, kForbidden, "not node"},
        Case{"LabelsOfAnother", [](auto& shown) { shown.uris = {"spoke-node:node-2?zone=1"}; },
             kForbidden, "labels of another node"},
        Case{"TheServers", [](auto& shown) { shown.for_clients = false; }, kForbidden, "no node's"},
        Case{"AnAuthority", [](auto& shown) { shown.is_authority = true; }, kForbidden,
             "no node's"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spoke::ipam
