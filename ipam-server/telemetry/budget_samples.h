// Budgets as Prometheus gets them, read at each scrape. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ipam-server/budget/budget_book.h"
#include "lib/telemetry/metrics.h"
#include "lib/telemetry/samples.h"

namespace spoke::ipam {

// The budgets beyond, by name, have no series.
inline constexpr size_t kMaxBudgetSeries = 100;
// The teams of a budget beyond, by name, share "_other".
inline constexpr size_t kMaxBudgetTeamSeries = 100;

// The rows of the table that they fill.
std::vector<telemetry::MetricSpec> BudgetMetricSpecs();

// `reports`: of nodes, taken; `grants`: messages sent to nodes; both since the start.
std::vector<telemetry::Samples> BudgetSamples(const std::vector<BudgetStanding>& standings,
                                              uint64_t reports, uint64_t grants);

}  // namespace spoke::ipam
