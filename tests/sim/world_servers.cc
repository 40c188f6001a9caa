// Servers: one leads, by a lease that it renews in the store; the others stand by.
#include <algorithm>
#include <filesystem>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "tests/sim/world.h"

namespace spoke::sim {
namespace {

// As with etcd: a leader that does not renew its lease for so long is none.
constexpr absl::Duration kLease = absl::Seconds(3);
constexpr absl::Duration kRenewal = absl::Seconds(1);

}  // namespace

ipam::ServerSettings World::ServerSettingsOf() const {
  ipam::ServerSettings settings;
  settings.pools = PoolsOf(settings_);
  settings.fleet.target = {.min = 4, .batch = 4, .spare = 0.5, .max = 60};
  settings.fleet.release = {.idle_time = absl::Minutes(2),
                            .jitter_spread = absl::Minutes(1),
                            .hysteresis = 4,
                            .denial_backoff = absl::Minutes(1)};
  settings.fleet.breaker.floor = LawSettingsOf(settings_).breaker_floor;
  settings.fleet.cloud_chooses = settings_.azure;
  settings.new_store_id = "store";
  return settings;
}

void World::AddHost(size_t index) {
  hosts_.push_back(std::make_unique<Host>());
  Host& host = *hosts_.back();
  host.index = index;
  host.alarm = std::make_unique<Alarm>(schedule_, [this, &host] { GoRound(host); });
  host.random = std::make_unique<Random>(RandomFor(settings_.seed, fmt::format("host {}", index)));
  host.ahead = host.random->Between(-absl::Minutes(2), absl::Minutes(2));
  host.drift = settings_.drift * (2 * host.random->Fraction() - 1);
  host.down_until = schedule_.now();
  host.leads_until = schedule_.now();
  std::filesystem::create_directories(fmt::format("{}/{}", directory_, index));
  Campaign(host);
}

// Leads if nobody else does, renews the lease of a leader, and looks again soon.
void World::Campaign(Host& host) {
  const absl::Duration wait = host.random->Between(kRenewal * 0.5, kRenewal);
  schedule_.After(wait, [this, &host] { Campaign(host); });
  if (host.server && schedule_.now() < host.server->life().still_until()) return;
  if (schedule_.now() < host.down_until || host.store_faults.unreachable) {
    if (host.server && schedule_.now() > host.leads_until) host.server->EndStreams();
    return;
  }
  if (host.server) {
    if (host.server->term() != disks_.term()) return BuryServer(host, false, absl::Seconds(1));
    lease_until_ = schedule_.now() + kLease;
    host.leads_until = lease_until_;
  } else if (schedule_.now() >= lease_until_) {
    Lead(host);
  }
}

void World::Lead(Host& host) {
  lease_until_ = schedule_.now() + kLease;
  host.leads_until = lease_until_;
  const uint64_t term = disks_.BeginTerm();
  const MachineClock clock(schedule_, host.ahead, host.drift);
  auto server = Server::Start(
      Server::Edges{.index = host.index,
                    .schedule = schedule_,
                    .network = network_,
                    .trace = trace_,
                    .disks = disks_,
                    .provider = *provider_,
                    .store_faults = host.store_faults,
                    .shares_budget = settings_.budget,
                    .random = *host.random,
                    .watcher = laws_,
                    .write_margin = [this, &host] { return host.leads_until - schedule_.now(); },
                    .witness_directory = fmt::format("{}/{}", directory_, host.index),
                    .boot_id = fmt::format("host-{}-boot-{}", host.index, host.boots),
                    .keys = {.present = std::string(32, 'k'), .made = term == 1}},
      ServerSettingsOf(), term, clock);
  trace_.Say("server {} leads term {}: {}", host.index, term, base::MessageOf(server.status()));
  trace_.Count("server started");
  if (!server.ok()) return;
  host.server = *std::move(server);
  leads_since_ = schedule_.now();
  Tend(host);
}

void World::Tend(Host& host) {
  if (!host.server) return;
  const bool ends = host.server->life().dead() || host.server->deposed();
  const absl::Time turn = std::max(host.server->NextTurn(), host.server->life().still_until());
  host.alarm->Set(ends ? schedule_.now() : turn);
}

void World::GoRound(Host& host) {
  if (!host.server) return;
  if (host.server->life().dead() || host.server->deposed()) {
    return BuryServer(host, false, absl::Milliseconds(300));
  }
  if (schedule_.now() >= host.server->life().still_until()) host.server->Turn();
  Tend(host);
}

void World::BuryServer(Host& host, bool silent, absl::Duration least_pause) {
  trace_.Say("server {} is dead", host.index);
  trace_.Count("server died");
  // A process that ends gives its lease up, as others find out that it has ended.
  if (!silent && host.server->term() == disks_.term() && host.random->Chance(0.5)) {
    lease_until_ = schedule_.now();
  }
  network_.EndServer(host.index, silent);
  host.server.reset();
  host.down_until = schedule_.now() + host.random->Between(least_pause, 4 * least_pause);
}

World::Host* World::Leader() {
  for (const auto& host : hosts_) {
    if (host->server && host->server->term() == disks_.term()) return host.get();
  }
  return nullptr;
}

}  // namespace spoke::sim
