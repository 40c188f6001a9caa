// A node with a pod and two egress gateways behind the tunnel, in namespaces. Round by round the
// tunnel into one gateway is cut: how long new connections get no answer, whether those by the
// other gateway lose a packet, and how long until the first is used again. Prints one JSON object.
#include <unistd.h>

#include <atomic>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/core.h"
#include "gtest/gtest.h"
#include "lib/os/clock.h"
#include "nlohmann/json.hpp"
#include "tests/netns/egress/egress_tunnel_world.h"

namespace spoke::netagent {
namespace {

// The number of destinations outside, so many that each gateway has some of them: a pair of
// addresses has a gateway.
constexpr uint32_t kDestinations = 16;
constexpr absl::Duration kGiveUp = absl::Seconds(60);

// The address is 8.8.8.x.
ip::Address Destination(uint32_t i) { return ip::Address::V4(0x08080800 + i); }

// Does the agent's part on a thread of its own, at the pace of the agent's loop.
class AgentLoop {
 public:
  explicit AgentLoop(EgressTunnelWorld& world)
      : thread_([this, &world] {
          while (!stop_) {
            world.TakeConnections();
            if (world.gateways().Tick()) world.SetAgain();
            healthy_ = world.Healthy(ip::Family::kV4).size();
            ::usleep(5'000);
          }
        }) {}
  ~AgentLoop() {
    stop_ = true;
    thread_.join();
  }
  size_t healthy() const { return healthy_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<size_t> healthy_ = 0;
  std::thread thread_;
};

struct Destined {
  ip::Address to;
  UdpServer server;
  UdpFlow flow;      // The flow, established before the cut.
  std::string from;  // The gateway that it goes by.
};

std::vector<Destined> Establish(const EgressWorld& net) {
  std::vector<Destined> all;
  for (uint32_t i = 0; i < kDestinations; ++i) {
    const ip::Address to = Destination(i);
    Destined& one = all.emplace_back(Destined{to, net.Serve(to), net.Flow(to), ""});
    one.from = Ask(one.flow, one.server);
  }
  return all;
}

bool WaitUntil(const std::function<bool()>& is) {
  const absl::Time deadline = absl::Now() + kGiveUp;
  while (!is()) {
    if (absl::Now() > deadline) return false;
    ::usleep(5'000);
  }
  return true;
}

struct Round {
  double failover_s = 0;
  double back_s = 0;
  uint64_t others_asked = 0;
  uint64_t others_lost = 0;
};

// Cuts gateway `cut` off and joins it again. Nullopt: it did not do what it should.
std::optional<Round> RunRound(const EgressWorld& net, const AgentLoop& agent, size_t cut) {
  std::vector<Destined> all = Establish(net);
  const std::string broken = AddressesOf(ip::Family::kV4).gateways[cut].ToString();
  std::vector<Destined*> moved, others;
  for (Destined& one : all) (one.from == broken ? moved : others).push_back(&one);
  if (moved.empty() || others.empty()) {
    std::cerr << fmt::format("spoke-gateway-bench: {} of {} destinations by {}\n", moved.size(),
                             all.size(), broken);
    return std::nullopt;
  }

  Round round;
  Nft(net.gateway(cut),
      "table inet broken { chain c { type filter hook input priority -400; udp dport 4789 drop; }; "
      "}");
  const absl::Time begun = absl::Now();
  absl::Time last_failure = begun;
  // This goes on until new connections to every destination of the gateway have been answered once.
  for (size_t answered = 0, i = 0; answered < moved.size(); ++i) {
    const absl::Time now = absl::Now();
    if (now - begun > kGiveUp) {
      std::cerr << "spoke-gateway-bench: new connections found no other gateway\n";
      return std::nullopt;
    }
    UdpFlow fresh = net.Flow(moved[i % moved.size()]->to);
    const bool ok = Ask(fresh, moved[i % moved.size()]->server) == others[0]->from;
    answered = ok ? answered + 1 : 0;
    if (!ok) last_failure = now;
    Destined& other = *others[i % others.size()];
    ++round.others_asked;
    if (Ask(other.flow, other.server) != other.from) ++round.others_lost;
  }
  round.failover_s = absl::ToDoubleSeconds(last_failure - begun);

  Nft(net.gateway(cut), "delete table inet broken");
  const absl::Time joined = absl::Now();
  if (!WaitUntil([&] { return agent.healthy() == 2; })) return std::nullopt;
  round.back_s = absl::ToDoubleSeconds(absl::Now() - joined);
  for (Destined* other : others) {
    ++round.others_asked;
    if (Ask(other->flow, other->server) != other->from) ++round.others_lost;
  }
  return round;
}

int Run(int rounds) {
  const os::MonotonicClock clock;
  const auto world = EgressTunnelWorld::Make(clock);
  if (world == nullptr) {
    std::cerr << "spoke-gateway-bench: needs CAP_SYS_ADMIN, to make network namespaces\n";
    return 1;
  }
  for (uint32_t i = 0; i < kDestinations; ++i) {
    const std::string address = Destination(i).ToString();
    if (address == AddressesOf(ip::Family::kV4).internet.ToString()) continue;
    Ip(world->net().outside(), fmt::format("address add {}/32 dev {}", address, EgressWorld::kNic));
    Ip(world->net().network(), fmt::format("route add {}/32 dev outside", address));
  }
  world->SetTunnel();
  const AgentLoop agent(*world);
  if (!WaitUntil([&] { return agent.healthy() == 2; })) {
    std::cerr << "spoke-gateway-bench: the gateways do not answer\n";
    return 1;
  }
  nlohmann::json out = {{"failover_s", nlohmann::json::array()},
                        {"back_s", nlohmann::json::array()}};
  uint64_t asked = 0, lost = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto round = RunRound(world->net(), agent, static_cast<size_t>(i % 2));
    if (!round) {
      std::cerr << "spoke-gateway-bench: round " << i << " did not end as it should\n";
      return 1;
    }
    out["failover_s"].push_back(round->failover_s);
    out["back_s"].push_back(round->back_s);
    asked += round->others_asked;
    lost += round->others_lost;
  }
  out["others_asked"] = asked;
  out["others_lost"] = lost;
  std::cout << out.dump() << "\n";
  return 0;
}

int RunMain(int argc, char** argv) {
  CLI::App app("Cuts egress gateways off and measures how long it takes to go by the others.");
  int rounds = 10;
  app.add_option("--rounds", rounds, "How often")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  GTEST_FLAG_SET(throw_on_failure, true);  // The world's expectations of the kernel throw.
  return Run(rounds);
}

}  // namespace
}  // namespace spoke::netagent

int main(int argc, char** argv) {
  try {
    return spoke::netagent::RunMain(argc, argv);
  } catch (const std::exception& error) {  // The kernel did something else.
    std::cerr << "spoke-gateway-bench: " << error.what() << "\n";
    return 1;
  }
}
