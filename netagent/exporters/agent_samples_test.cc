#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/exporters/agent_metrics.h"

namespace spoke::netagent {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns the text of a scrape of these samples.
std::string Scrape(const ScrapeReading& reading, TrafficSeries& series) {
  telemetry::Metrics metrics(AgentMetricTable());
  metrics.AddSource([&] { return AgentSamples(reading, series); });
  return metrics.Render();
}

size_t SeriesIn(const std::string& text) {
  size_t count = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    if (text[start] != '#') ++count;
    start = end + 1;
  }
  return count;
}

ScrapeReading WholeReading() {
  ScrapeReading reading{
      .agent = AgentReading(),
      .conntrack =
          ConntrackReading{.entries = 17, .limit = 262'144, .insert_failed = 26, .dropped = 3},
      .took = absl::Milliseconds(2)};
  TrafficTotals totals{.epoch = absl::FromUnixSeconds(1'700'000'000)};
  totals.node["forward"]["internet"] = {
      .sent = 1'000'000'000'001, .received = 2, .sent_packets = 3, .received_packets = 1};
  totals.namespaces["team-a"]["internet"] = {.sent = 1'000'000'000'001, .received = 2};
  totals.drops = {{"leak", {.packets = 5}},
                  {"peer-spoke-sent", {.packets = 6}},
                  {"peer-spoke-received", {.packets = 7}},
                  {"egress-team-a", {.packets = 8}},
                  {"egress-team-b", {.packets = 9}},
                  {"egress-limit-team-a", {.packets = 10}},
                  {"pod-share-ports", {.packets = 12}},
                  {"pod-share-rate", {.packets = 13}},
                  {"something-new", {.packets = 11}}};
  totals.drift_repaired = 4;
  totals.fast_path = true;
  totals.over_share_pods = 3;
  totals.pods = {{.pod_namespace = "team-a", .pod_name = "train-0", .pod_uid = "1"}};
  reading.agent->traffic = totals;
  reading.agent->repairs.parts[static_cast<size_t>(Part::kHostRoute)] = {.repaired = 2,
                                                                         .failed = 1};
  reading.agent->lost_dels.released = 12;
  reading.agent->adds.outcomes = {40, 1, 2, 3};
  reading.agent->adds.total = {.counts = {30, 9, 0, 0, 0, 0, 1}, .sum = absl::Seconds(12)};
  reading.agent->clearing = ConnectionClearingCounts{
      .passes = 20, .failed = 2, .deleted = 300, .took = absl::Milliseconds(1'500), .waiting = 4};
  reading.agent->connections = {{.pod_namespace = "team-a",
                                 .pod_name = "train-0",
                                 .connections = 1'500,
                                 .translated_ports = 1'200},
                                {.pod_namespace = "team-b", .pod_name = "x", .connections = 15}};
  reading.agent->cuts = EstablishedCutCounts{.peer_spoke = 5, .egress = 6, .failed = 7};
  reading.published.repaired = 1;
  reading.refused = {.unauthorized = 13, .limit = 14};
  return reading;
}

TEST(AgentSamples, AScrapeHasAllOfThem) {
  TrafficSeries series({});
  const std::string text = Scrape(WholeReading(), series);
  for (const char* line :
       {"spoke_node_bytes_total{class=\"internet\",direction=\"sent\",hook=\"forward\"} "
        "1000000000001",
        "spoke_node_packets_total{class=\"internet\",direction=\"received\",hook=\"forward\"} 1",
        "spoke_namespace_bytes_total{namespace=\"team-a\",class=\"internet\",direction=\"sent\"} "
        "1000000000001",
        "spoke_pod_bytes_total{namespace=\"_other\",pod=\"_other\",class=\"internet\",direction="
        "\"received\"} 2",
        "spoke_drops_total{reason=\"egress\"} 17",
        "spoke_drops_total{reason=\"egress-limit\"} 10",
        "spoke_drops_total{reason=\"pod-share\"} 25",
        "spoke_drops_total{reason=\"other\"} 11",
        "spoke_pod_connections{namespace=\"team-a\",pod=\"train-0\"} 1500",
        "spoke_pod_connections{namespace=\"_other\",pod=\"_other\"} 15",
        "spoke_pod_translated_ports{namespace=\"team-a\",pod=\"train-0\"} 1200",
        "spoke_leak_packets_total{kind=\"peer-spoke\"} 13",
        "spoke_leak_packets_total{kind=\"untranslated\"} 5",
        "spoke_fast_path_on 1",
        "spoke_fast_path_over_share_pods 3",
        "spoke_accounting_epoch_seconds 1700000000",
        "spoke_conntrack_entries 17",
        "spoke_conntrack_limit_entries 262144",
        "spoke_conntrack_insert_failed_total 26",
        "spoke_conntrack_drops_total 3",
        "spoke_conntrack_passes_total 20",
        "spoke_conntrack_failed_passes_total 2",
        "spoke_conntrack_pass_seconds_total 1.5",
        "spoke_conntrack_deleted_entries_total 300",
        "spoke_conntrack_waiting_addresses 4",
        "spoke_connections_cut_total{by=\"peer-spoke\"} 5",
        "spoke_connections_cut_total{by=\"egress\"} 6",
        "spoke_connection_cut_failures_total 7",
        "spoke_lost_dels_total 12",
        "spoke_adds_total{outcome=\"attached\"} 40",
        "spoke_adds_total{outcome=\"failed\"} 2",
        "spoke_add_duration_seconds_bucket{step=\"total\",le=\"0.001\"} 30",
        "spoke_add_duration_seconds_bucket{step=\"total\",le=\"0.0025\"} 39",
        "spoke_add_duration_seconds_bucket{step=\"total\",le=\"10\"} 39",
        "spoke_add_duration_seconds_bucket{step=\"total\",le=\"+Inf\"} 40",
        "spoke_add_duration_seconds_sum{step=\"total\"} 12",
        "spoke_add_duration_seconds_count{step=\"wait\"} 0",
        "spoke_scrapes_refused_total{reason=\"unauthorized\"} 13",
        "spoke_scrapes_refused_total{reason=\"limit\"} 14",
        "spoke_rules_drift_total{rules=\"published\"} 1",
        "spoke_rules_drift_total{rules=\"traffic\"} 4",
        "spoke_repairs_total{part=\"host_route\"} 2",
        "spoke_failed_repairs_total 1",
        "spoke_scrape_success{source=\"traffic\"} 1",
        "spoke_scrape_duration_seconds 0.002"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, HasSubstr("# TYPE spoke_pod_bytes_total counter\n"));
}

TEST(AgentSamples, WhatCouldNotBeReadIsLeftOutAndSaid) {
  TrafficSeries series({});
  ScrapeReading reading = WholeReading();
  reading.agent->traffic = absl::UnavailableError("tables keep changing");
  EXPECT_THAT(Scrape(reading, series),
              AllOf(HasSubstr("spoke_scrape_success{source=\"traffic\"} 0"),
                    HasSubstr("spoke_scrape_success{source=\"agent\"} 1"),
                    HasSubstr("spoke_repairs_total"), Not(HasSubstr("spoke_node_bytes_total"))));
  reading.agent = absl::DeadlineExceededError("busy");
  reading.conntrack = absl::NotFoundError("no such file");
  EXPECT_THAT(
      Scrape(reading, series),
      AllOf(HasSubstr("spoke_scrape_success{source=\"agent\"} 0"),
            HasSubstr("spoke_scrape_success{source=\"conntrack\"} 0"),
            Not(HasSubstr("spoke_repairs_total")), Not(HasSubstr("spoke_conntrack_entries"))));
}

TEST(AgentSamples, ANodeWithEverythingHasNoMoreSeriesThanPromised) {
  const SeriesLimits limits{.pod_bytes = 1};
  TrafficSeries series(limits);
  ScrapeReading reading = WholeReading();
  TrafficTotals totals = *reading.agent->traffic;
  const TrafficCount volume{.sent = 1, .received = 1, .sent_packets = 1, .received_packets = 1};
  for (const char* name : {"loopback", "platform", "cluster", "hub", "storage", "internet",
                           "peer-spoke", "group:a", "group:b"}) {
    for (const char* hook : {"forward", "input", "output"}) totals.node[hook][name] = volume;
    for (int i = 0; i < 50; ++i) {
      const std::string pod_namespace = "ns" + std::to_string(i);
      totals.namespaces[pod_namespace][name] = volume;
      totals.drops["egress-" + pod_namespace].packets = 1;
    }
  }
  for (int i = 0; i < 50; ++i) {
    const std::string pod_namespace = "ns" + std::to_string(i);
    totals.pods.push_back({.pod_namespace = pod_namespace,
                           .pod_name = "p",
                           .volumes = totals.namespaces[pod_namespace]});
  }
  for (const PodTotals& pod : totals.pods) {
    reading.agent->connections->push_back(
        {.pod_namespace = pod.pod_namespace, .pod_name = pod.pod_name, .connections = 5'000});
  }
  for (RepairCounts::OfPart& part : reading.agent->repairs.parts) part = {.repaired = 1};
  reading.agent->traffic = totals;
  Scrape(reading, series);
  for (PodTotals& pod : totals.pods) {
    for (auto& [name, moved] : pod.volumes) {
      moved.sent += 1;
      moved.received += 1;
      totals.namespaces[pod.pod_namespace][name] = moved;
    }
  }
  reading.agent->traffic = totals;
  // These are the process's own series, the certificate's and the build's, beside them.
  constexpr size_t kProcessSeries = 10;
  EXPECT_LE(SeriesIn(Scrape(reading, series)) + kProcessSeries, kMaxAgentSeries);
}

}  // namespace
}  // namespace spoke::netagent
