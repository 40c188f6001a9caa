#include "ipam-server/telemetry/server_metrics.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

class ServerMetricsTest : public ::testing::Test {
 protected:
  telemetry::Metrics metrics_{ServerMetricSpecs()};
  ServerMetrics server_{metrics_, "1.2.3"};
};

decltype(NodeMetrics::warned) WarnedBy(std::string_view check, const WarnedNodes& warned) {
  decltype(NodeMetrics::warned) all{};
  all.at(node_checks::PlaceOfCheck(check)) = warned;
  all.back() = {1, absl::Seconds(30)};
  return all;
}

void SetEverything(ServerMetrics& server) {
  server.SetPool("default", {.usable = 251,
                             .free = 100,
                             .attaching = 1,
                             .available = 20,
                             .in_use = 90,
                             .cooldown = 10,
                             .detaching = 2,
                             .released = 3,
                             .quarantined = 25,
                             .reserved = 16});
  server.SetNodes({.active = 10,
                   .draining = 1,
                   .frozen = 2,
                   .retired = 3,
                   .connected = 12,
                   .in_shortage = 4,
                   .pods_waiting = 9,
                   .maintenance = {0, 2, 0, 0, 1},
                   .warned = WarnedBy("dns-node", {3, absl::Minutes(40)})});
  server.SetPolicy({.version = 7, .nodes_behind = 2, .nodes_refused = 1});
  server.SetReservations({.reservations = 2, .promised = 54, .short_by = 5});
  server.SetBreaker({.frozen = true, .trips = 2, .headroom = 31});
  server.SetSessions(13);
  server.SetHellosWaiting(6);
  server.SetMailbox(8);
  server.SetStore(1 << 20, false);
  server.CountHello(HelloOutcome::kDelayed);
  server.CountReport(3, 2);
  server.CountStale();
  server.CountReclaim(ReclaimOutcome::kDenied, 16);
  server.CountAttached(absl::Seconds(3));
  server.CountCommit(absl::ResourceExhaustedError("disk full"), 40, absl::Milliseconds(3));
  server.CountTurn(absl::Milliseconds(30));
  server.CountCloudCall(CloudCall::kList, absl::PermissionDeniedError("403"), absl::Seconds(1));
  server.CountAudit({{"not_on_nic", 4}}, kNow);
  server.CountAuditFailed();
  server.CountAuditRepairs(2);
}

TEST_F(ServerMetricsTest, EveryCallShowsInAScrape) {
  SetEverything(server_);
  const std::string text = metrics_.Render();
  for (const char* line :
       {"spoke_ipam_pool_addresses{pool=\"default\",state=\"in_use\"} 90\n",
        "spoke_ipam_pool_addresses{pool=\"default\",state=\"free\"} 100\n",
        "spoke_ipam_pool_usable_addresses{pool=\"default\"} 251\n",
        "spoke_ipam_pool_reserved_addresses{pool=\"default\"} 16\n",
        "spoke_ipam_nodes{mode=\"retired\"} 3\n",
        "spoke_ipam_connected_nodes 12\n",
        "spoke_ipam_shortage_nodes 4\n",
        "spoke_ipam_pods_waiting 9\n",
        "spoke_ipam_maintenance_nodes{kind=\"Reboot\"} 2\n",
        "spoke_ipam_maintenance_nodes{kind=\"Terminate\"} 1\n",
        "spoke_ipam_warned_nodes{check=\"dns-node\"} 3\n",
        "spoke_ipam_warned_nodes{check=\"mtu\"} 0\n",
        "spoke_ipam_warned_nodes{check=\"unknown\"} 1\n",
        "spoke_ipam_longest_warning_seconds{check=\"dns-node\"} 2400\n",
        "spoke_ipam_policy_version 7\n",
        "spoke_ipam_policy_behind_nodes 2\n",
        "spoke_ipam_policy_refused_nodes 1\n",
        "spoke_ipam_reservations 2\n",
        "spoke_ipam_promised_addresses 54\n",
        "spoke_ipam_broken_promise_addresses 5\n",
        "spoke_ipam_releases_frozen 1\n",
        "spoke_ipam_breaker_trips_total 2\n",
        "spoke_ipam_breaker_headroom_addresses 31\n",
        "spoke_ipam_sessions 13\n",
        "spoke_ipam_waiting_hellos 6\n",
        "spoke_ipam_mailbox_messages 8\n",
        "spoke_ipam_store_bytes 1048576\n",
        "spoke_ipam_store_writable 0\n",
        "spoke_ipam_hellos_total{outcome=\"delayed\"} 1\n",
        "spoke_ipam_reports_total 1\n",
        "spoke_ipam_assignments_total 3\n",
        "spoke_ipam_releases_total 2\n",
        "spoke_ipam_stale_messages_total 1\n",
        "spoke_ipam_reclaims_total{outcome=\"denied\"} 16\n",
        "spoke_ipam_attach_duration_seconds_bucket{le=\"5\"} 1\n",
        "spoke_ipam_commits_total{result=\"full\"} 1\n",
        "spoke_ipam_commit_duration_seconds_bucket{le=\"0.005\"} 1\n",
        "spoke_ipam_commit_batch_records_bucket{le=\"50\"} 1\n",
        "spoke_ipam_loop_turn_duration_seconds_bucket{le=\"0.05\"} 1\n",
        "spoke_ipam_cloud_calls_total{call=\"list\",result=\"denied\"} 1\n",
        "spoke_ipam_cloud_call_duration_seconds_bucket{call=\"list\",le=\"1\"} 1\n",
        "spoke_ipam_audit_differences{kind=\"not_on_nic\"} 4\n",
        "spoke_ipam_audits_total{result=\"failed\"} 1\n",
        "spoke_ipam_last_audit_timestamp_seconds 1700000000\n",
        "spoke_ipam_audit_repairs_total 2\n",
        "spoke_build_info{version=\"1.2.3\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("\"other\""))) << "every word that is used stands in the table";
}

