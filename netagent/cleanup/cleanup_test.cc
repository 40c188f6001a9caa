#include "netagent/cleanup/cleanup.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/claims.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FakeNode final : public CleanupEdge {
 public:
  std::vector<absl::Status> Read(NodeTraces& traces) override {
    traces = there;
    return unread;
  }
  absl::StatusOr<bool> Remove(const Removal& removal) override {
    attempted.push_back(removal.what);
    if (removal.what == refuses) return absl::PermissionDeniedError("not that one");
    return removal.what != stays;
  }

  NodeTraces there = {.links = {{5, "spk0123456789ab", "veth", 0}},
                      .routes = {{"10.0.0.5/32", claims::kRouteProtocol, 0}},
                      .tables = {"inet spoke"},
                      .files = {{"/run/spoke", FileRole::kDirectory, ""},
                                {"/bin/spoke", FileRole::kPlugin, "it is another"}}};
  std::vector<absl::Status> unread;
  std::string refuses;
  std::string stays;
  std::vector<std::string> attempted;
};

TEST(CleanUp, DoesNothingWhilePodsUseLinksUnlessItMay) {
  FakeNode node;
  const CleanupReport refused =
      CleanUp(node, {.pod_of_link = {{"spk0123456789ab", "shop/web-1 10.0.0.5"}}});
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(refused.pods, ElementsAre("spk0123456789ab (shop/web-1 10.0.0.5)"));
  EXPECT_THAT(node.attempted, IsEmpty());
  EXPECT_THAT(CleanupTable(refused), HasSubstr("refused: pods use links of ours"));
  EXPECT_THAT(CleanupTable(refused), HasSubstr("\n  spk0123456789ab (shop/web-1 10.0.0.5)\n"));

  const CleanupReport done = CleanUp(node, {.with_pods = true});
  EXPECT_TRUE(done.ok());
  EXPECT_THAT(node.attempted,
              ElementsAre("spk0123456789ab", "10.0.0.5/32", "inet spoke", "/run/spoke"));
  EXPECT_THAT(done.removed, SizeIs(4));
  EXPECT_THAT(done.left, ElementsAre(LeftAlone{"/bin/spoke", "it is another"}));
  const std::string table = CleanupTable(done);
  EXPECT_THAT(table, HasSubstr("removed  link           spk0123456789ab\n"));
  EXPECT_THAT(table, HasSubstr("left     /bin/spoke: it is another\n"));
  EXPECT_THAT(table, HasSubstr("settings stay as they are: net.ipv4.ip_forward"));
}

TEST(CleanUp, EveryStepIsTriedWhateverBecomesOfTheOthers) {
  FakeNode node;
  node.refuses = "spk0123456789ab";
  node.stays = "/run/spoke";
  node.unread = {absl::UnavailableError("list rules: busy")};
  const CleanupReport report = CleanUp(node, {.with_pods = true});
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(node.attempted, SizeIs(4));
  EXPECT_THAT(report.removed, SizeIs(2));
  const std::string table = CleanupTable(report);
  EXPECT_THAT(table, HasSubstr("failed   list rules: busy\n"));
  EXPECT_THAT(table, HasSubstr("failed   link spk0123456789ab: not that one\n"));
}

TEST(CleanUp, AgainThereIsNothing) {
  FakeNode node;
  node.there = {.files = {{"/run/spoke", FileRole::kDirectory, ""}}};
  node.stays = "/run/spoke";
  const CleanupReport report = CleanUp(node, {});
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(CleanupTable(report), "nothing to remove\n");
}

TEST(CleanUp, TheReportIsJsonToo) {
  FakeNode node;
  node.refuses = "inet spoke";
  const auto json = nlohmann::json::parse(CleanupJson(CleanUp(node, {.with_pods = true})));
  EXPECT_EQ(json["refused"], "");
  EXPECT_EQ(json["removed"][0]["kind"], "link");
  EXPECT_EQ(json["removed"][0]["what"], "spk0123456789ab");
  EXPECT_EQ(json["failed"][0]["what"], "table inet spoke");
  EXPECT_EQ(json["left"][0]["what"], "/bin/spoke");
  EXPECT_EQ(json["settings_that_stay"][0], "net.ipv4.ip_forward");
}

}  // namespace
}  // namespace spoke::netagent
