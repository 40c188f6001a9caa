#include "tests/sim/world.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "tests/sim/cloud/azure_provider.h"
#include "tests/sim/cloud/plain_provider.h"

namespace spoke::sim {
namespace {

// Azure's subnets of IPv6 have this size, and no other.
constexpr std::string_view kAzureIpv6Subnet = "fd00:a::/64";
constexpr std::string_view kIpv6Pool = "fd00:a::/118";

// A directory that no other world has, nor one that was killed has left; its name is nowhere in the
// trace.
std::string NewDirectory() {
  const std::filesystem::path memory = "/dev/shm";
  const std::filesystem::path root =
      std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path();
  std::string name = (root / "spoke-sim-XXXXXX").string();
  CHECK(::mkdtemp(name.data()) != nullptr, "a directory for the world can be made");
  return name;
}

}  // namespace

std::vector<ipam::PoolSpec> PoolsOf(const WorldSettings& settings) {
  std::vector<ipam::PoolSpec> pools;
  pools.push_back({.name = "default",
                   .cidr = ip::Prefix::Parse(settings.pool).value(),
                   .block_length = settings.block_length});
  if (settings.ipv6) {
    const std::string_view cidr = settings.azure ? kAzureIpv6Subnet : kIpv6Pool;
    pools.push_back({.name = "six", .cidr = ip::Prefix::Parse(cidr).value()});
  }
  if (settings.team_pool && !settings.azure) {
    pools.push_back({.name = "team",
                     .cidr = ip::Prefix::Parse("10.2.0.0/24").value(),
                     .block_length = settings.block_length,
                     .namespaces = {std::string(kTeam)}});
  }
  return pools;
}

std::vector<ip::Prefix> SubnetsOf(const WorldSettings& settings) {
  std::vector<ip::Prefix> subnets;
  for (const ipam::PoolSpec& pool : PoolsOf(settings)) subnets.push_back(pool.cidr);
  return subnets;
}

LawSettings LawSettingsOf(const WorldSettings& settings) {
  LawSettings laws{.pools = PoolsOf(settings)};
  // Operators make pools, too.
  laws.pools.push_back({.name = "more", .cidr = ip::Prefix::Parse(kMorePoolsCidr).value()});
  // A few blocks of 16.
  if (settings.block_length != 0) laws.breaker_floor = 48;
  return laws;
}

World::World(const WorldSettings& settings)
    : settings_(settings),
      network_random_(RandomFor(settings.seed, "network")),
      laws_(LawSettingsOf(settings), schedule_, fabric_, disks_),
      directory_(NewDirectory()),
      lease_until_(schedule_.now()),
      operators_(RandomFor(settings.seed, "operators")) {
  Provider::Edges edges{
      .fabric = fabric_,
      .schedule = schedule_,
      .trace = trace_,
      .faults = cloud_faults_,
      .changed_by_others = [this](const auto& vm,
                                  const auto& lost) { OnChangedByOthers(vm, lost); },
      .overwritten = [this] { laws_.Break(12, "a server has overwritten others unread"); }};
  if (settings_.azure) {
    provider_ = std::make_unique<AzureProvider>(std::move(edges), SubnetsOf(settings_),
                                                settings_.block_length != 0, settings_.seed);
  } else {
    provider_ = std::make_unique<PlainProvider>(std::move(edges));
  }
  for (size_t i = 0; i < static_cast<size_t>(settings_.servers); ++i) AddHost(i);
  for (int i = 0; i < settings_.nodes; ++i) AddNode(fmt::format("node-{}", i));
}

World::~World() {
  for (const auto& node : nodes_) {
    if (node->agent) node->agent->life().Die();
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void World::Run(absl::Duration until) {
  const absl::Time end = schedule_.began() + until;
  while (!laws_.broken() && schedule_.Step(end)) {
  }
}

void World::Follow(const Plan& plan) {
  for (const PlannedEvent& event : plan) {
    schedule_.At(schedule_.began() + event.at, [this, event] {
      trace_.Say("plan {}", Describe(event));
      Do(event);
    });
  }
}

void World::OnOpened(StreamId stream, size_t server) {
  Host& host = *hosts_[server];
  if (!host.server) return network_.EndOfServer(stream, absl::UnavailableError("nobody listens"));
  host.server->Opened(stream);
}

void World::OnAgentMessage(StreamId stream, size_t server, v1::AgentMessage message) {
  Host& host = *hosts_[server];
  if (!host.server) return;
  host.server->Hear(stream, std::move(message));
  Tend(host);
}

void World::OnAgentEnded(StreamId stream, size_t server) {
  Host& host = *hosts_[server];
  if (!host.server) return;
  host.server->Ended(stream);
  Tend(host);
}

void World::OnServerMessage(StreamId stream, size_t node_index, v1::ServerMessage message) {
  Node& node = *nodes_[node_index];
  if (!node.agent) return;
  node.agent->Hear(stream, std::move(message));
  Tend(node);
}

void World::OnServerEnded(StreamId stream, size_t node_index, const absl::Status& why) {
  Node& node = *nodes_[node_index];
  if (!node.agent) return;
  node.agent->Ended(stream, why);
  Tend(node);
}

}  // namespace spoke::sim