TEST_F(ServerMetricsTest, EverySeriesIsThereBeforeItsFirstEvent) {
  server_.SetPool("default", {});  // The name is an operator's.
  const std::string text = metrics_.Render();
  EXPECT_THAT(text, HasSubstr("spoke_ipam_commits_total{result=\"conflict\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("spoke_ipam_cloud_calls_total{call=\"http\",result=\"failed\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("spoke_ipam_store_writable 1\n"));
  for (const auto& spec : metrics_.table()) {
    if (spec.from_source) continue;  // The source is not there.
    // These are of namespaces and teams, whose names agents tell.
    if (spec.name == "spoke_namespace_bytes_total" || spec.name == "spoke_team_bytes_total")
      continue;
    EXPECT_NE(text.find("# TYPE " + spec.name + " "), std::string::npos) << spec.name;
  }
}

TEST_F(ServerMetricsTest, AnAuditReplacesWhatTheOneBeforeFound) {
  server_.CountAudit({{"not_on_nic", 4}}, kNow);
  server_.CountAudit({{"in_use_twice", 1}}, kNow);
  const std::string text = metrics_.Render();
  EXPECT_THAT(text, HasSubstr("spoke_ipam_audit_differences{kind=\"not_on_nic\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("spoke_ipam_audit_differences{kind=\"in_use_twice\"} 1\n"));
}

TEST_F(ServerMetricsTest, TheNumberOfSeriesHasAnEnd) {
  for (int i = 0; i < 1000; ++i) server_.SetPool("pool" + std::to_string(i), {.usable = 1});
  const std::string text = metrics_.Render();
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 4000);
}

// Standard output and error of a script of ours, and whether it succeeded.
std::string RunPromtool(const std::string& arguments, bool& ok) {
  const std::string command =
      std::string(SPOKE_SOURCE_DIR) + "/scripts/promtool.sh " + arguments + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::string output;
  char piece[4096];
  for (size_t got = 0; (got = std::fread(piece, 1, sizeof piece, pipe)) > 0;) {
    output.append(piece, got);
  }
  const int status = ::pclose(pipe);
  ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return output;
}

TEST_F(ServerMetricsTest, PromtoolFindsNoFaultWithThem) {
  SetEverything(server_);
  // This is the text of our own table, without what the HTTP library adds.
  const testing_support::TempDir folder;
  const std::string file = folder.File("metrics");
  std::ofstream(file) << metrics_.Render();
  bool ok = false;
  EXPECT_EQ(RunPromtool("check metrics <" + file, ok), "");
  EXPECT_TRUE(ok);
}

TEST(Alerts, PromtoolAcceptsTheRules) {
  bool ok = false;
  const std::string output =
      RunPromtool(std::string("check rules ") + SPOKE_SOURCE_DIR + "/conf/alerts.yaml", ok);
  EXPECT_TRUE(ok) << output;
  EXPECT_THAT(output, HasSubstr("42 rules found"));
}

TEST(Alerts, FireWhenTheyShouldAndNotBefore) {
  bool ok = false;
  const std::string output = RunPromtool(
      std::string("test rules ") + SPOKE_SOURCE_DIR + "/ipam-server/telemetry/alerts_test.yaml",
      ok);
  EXPECT_TRUE(ok) << output;
}

}  // namespace
}  // namespace spoke::ipam
