#include "netagent/exporters/exporters.h"

#include <utility>

#include "absl/time/clock.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/rpc/certificate_metrics.h"
#include "lib/telemetry/process_metrics.h"
#include "netagent/exporters/iptables_series.h"
#include "netagent/exporters/series_state.h"

namespace spoke::netagent {
namespace {

constexpr absl::Duration kRound = absl::Seconds(10);

}  // namespace

Exporters::Exporters(Settings settings, Edges edges)
    : settings_(std::move(settings)),
      edges_(std::move(edges)),
      keeper_({.cluster = settings_.config.iptables_exporter.cluster,
               .legacy_command = settings_.legacy_command,
               .legacy_is_default = settings_.legacy_is_default},
              {.nft = edges_.nft, .legacy = edges_.legacy, .log = edges_.log}),
      agent_metrics_(AgentMetricTable()),
      comment_metrics_(CommentMetricTable()),
      rule_metrics_(RuleMetricTable()) {
  const auto text = os::ReadFile(settings_.state_file, kMaxSeriesStateBytes);
  absl::StatusOr<SeriesState> state = text.ok() ? DecodeSeriesState(*text) : text.status();
  // Without the state, series begin at 0 or with what was "_other": a jump, once.
  if (!state.ok() && !absl::IsNotFound(state.status())) {
    edges_.log.Warn("series_state_unreadable", {{"error", state.status()}});
  }
  if (state.ok()) saved_ = *std::move(state);
  series_.emplace(
      SeriesLimits{.namespaces = settings_.config.namespaces, .pods = settings_.config.pods},
      saved_);
  telemetry::AddProcessMetrics(agent_metrics_);
  agent_metrics_.GetGauge("spoke_agent_build_info", {settings_.version}).Set(1);
  agent_metrics_.AddSource([this] { return ScrapeAgent(); });
  agent_metrics_.AddSource([this] { return rpc::CertificateSamples(settings_.tls); });
  comment_metrics_.AddSource([this] { return ScrapeComments(); });
  rule_metrics_.AddSource([this] { return ScrapeRules(); });
}

Exporters::~Exporters() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Exporters::Start() {
  OpenEndpoints();
  thread_ = std::thread([this] { Run(); });
}

void Exporters::Run() {
  bool stop = false;
  while (!stop) {
    Round();
    const absl::MutexLock lock(&mutex_);
    stop = mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kRound);
  }
}

void Exporters::Round() {
  keeper_.Tick(edges_.clock.Now());
  const auto conntrack = edges_.read_conntrack();
  if (conntrack.ok() && conntrack_watch_.Look(*conntrack)) {
    edges_.log.Warn("conntrack_nearly_full",
                    {{"entries", conntrack->entries}, {"limit", conntrack->limit}});
  }
  if (endpoint_missing_ && edges_.clock.Now() >= next_endpoints_) OpenEndpoints();
}

void Exporters::OpenEndpoints() {
  next_endpoints_ = edges_.clock.Now() + kEndpointRetry;
  const bool told = endpoint_missing_;
  endpoint_missing_ = false;
  const IptablesExporterConfig& iptables = settings_.config.iptables_exporter;
  const std::pair<const std::string*, std::pair<telemetry::Metrics*, Endpoint*>> wanted[] = {
      {&settings_.config.address, {&agent_metrics_, &agent_endpoint_}},
      {&iptables.address, {&comment_metrics_, &comment_endpoint_}},
      {&iptables.retailnext_address, {&rule_metrics_, &rule_endpoint_}}};
  for (const auto& [address, to] : wanted) {
    if (address->empty() || *to.second != nullptr) continue;
    auto opened = telemetry::TextEndpoint::Open(
        {.address = *address, .token_file = settings_.config.token_file},
        telemetry::MetricsPage([metrics = to.first] { return metrics->Render(); }));
    if (opened.ok()) {
      const absl::MutexLock lock(&mutex_);
      refusals_.push_back((*opened)->refusals());
      *to.second = *std::move(opened);
      edges_.log.Info("metrics_served", {{"address", *address}});
      continue;
    }
    endpoint_missing_ = true;
    if (!told) edges_.log.Warn("metrics_not_served", {{"error", opened.status()}});
  }
}

std::vector<telemetry::Samples> Exporters::ScrapeAgent() {
  const absl::Time began = absl::Now();
  ScrapeReading reading{.agent = edges_.read_agent(kLoopPatience),
                        .conntrack = edges_.read_conntrack(),
                        .published = keeper_.state(),
                        .node = edges_.read_node(),
                        .refused = CountRefused()};
  reading.took = absl::Now() - began;
  std::vector<telemetry::Samples> samples = AgentSamples(reading, *series_);
  if (series_->state() != saved_) {
    saved_ = series_->state();
    // The state is written before anybody sees the series. Should that fail, a restart shows a
    // jump, and no more.
    static_cast<void>(os::WriteFileAtomic(settings_.state_file, EncodeSeriesState(saved_),
                                          os::Durability::kVisible));
  }
  return samples;
}

RefusedScrapes Exporters::CountRefused() {
  const absl::MutexLock lock(&mutex_);
  RefusedScrapes out;
  for (const auto& endpoint : refusals_) {
    const rpc::RefusalCounts counts = endpoint->counts();
    for (size_t i = 0; i < counts.size(); ++i) {
      (static_cast<rpc::Refusal>(i) == rpc::Refusal::kUnauthorized ? out.unauthorized
                                                                   : out.limit) += counts[i];
    }
  }
  return out;
}

absl::StatusOr<std::vector<IptablesTable>> Exporters::ReadIptables(ip::Family family) {
  const std::vector<std::string>& tables = settings_.config.iptables_exporter.tables;
  auto nft = edges_.nft.Read(family, tables);
  auto legacy = edges_.legacy.Read(family, tables);
  // Tables that nothing here can read are those of a container's iptables.
  if (absl::IsUnimplemented(legacy.status())) legacy = std::vector<IptablesTable>();
  const absl::Status status = nft.ok() ? legacy.status() : nft.status();
  {
    const absl::MutexLock lock(&mutex_);
    if (!status.ok() && iptables_readable_) {
      edges_.log.Warn("iptables_unreadable", {{"error", status}});
    }
    iptables_readable_ = status.ok();
  }
  RETURN_IF_ERROR(status);
  return MergeBackends(*std::move(nft), *legacy);
}

std::vector<telemetry::Samples> Exporters::ScrapeComments() {
  const auto v4 = ReadIptables(ip::Family::kV4);
  const auto v6 = ReadIptables(ip::Family::kV6);
  // Half of it would be taken for the whole.
  if (!v4.ok() || !v6.ok()) return {};
  return CommentSeries(*v4, *v6);
}

std::vector<telemetry::Samples> Exporters::ScrapeRules() {
  const absl::Time began = absl::Now();
  const auto v4 = ReadIptables(ip::Family::kV4);
  const double took = absl::ToDoubleSeconds(absl::Now() - began);
  std::vector<telemetry::Samples> samples =
      v4.ok() ? RuleSeries(*v4) : std::vector<telemetry::Samples>();
  samples.push_back({.metric = "iptables_scrape_duration_seconds", .series = {{{}, took}}});
  samples.push_back({.metric = "iptables_scrape_success", .series = {{{}, v4.ok() ? 1.0 : 0.0}}});
  return samples;
}

}  // namespace spoke::netagent
