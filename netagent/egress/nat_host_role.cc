#include "netagent/egress/nat_host_role.h"

#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/egress/endpoint_text.h"

namespace spoke::netagent {

NatHostRole::NatHostRole(NatHostSettings settings, nft::Tables& tables, telemetry::Log& log)
    : settings_(std::move(settings)), tables_(tables), log_(log) {}

void NatHostRole::SetClasses(ClassMap classes) {
  if (classes_ && *classes_ == classes) return;
  classes_ = std::move(classes);
  pending_ = true;
}

void NatHostRole::Read() {
  auto text = os::ReadFile(settings_.endpoints, kMaxEndpointBytes);
  if (text.ok() && *text == text_) return;
  auto table = text.ok() ? ParseEndpoints(*text) : text.status();
  if (!table.ok()) {
    const absl::Status problem = base::Annotate(table.status(), settings_.endpoints);
    if (problem != problem_) log_.Warn("endpoints_refused", {{"error", problem}});
    problem_ = problem;
    return;
  }
  text_ = *std::move(text);
  problem_ = absl::OkStatus();
  // A file that says the same anew is younger, and no more.
  pending_ = pending_ || !table_ || table_->services != table->services;
  table_ = *std::move(table);
}

absl::Status NatHostRole::Apply() {
  std::vector<nft::RuleReading> seen;
  auto rules = tables_.ReadRules(kSpokeTable);
  if (rules.ok()) {
    seen = *std::move(rules);
  } else if (!absl::IsNotFound(rules.status())) {
    return rules.status();
  }
  nft::Transaction transaction;
  transaction.Add(kSpokeTable, nft::AddTable{});
  // Without a table nothing is behind any Service, and says so.
  const bool own = !settings_.endpoints.empty();
  RETURN_IF_ERROR(
      AppendNatHost(*classes_, own ? std::optional(table_.value_or(EndpointTable())) : std::nullopt,
                    seen, transaction));
  return tables_.Apply(transaction);
}

void NatHostRole::Tick(absl::Time now) {
  if (now < next_) return;
  next_ = now + kLook;
  if (!settings_.endpoints.empty()) Read();
  if (!pending_ || !classes_) return;
  absl::Status status = Apply();
  pending_ = !status.ok();
  if (!status.ok() && status != applied_) {
    log_.Warn("nat_host_not_applied", {{"error", status}});
  }
  applied_ = std::move(status);
}

absl::Status NatHostRole::Health(absl::Time now) const {
  if (!applied_.ok()) return absl::UnavailableError(applied_.message());
  if (settings_.endpoints.empty()) return absl::OkStatus();
  if (!table_) {
    return absl::UnavailableError(problem_.ok() ? "no endpoints yet" : problem_.message());
  }
  // The file may have been written ahead of this node's clock, which is no reason to fail.
  const absl::Duration age = now - table_->generated;
  if (age > settings_.max_age) {
    return absl::UnavailableError(
        fmt::format("endpoints are {} old; {} is allowed",
                    absl::FormatDuration(absl::Trunc(age, absl::Seconds(1))),
                    absl::FormatDuration(settings_.max_age)));
  }
  return absl::OkStatus();
}

}  // namespace spoke::netagent
