#include "tests/sim/cloud/azure_client.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "tests/sim/mutant.h"

namespace spoke::sim {
namespace {

// What a message takes one way; now and then the network is slow.
constexpr absl::Duration kLeast = absl::Milliseconds(20);
constexpr absl::Duration kMost = absl::Milliseconds(150);
constexpr absl::Duration kSlowest = absl::Seconds(8);
constexpr double kSlowShare = 0.02;

ipam::azure::Settings SettingsOf(const std::string& scale_set, bool blocks) {
  ipam::azure::Settings settings;
  settings.endpoints.resource_manager = "https://management.azure.com";
  settings.identities.resize(1);
  settings.scale_sets.push_back(scale_set);
  settings.listing = absl::Seconds(60);
  settings.blocks_on_nics = blocks;
  settings.blocks_on_scale_sets = blocks;
  return settings;
}

absl::Duration OneWay(Random& random) {
  return random.Between(kLeast, random.Chance(kSlowShare) ? kSlowest : kMost);
}

}  // namespace

AzureClient::AzureClient(Edges edges, const std::string& scale_set, ipam::CloudAnswer answer)
    : edges_(std::move(edges)),
      answer_(std::move(answer)),
      state_(SettingsOf(scale_set, edges_.blocks), edges_.client.random.Next()) {}

void AzureClient::Request(ipam::NicRequest desired) {
  if (!edges_.client.life.Acts()) return;
  state_.Request(std::move(desired), Now());
  WorkSoon();
}

void AzureClient::List(ipam::CloudListed listed) {
  listings_.push_back(std::move(listed));
  state_.List(Now());
  WorkSoon();
}

std::optional<ipam::CloudForecast> AzureClient::ForecastOf(const ipam::NodeKey& node) const {
  return state_.ForecastOf(node, Now());
}

// The client has a thread of its own.
void AzureClient::WorkSoon() { WorkAt(edges_.schedule.now()); }

void AzureClient::WorkAt(absl::Time at) {
  at = std::max({at, edges_.schedule.now(), edges_.client.life.still_until()});
  if (at >= next_work_ || at == absl::InfiniteFuture()) return;
  next_work_ = at;
  edges_.schedule.At(at, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired() || next_work_ != edges_.schedule.now()) return;
    next_work_ = absl::InfiniteFuture();
    Work();
  });
}

void AzureClient::Work() {
  if (edges_.client.life.dead()) return;
  if (edges_.schedule.now() < edges_.client.life.still_until()) return WorkSoon();
  const absl::Duration margin =
      Mutant(38) ? absl::InfiniteDuration() : edges_.client.write_margin();
  for (ipam::azure::MachineCall& call : state_.Next(Now(), margin)) Send(std::move(call));
  HandOver();
  WorkAt(edges_.client.clock.When(state_.NextWake()));
}

void AzureClient::Send(ipam::azure::MachineCall call) {
  if (!edges_.client.life.Acts()) return;
  Random& random = edges_.client.random;
  const bool writes = call.request.method == "PUT";
  const absl::Duration there = OneWay(random);
  const absl::Duration back = OneWay(random);
  const absl::Time gives_up = edges_.schedule.now() + call.timeout;
  edges_.schedule.After(there, [this, alive = std::weak_ptr(alive_), &schedule = edges_.schedule,
                                &trace = edges_.trace, handle = edges_.handle, writes, back,
                                gives_up, call = std::move(call)]() mutable {
    const std::string principal = fmt::format("principal{}", call.principal);
    http::Response response = handle(std::move(call.request), principal);
    if (writes) {
      trace.Say("azure answers a write: {}", response.status);
      trace.Count(fmt::format("Azure answered a write with {}", response.status));
      if (alive.expired()) trace.Count("cloud carried out for a dead server");
      if (response.status == 0) trace.Count("cloud answer lost");
    }
    const bool lost = response.status == 0 || schedule.now() + back >= gives_up;
    schedule.At(lost ? gives_up : schedule.now() + back,
                [this, alive, lost, id = call.id, response = std::move(response)] {
                  if (alive.expired()) return;
                  if (lost) return Receive(id, absl::DeadlineExceededError("no answer in time"));
                  Receive(id, response);
                });
  });
}

void AzureClient::Receive(uint64_t call, const absl::StatusOr<http::Response>& response) {
  const Life& life = edges_.client.life;
  if (life.dead()) return;
  if (edges_.schedule.now() < life.still_until()) {
    edges_.schedule.At(life.still_until(), [this, alive = std::weak_ptr(alive_), call, response] {
      if (!alive.expired()) Receive(call, response);
    });
    return;
  }
  state_.OnResponse(call, response, Now());
  HandOver();
  WorkSoon();
}

void AzureClient::HandOver() {
  for (ipam::azure::MachineAnswer& answer : state_.TakeAnswers()) {
    answer_(answer.node, std::move(answer.result));
  }
  for (ipam::CloudListing& listing : state_.TakeListings()) {
    CHECK(!listings_.empty(), "somebody waits for the listing");
    const ipam::CloudListed listed = std::move(listings_.front());
    listings_.pop_front();
    listed(std::move(listing));
  }
}

}  // namespace spoke::sim
