#include "ipam-server/traffic/traffic_sums.h"

#include <string>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kBeganMs = 1'700'000'000'000;
const absl::Time kBegan = absl::FromUnixMillis(kBeganMs);
const NodeKey kNode{.name = "n1", .vm_id = "vm-1"};

// A count that began after the server did.
node_api::TrafficReport Report(uint64_t sent, uint64_t received, int64_t epoch = kBeganMs + 1) {
  return {.epoch = absl::FromUnixMillis(epoch),
          .namespaces = {{"a", {{"internet", {.sent = sent, .received = received}}}}},
          .pods = {}};
}

node_api::Volume NamespaceOf(const TrafficSums& sums, const std::string& name,
                             const std::string& traffic_class = "internet") {
  for (const auto& row : sums.Namespaces()) {
    const auto found = row.volumes.find(traffic_class);
    if (row.name == name && found != row.volumes.end()) return found->second;
  }
  return {};
}

node_api::Volume SumOf(const std::vector<TrafficSums::NamedSums>& rows, const std::string& name) {
  node_api::Volume sum;
  for (const auto& row : rows) {
    if (row.name != name) continue;
    for (const auto& [unused, volume] : row.volumes) {
      sum.sent += volume.sent;
      sum.received += volume.received;
    }
  }
  return sum;
}

TEST(TrafficSums, AddWhatIsMoreThanBefore) {
  TrafficSums sums(kBegan);
  sums.Take(kNode, Report(10, 1), kBegan);
  sums.Take(kNode, Report(15, 1), kBegan);
  sums.Take(kNode, Report(15, 1), kBegan);  // The same comes twice.
  EXPECT_EQ(NamespaceOf(sums, "a"), (node_api::Volume{15, 1}));
  sums.Take({"n2", "vm-2"}, Report(100, 0), kBegan);
  EXPECT_EQ(NamespaceOf(sums, "a"), (node_api::Volume{115, 1}));
  EXPECT_EQ(SumOf(sums.Nodes(), "n1"), (node_api::Volume{15, 1}));
  EXPECT_EQ(SumOf(sums.Nodes(), "n2"), (node_api::Volume{100, 0}));
}

TEST(TrafficSums, LeaveOutWhatWasCountedBeforeTheServerBegan) {
  TrafficSums sums(kBegan);
  sums.Take(kNode, Report(1000, 1000, kBeganMs - 5), kBegan);
  EXPECT_EQ(NamespaceOf(sums, "a"), node_api::Volume());
  sums.Take(kNode, Report(1001, 1002, kBeganMs - 5), kBegan);
  EXPECT_EQ(NamespaceOf(sums, "a"), (node_api::Volume{1, 2}));
}

TEST(TrafficSums, ANamespaceThatComesLaterToAnOldCountIsWhollyNew) {
  TrafficSums sums(kBegan);
  sums.Take(kNode, Report(1000, 0, kBeganMs - 5), kBegan);
  node_api::TrafficReport later = Report(1000, 0, kBeganMs - 5);
  later.namespaces["b"] = {{"internet", {.sent = 7}}};
  sums.Take(kNode, later, kBegan);
  EXPECT_EQ(NamespaceOf(sums, "b"), (node_api::Volume{7, 0}));
}

TEST(TrafficSums, SurviveANodesNewEpochAndItsReplacement) {
  TrafficSums sums(kBegan);
  sums.Take(kNode, Report(50, 0), kBegan);
  sums.Take(kNode, Report(3, 0, kBeganMs + 900), kBegan);  // It was booted.
  EXPECT_EQ(NamespaceOf(sums, "a"), (node_api::Volume{53, 0}));
  sums.Take({"n1", "vm-2"}, Report(2, 0, kBeganMs + 900), kBegan);  // Another VM under the name.
  EXPECT_EQ(NamespaceOf(sums, "a"), (node_api::Volume{55, 0}));
  EXPECT_EQ(SumOf(sums.Nodes(), "n1"), (node_api::Volume{55, 0}));
}

TEST(TrafficSums, NeverFall) {
  TrafficSums sums(kBegan);
  sums.Take(kNode, Report(50, 50), kBegan);
  sums.Take(kNode, Report(20, 60), kBegan);  // What cannot be.
  EXPECT_EQ(NamespaceOf(sums, "a"), (node_api::Volume{50, 60}));
  sums.Take(kNode, Report(25, 60), kBegan);
  EXPECT_EQ(NamespaceOf(sums, "a"), (node_api::Volume{55, 60}));
  node_api::TrafficReport without = Report(0, 0);
  without.namespaces.clear();
  sums.Take(kNode, without, kBegan);
  sums.Take(kNode, Report(26, 60), kBegan);
  EXPECT_EQ(NamespaceOf(sums, "a"), (node_api::Volume{56, 60}));
}

