// The agent's metrics: their table, and their samples as of one scrape. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/telemetry/metrics.h"
#include "netagent/exporters/agent_reading.h"
#include "netagent/exporters/conntrack.h"
#include "netagent/exporters/traffic_series.h"
#include "netagent/iptables/published_rules_keeper.h"
#include "netagent/node/node_watch.h"

namespace spoke::netagent {

// The most grants with series of their own: those that use most.
inline constexpr size_t kMaxGrantSeries = 6;

// The most series. More than docs/METRICS.md promises is a bug: with the default SeriesLimits,
// whatever a node does.
inline constexpr size_t kMaxAgentSeries = 264;

std::vector<telemetry::MetricSpec> AgentMetricTable();

// The requests of strangers that the endpoints have not answered.
struct RefusedScrapes {
  uint64_t unauthorized = 0;
  uint64_t limit = 0;  // Requests over the limit: too many connections, or too often.
};

struct ScrapeReading {
  absl::StatusOr<AgentReading> agent = absl::UnavailableError("not read");
  absl::StatusOr<ConntrackReading> conntrack = absl::UnavailableError("not read");
  PublishedRulesState published;
  NodeFindingCounts node;
  RefusedScrapes refused;
  absl::Duration took;
};

// Returns the samples. What could not be read is left out, and spoke_scrape_success says so.
std::vector<telemetry::Samples> AgentSamples(const ScrapeReading& reading, TrafficSeries& series);

// Return the tables of the two compatible exporters, whose samples exporters/iptables_series.h
// makes.
std::vector<telemetry::MetricSpec> CommentMetricTable();
std::vector<telemetry::MetricSpec> RuleMetricTable();

}  // namespace spoke::netagent
