#include "netagent/egress/egress_parts.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/egress/gateways/testing/fake_gateway_routes.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr ip::Address kGateway = ip::Address::V4(0x0A010064);

// A probe to which nobody answers.
class DeadProbe final : public TcpProbe {
 public:
  void Begin(const TcpProbeTarget& target, absl::Time) override { begun_.insert(target); }
  std::vector<std::pair<TcpProbeTarget, bool>> Collect(absl::Time) override {
    std::vector<std::pair<TcpProbeTarget, bool>> ended;
    for (const TcpProbeTarget& target : begun_) ended.emplace_back(target, false);
    begun_.clear();
    return ended;
  }

 private:
  std::set<TcpProbeTarget> begun_;
};

class NoTables final : public nft::Tables {
 public:
  absl::Status Apply(const nft::Transaction& transaction) override {
    applied.push_back(transaction.empty() ? 0 : 1);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<nft::ElementReading>> ReadSet(const nft::TableKey&,
                                                           const std::string&) override {
    return absl::NotFoundError("none");
  }
  absl::StatusOr<std::vector<nft::CounterReading>> ReadCounters(const nft::TableKey&) override {
    return absl::NotFoundError("none");
  }
  absl::StatusOr<std::vector<nft::RuleReading>> ReadRules(const nft::TableKey&) override {
    if (rules.empty()) return absl::NotFoundError("none");
    return rules;
  }
  absl::StatusOr<uint32_t> Generation() override { return 1; }

  std::vector<nft::RuleReading> rules;
  std::vector<size_t> applied;  // The sizes of the transactions.
};

class EgressPartsTest : public testing::Test {
 protected:
  EgressParts Make(EgressParts::Settings settings) {
    return EgressParts(std::move(settings), {tables_, routes_, probe_, loop_, clock_, log_},
                       {.on_gateways =
                            [this](std::set<GatewayEndpoint> healthy) {
                              if (answer_.ok()) told_.push_back(std::move(healthy));
                              return answer_;
                            },
                        .on_ip_masq =
                            [this](std::optional<IpMasqConfig> config) {
                              ip_masq_ = std::move(config);
                              return answer_;
                            }});
  }
  static Policy WithGateway() {
    Policy policy{.version = 1};
    policy::EgressPolicy egress{.destination_cidrs = policy::Blocks({"0.0.0.0/0"}),
                                .mode = policy::EgressMode::kGateway};
    egress.gateway = policy::EgressGateway{.addresses = {kGateway}};
    egress.fallback = policy::EgressMode::kDrop;
    policy.entries["EgressPolicy/p"] = {.key = "EgressPolicy/p", .bytes = {}, .value = egress};
    return policy;
  }
  void Tick(EgressParts& parts) {
    clock_.Advance(absl::Seconds(2));
    parts.Tick();
  }

  NoTables tables_;
  FakeGatewayRoutes routes_;
  DeadProbe probe_;
  os::EventLoop loop_ = os::EventLoop::Create().value();
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  testing_support::TempDir directory_;
  absl::Status answer_;
  std::vector<std::set<GatewayEndpoint>> told_;
  std::optional<IpMasqConfig> ip_masq_;
};

TEST_F(EgressPartsTest, ANewGatewayCountsAndADeadOneDoesNot) {
  EgressParts parts = Make({});
  const EgressSettings settings = parts.Start().value();
  const auto rules = EgressRules::Compile(WithGateway(), {}, {}, settings).value();
  ASSERT_TRUE(parts.PrepareWays(rules).ok());
  parts.OnRules(rules, {});
  Tick(parts);
  EXPECT_THAT(told_, ElementsAre(ElementsAre(kGateway)));
  Tick(parts);
  EXPECT_THAT(told_, ElementsAre(ElementsAre(kGateway), IsEmpty()));
  // Another agent begins with the ways of this one.
  EgressParts next = Make({});
  EXPECT_EQ(next.Start()->known_marks, rules.GatewayMarks());
}

TEST_F(EgressPartsTest, ANodeThatIsNoNatHostAnyMoreLosesItsRules) {
  tables_.rules = {{.chain = "forward"}};
  ASSERT_TRUE(Make({}).Start().ok());
  EXPECT_THAT(tables_.applied, IsEmpty());
  tables_.rules.push_back({.chain = "nathost_choose"});
  ASSERT_TRUE(Make({}).Start().ok());
  EXPECT_THAT(tables_.applied, ElementsAre(testing::Gt(0U)));
}

TEST_F(EgressPartsTest, WhatTheRulesDidNotTakeIsToldAgain) {
  EgressParts parts = Make({});
  const auto rules = EgressRules::Compile(WithGateway(), {}, {}, parts.Start().value()).value();
  parts.OnRules(rules, {});
  answer_ = absl::UnavailableError("busy");
  Tick(parts);
  EXPECT_TRUE(told_.empty());
  answer_ = absl::OkStatus();
  Tick(parts);
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(EgressPartsTest, BeginsWithWhatTheFilesAndTheRolesSay) {
  std::ofstream(directory_.File("config")) << "nonMasqueradeCIDRs: [9.0.0.0/8]\n";
  EgressParts parts = Make({.platform = true,
                            .ip_masq_path = directory_.File("config"),
                            .gateway = GatewayRoleSettings{.health_port = 0},
                            .gateway_addresses = {kGateway}});
  const EgressSettings settings = parts.Start().value();
  EXPECT_TRUE(settings.platform && settings.is_gateway);
  EXPECT_THAT(settings.gateway_addresses, ElementsAre(kGateway));
  ASSERT_TRUE(settings.ip_masq.has_value());
  EXPECT_EQ(settings.ip_masq->non_masquerade.size(), 1U);
  std::ofstream(directory_.File("config")) << "nonMasqueradeCIDRs: []\n";
  clock_.Advance(absl::Seconds(60));
  parts.Tick();
  ASSERT_TRUE(ip_masq_.has_value());
  EXPECT_TRUE(ip_masq_->non_masquerade.empty());
}

}  // namespace
}  // namespace spoke::netagent