TEST(TrafficSums, OfATeamAreThoseOfItsNamespacesWhileTheyBelongToIt) {
  TrafficSums sums(kBegan);
  sums.Take(kNode, Report(1, 0), kBegan);
  sums.SetTeams({{"a", "vision"}});
  sums.Take(kNode, Report(11, 0), kBegan);
  sums.SetTeams({{"a", "language"}});
  sums.Take(kNode, Report(111, 0), kBegan);
  EXPECT_EQ(SumOf(sums.Teams(), "_none"), (node_api::Volume{1, 0}));
  EXPECT_EQ(SumOf(sums.Teams(), "vision"), (node_api::Volume{10, 0}));
  EXPECT_EQ(SumOf(sums.Teams(), "language"), (node_api::Volume{100, 0}));
}

TEST(TrafficSums, NamespacesBeyondTheLimitShareOne) {
  TrafficSums sums(kBegan);
  uint64_t all = 0;
  for (size_t round = 0; round < 2; ++round) {
    for (size_t i = 0; i < TrafficSums::kMaxNamespaces + 100; ++i) {
      // One a node, since a node has fewer.
      node_api::TrafficReport report = Report(0, 0);
      report.namespaces = {{fmt::format("ns-{}", i), {{"internet", {.sent = round + 1}}}}};
      sums.Take({fmt::format("n{}", i % 200), "vm"}, report, kBegan);
      all += 1;
    }
  }
  const auto rows = sums.Namespaces();
  EXPECT_EQ(rows.size(), TrafficSums::kMaxNamespaces);
  EXPECT_EQ(rows.front().name, TrafficSums::kOther);
  EXPECT_EQ(NamespaceOf(sums, "ns-0"), (node_api::Volume{2, 0}));
  EXPECT_LE(NamespaceOf(sums, "_other").sent, all);
  EXPECT_GT(NamespaceOf(sums, "_other").sent, 0U);
}

TEST(TrafficSums, ClassesBeyondTheLimitShareOneAndNothingIsLost) {
  TrafficSums sums(kBegan);
  node_api::TrafficReport report = Report(0, 0);
  for (size_t i = 0; i < 2 * TrafficSums::kMaxClasses; ++i) {
    report.namespaces["a"][fmt::format("group:{}", i)] = {.sent = 1};
  }
  sums.Take(kNode, report, kBegan);
  EXPECT_EQ(sums.Namespaces().at(0).volumes.size(), TrafficSums::kMaxClasses);
  EXPECT_EQ(SumOf(sums.Namespaces(), "a").sent, 2 * TrafficSums::kMaxClasses + 0);
}

TEST(TrafficSums, ANodeThatWasForgottenIsNotCountedTwice) {
  TrafficSums sums(kBegan);
  sums.Take(kNode, Report(50, 0), kBegan + absl::Seconds(1));
  for (size_t i = 0; i < TrafficSums::kMaxNodes; ++i) {
    sums.Take({fmt::format("x{}", i), "vm"}, {.epoch = absl::FromUnixMillis(kBeganMs + 1)},
              kBegan + absl::Seconds(2));
  }
  EXPECT_EQ(sums.Nodes().size(), TrafficSums::kMaxNodes);
  sums.Take(kNode, Report(60, 0), kBegan + absl::Seconds(3));
  sums.Take(kNode, Report(61, 0), kBegan + absl::Seconds(4));
  EXPECT_EQ(NamespaceOf(sums, "a"), (node_api::Volume{51, 0}));
}

TEST(TrafficSums, NamePodsOfNodesThatAreNotSilent) {
  TrafficSums sums(kBegan);
  node_api::TrafficReport report = Report(1, 0);
  report.pods = {{"a", "p", {{"internet", {.sent = 5}}}}};
  sums.Take(kNode, report, kBegan);
  EXPECT_THAT(sums.Pods(kBegan + absl::Seconds(30)),
              ElementsAre(std::pair(std::string("n1"), report.pods[0])));
  EXPECT_EQ(sums.Reporting(kBegan + absl::Seconds(30)), 1U);
  EXPECT_THAT(sums.Pods(kBegan + absl::Minutes(2)), IsEmpty());
  EXPECT_EQ(sums.Reporting(kBegan + absl::Minutes(2)), 0U);
}

TEST(TrafficSums, SayWhatHasRisen) {
  TrafficSums sums(kBegan);
  sums.SetTeams({{"a", "vision"}});
  std::vector<std::string> deltas;
  const auto note = [&](const TrafficDelta& delta) {
    deltas.push_back(fmt::format("{} {} {} {} {}", delta.pod_namespace, delta.team,
                                 delta.traffic_class, delta.volume.sent, delta.volume.received));
  };
  sums.Take(kNode, Report(5, 6), kBegan, note);
  sums.Take(kNode, Report(5, 6), kBegan, note);
  sums.Take(kNode, Report(5, 7), kBegan, note);
  EXPECT_THAT(deltas, ElementsAre("a vision internet 5 6", "a vision internet 0 1"));
}

}  // namespace
}  // namespace spoke::ipam
