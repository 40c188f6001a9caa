// Listings and forecasts: what is told of all VMs at once.
#include <algorithm>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "ipam-server/cloud/azure/azure_state.h"

namespace spoke::ipam::azure {
namespace {

// Forecasts of thousands are made together; asking for them one after the other costs nothing.
constexpr absl::Duration kForecastAge = absl::Seconds(1);
// What comes before and after an operation: reads.
constexpr absl::Duration kReads = absl::Seconds(3);

}  // namespace

void AzureState::List(absl::Time now) {
  ++listings_wanted_;
  if (listings_at_work_ == 0) StartListing(now);
}

void AzureState::StartListing(absl::Time now) {
  listings_at_work_ = std::exchange(listings_wanted_, 0);
  listing_since_ = now;
  listing_status_ = absl::OkStatus();
  listing_.clear();
  for (auto& [id, set] : sets_) set.listing_due = true;
  for (auto& [id, set] : sets_) {
    if (!set.info.has_value()) {
      QueueScaleSet(set, now);
    } else if (set.sweep == nullptr) {
      StartSweep(set, now);
    }
  }
  if (sets_.empty()) {
    listings_.emplace_back(std::vector<NicAddresses>());
    listings_at_work_ = 0;
  }
}

void AzureState::AddToListing(Set& set, const absl::Status& status, absl::Time now) {
  set.listing_due = false;
  if (!status.ok()) listing_status_.Update(absl::UnavailableError(status.message()));
  const bool whole = std::none_of(sets_.begin(), sets_.end(),
                                  [](const auto& entry) { return entry.second.listing_due; });
  if (!whole) return;
  std::sort(listing_.begin(), listing_.end(), [](const NicAddresses& a, const NicAddresses& b) {
    return std::tie(a.instance, a.nic_mac) < std::tie(b.instance, b.nic_mac);
  });
  for (; listings_at_work_ > 0; --listings_at_work_) {
    if (listing_status_.ok()) {
      listings_.emplace_back(listing_);
    } else {
      listings_.emplace_back(listing_status_);
    }
  }
  listing_.clear();
  if (listings_wanted_ > 0) StartListing(now);
}

std::vector<absl::StatusOr<std::vector<NicAddresses>>> AzureState::TakeListings() {
  return std::exchange(listings_, {});
}

void AzureState::RefreshForecasts(absl::Time now) {
  std::map<std::tuple<std::string, std::string, bool>, size_t> groups;
  std::vector<GroupPace> paces;
  std::vector<ForecastInput> inputs;
  std::vector<const InstanceWork*> works;
  for (const auto& [vm, entry] : works_) {
    const InstanceWork& work = *entry.work;
    if (work.idle()) continue;
    const Set& set = *entry.set;
    const std::string subscription(work.id().subscription());
    const std::string region = set.info.has_value() ? set.info->region : "";
    const auto [group, fresh] =
        groups.try_emplace({subscription, region, work.is_flexible()}, groups.size());
    if (fresh) {
      GroupPace pace;
      const CallKind kind = work.is_flexible() ? CallKind::kPutNic : CallKind::kPutInstance;
      for (const CloudLane lane : kCloudLanes) {
        pace.lanes.at(static_cast<size_t>(lane)) =
            plan_.PaceOf(kind, lane, subscription, region, now);
      }
      pace.latency = kReads + (work.is_flexible() ? network_pace_ : compute_pace_).first_poll();
      paces.push_back(std::move(pace));
    }
    ForecastInput input{.lane = work.lane(),
                        .since = work.since(),
                        .group = group->second,
                        .sent = work.is_sent(),
                        .parked_for = ""};
    const auto gate = [&](const std::string& scope) {
      const CloudGate* closed = plan_.ParkedAt(scope, now);
      if (closed == nullptr || closed->closed_until <= input.not_before) return;
      input.not_before = closed->closed_until;
      input.parked_for = closed->why;
    };
    const std::string_view way = input.sent ? "read" : "write";
    gate(fmt::format("{}:{}", way, vm));
    gate(fmt::format("{}:{}", way, set.id.text()));
    if (!input.sent) gate(std::string(kEveryWrite));
    if (!work.subnet().empty() && !work.request().wanted.empty() && !input.sent) {
      gate(fmt::format("subnet:{}", work.subnet()));
    }
    inputs.push_back(std::move(input));
    works.push_back(&work);
  }
  const std::vector<ForecastOutput> outputs = ForecastRequests(inputs, paces, now);
  forecasts_.clear();
  for (size_t i = 0; i < works.size(); ++i) {
    forecasts_[works[i]->request().node] = {
        .lane = inputs[i].lane, .eta = outputs[i].eta, .waits_for = outputs[i].waits_for};
  }
  forecasts_at_ = now;
}

CloudLoad AzureState::Load(absl::Time now) const {
  CloudLoad load{.limits_left = plan_.LimitsLeft(now)};
  for (const auto& [vm, entry] : works_) {
    if (!entry.work->idle()) ++load.waiting.at(static_cast<size_t>(entry.work->lane()));
  }
  return load;
}

std::optional<CloudForecast> AzureState::ForecastOf(const NodeKey& node, absl::Time now) {
  const auto vm = vm_of_.find(node);
  if (vm == vm_of_.end()) return std::nullopt;
  const auto work = works_.find(vm->second);
  if (work == works_.end() || work->second.work->idle()) return std::nullopt;
  if (now - forecasts_at_ > kForecastAge || !forecasts_.contains(node)) RefreshForecasts(now);
  const auto forecast = forecasts_.find(node);
  return forecast == forecasts_.end() ? std::nullopt : std::optional(forecast->second);
}

std::map<NodeKey, CloudForecast> AzureState::Forecasts(absl::Time now) {
  RefreshForecasts(now);
  return forecasts_;
}

}  // namespace spoke::ipam::azure
