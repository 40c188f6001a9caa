// Whether the judgement of histories would notice a server without a fence: two servers lead at
// once, on one store, and nothing but the fence is between them.
//
// An operator's slip makes it so: the leader's key is removed. A second server takes the
// leadership, the first is kept from seeing that, and both are asked for addresses.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "fmt/core.h"
#include "ipam-server/store/etcd/testing/etcd_cluster.h"
#include "tests/bench/swarm/swarm.h"
#include "tests/crash/server_under_test.h"
#include "tests/ha/history/fence_stripper.h"
#include "tests/ha/history/history_check.h"
#include "tests/support/temp_dir.h"

namespace spoke::ha {
namespace {

constexpr uint32_t kAgents = 40;
constexpr size_t kAddresses = 4;
constexpr absl::Duration kPatience = absl::Seconds(60);
// Room for what the agents of one server want, and not for those of both.
constexpr std::string_view kSettings =
    "cloud: {static: {}}\n"
    "pools: [{name: small, cidr: 10.60.0.0/24}]\n"
    "node_addresses: {min: 4, batch: 4, spare: 0.5, max: 4}\n";

bool Await(const std::function<bool()>& done) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (!done()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

swarm::Swarm::Options OptionsOf(const crash::ServerUnderTest& server, uint32_t first) {
  return {
      .target = {.servers = {server.target()}, .tls = {.insecure = true}, .addresses = kAddresses},
      .agents = kAgents,
      .first = first,
      .reconnect = {.after_session = absl::Milliseconds(50)},
      .memory = swarm::Ledger::Memory::kAll};
}

class FenceCanary : public testing::TestWithParam<FenceStripper::Fence> {
 protected:
  // A server of this name that reaches the store through `etcd`, with a directory of its own.
  std::unique_ptr<crash::ServerUnderTest> MakeServer(const std::string& name,
                                                     const FenceStripper& etcd) {
    std::filesystem::create_directory(directory_.File(name));
    return std::make_unique<crash::ServerUnderTest>(
        directory_.File(name), kSettings, "tls: {insecure: true}",
        fmt::format("{{etcd: {{endpoints: [\"{}\"], name: {}, directory: {}, "
                    "listen_standbys: \"off\"}}}}",
                    etcd.endpoint(), name, directory_.File(name)));
  }

  // Whether the leader's key begins with this name.
  bool Leads(const std::string& name) {
    return cluster_.Ctl({"get", "/spoke/leader", "--print-value-only"}).starts_with(name);
  }

  // Judges what the agents of both servers saw.
  static Verdict Judge(const swarm::Swarm& a, const swarm::Swarm& b) {
    std::vector<Event> events = a.ledger().history();
    const std::vector<Event> others = b.ledger().history();
    events.insert(events.end(), others.begin(), others.end());
    return CheckHistory(std::move(events), {});
  }

  const testing_support::TempDir directory_;
  const ipam::etcd::EtcdCluster cluster_;
  const std::string member_{absl::StripPrefix(cluster_.endpoints()[0], "http://")};
  FenceStripper etcd_of_first_{member_, "/spoke/leader", GetParam()};
  const FenceStripper etcd_of_second_{member_, "/spoke/leader", GetParam()};
};

TEST_P(FenceCanary, TwoLeadersDoubleAddressesExactlyWhenNothingIsFenced) {
  const auto first = MakeServer("first", etcd_of_first_);
  ASSERT_TRUE(first->Exec().ok());
  ASSERT_TRUE(Await([&] { return first->IsReady().value_or(false); })) << first->Warnings();
  ASSERT_TRUE(Leads("first"));
  etcd_of_first_.HoldLeader();
  cluster_.Ctl({"del", "/spoke/leader"});
  const auto second = MakeServer("second", etcd_of_second_);
  ASSERT_TRUE(second->Exec().ok());
  ASSERT_TRUE(Await([&] { return second->IsReady().value_or(false); })) << second->Warnings();
  ASSERT_TRUE(Await([&] { return Leads("second"); }));
  ASSERT_EQ(first->HasEnded(), "") << "it has not been told";

  swarm::Swarm of_second(OptionsOf(*second, kAgents));
  of_second.Start();
  ASSERT_TRUE(Await([&] { return of_second.synced() == kAgents; })) << second->Warnings();
  swarm::Swarm of_first(OptionsOf(*first, 0));
  of_first.Start();
  const bool fenced = GetParam() == FenceStripper::Fence::kKept;
  ASSERT_TRUE(Await([&] {
    return fenced ? !first->HasEnded().empty() : of_first.synced() == kAgents;
  })) << first->Warnings();

  const Verdict verdict = Judge(of_first, of_second);
  EXPECT_GE(verdict.holds, kAgents * kAddresses);
  if (fenced) {
    EXPECT_EQ(verdict.doubled, 0U) << verdict.first.front();
    EXPECT_EQ(of_first.ledger().size(), 0U) << "it gave nothing away";
  } else {
    EXPECT_GE(verdict.doubled, 1U);
  }
  EXPECT_EQ(verdict.lost, 0U);
}

INSTANTIATE_TEST_SUITE_P(Servers, FenceCanary,
                         testing::Values(FenceStripper::Fence::kKept,
                                         FenceStripper::Fence::kTakenOut),
                         [](const auto& test) {
                           return test.param == FenceStripper::Fence::kKept ? "AsBuilt"
                                                                            : "WithoutFence";
                         });

}  // namespace
}  // namespace spoke::ha
