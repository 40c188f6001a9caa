#include "netagent/dns/dns_names.h"

#include <fstream>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/dns/testing/dns_message.h"
#include "netagent/dns/testing/fake_dns_listener.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Names = std::vector<std::pair<std::string, ClassNumber>>;

constexpr ClassNumber kModels = 16;
const ip::Address kConfigured = ip::Address::Parse("169.254.20.10").value();
const ip::Address kOwn = ip::Address::Parse("168.63.129.16").value();
const ip::Address kService = ip::Address::Parse("10.96.0.10").value();
const ip::Address kFirst = ip::Address::Parse("192.0.2.1").value();
const Names kNames = {{"*.hub.org", kModels}};
const std::vector<ip::Prefix> kServices = {ip::Prefix::Parse("10.96.0.0/12").value()};

std::vector<uint8_t> Answer(std::string_view name, std::string_view address, uint32_t ttl = 300) {
  return DnsMessageForTest(name).Address(name, address, ttl).bytes();
}

class DnsNamesTest : public testing::Test {
 protected:
  DnsNamesTest() {
    WriteResolvConf("nameserver 168.63.129.16\n");
    names_.emplace(DnsNames::Settings{.resolvers = {kConfigured}, .resolv_conf = ResolvConf()},
                   DnsNames::Edges{.listener = listener_,
                                   .loop = loop_,
                                   .clock = clock_,
                                   .log = log_,
                                   .on_learned = [this](auto learned) {
                                     told_.push_back(std::move(learned));
                                   }});
  }

  std::string ResolvConf() const { return directory_.path() + "/resolv.conf"; }
  void WriteResolvConf(const std::string& text) { std::ofstream(ResolvConf()) << text; }
  // Runs a round of the agent's loop, without waiting.
  void Round() {
    loop_.RunOnce(absl::ZeroDuration());
    names_->Tick();
  }
  bool Hears(const ip::Address& source) const {
    const auto& blocks = listener_.resolvers();
    return listener_.fd() >= 0 && std::any_of(blocks.begin(), blocks.end(), [&](const auto& block) {
             return block.Contains(source);
           });
  }

  testing_support::TempDir directory_;
  testing_support::RecordingLog log_;
  os::SimClock clock_;
  os::EventLoop loop_ = os::EventLoop::Create().value();
  FakeDnsListener listener_;
  std::vector<std::map<ip::Address, ClassNumber>> told_;
  std::optional<DnsNames> names_;
};

TEST_F(DnsNamesTest, ListensOnlyWhileThereAreNames) {
  names_->SetNames({}, kServices);
  EXPECT_EQ(listener_.fd(), -1);
  EXPECT_EQ(names_->NextWake(), absl::InfiniteFuture());
  names_->SetNames(kNames, kServices);
  EXPECT_TRUE(Hears(kOwn) && Hears(kConfigured) && Hears(kService));
  EXPECT_FALSE(Hears(kFirst));
  names_->SetNames({}, kServices);
  EXPECT_EQ(listener_.fd(), -1);
  names_->SetNames(kNames, {});
  EXPECT_FALSE(Hears(kService));
  EXPECT_TRUE(Hears(kOwn));
  names_.reset();
  EXPECT_EQ(listener_.fd(), -1);
}

TEST_F(DnsNamesTest, TellsWhatItLearnsOnceARound) {
  names_->SetNames(kNames, kServices);
  Round();
  EXPECT_THAT(told_, IsEmpty());
  listener_.Pass(kService, Answer("a.hub.org", "192.0.2.1"));
  listener_.Pass(kOwn, Answer("b.hub.org", "192.0.2.2"));
  listener_.Pass(kOwn, Answer("elsewhere.org", "192.0.2.3"));
  listener_.Pass(kFirst, Answer("c.hub.org", "192.0.2.4"));  // This source is no resolver.
  Round();
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_THAT(told_[0], ElementsAre(Pair(kFirst, kModels), Pair(ip::Advance(kFirst, 1), kModels)));
  listener_.Pass(kService, Answer("a.hub.org", "192.0.2.1"));
  Round();
  EXPECT_EQ(told_.size(), 1U);  // There is nothing new.
  const DnsNamesState state = names_->state();
  EXPECT_EQ(state.addresses, 2U);
  EXPECT_EQ(state.answers, 4U);
  EXPECT_EQ(state.refused, 0U);
  EXPECT_TRUE(state.problem.ok());
}

TEST_F(DnsNamesTest, WhatExpiresIsToldWhenItDoes) {
  names_->SetNames(kNames, kServices);
  listener_.Pass(kOwn, Answer("a.hub.org", "192.0.2.1", 50));
  Round();
  EXPECT_EQ(names_->NextWake(), clock_.Now() + absl::Minutes(1));
  clock_.Advance(absl::Minutes(1));
  Round();
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_THAT(told_[1], IsEmpty());
}

TEST_F(DnsNamesTest, NamesThatGoAreToldToo) {
  names_->SetNames(kNames, kServices);
  listener_.Pass(kOwn, Answer("a.hub.org", "192.0.2.1"));
  Round();
  names_->SetNames({{"*.hub.org", kModels + 1}}, kServices);
  EXPECT_EQ(names_->NextWake(), absl::InfinitePast());
  names_->Tick();
  EXPECT_THAT(told_.back(), ElementsAre(Pair(kFirst, kModels + 1)));
  names_->SetNames({}, kServices);
  names_->Tick();
  EXPECT_THAT(told_.back(), IsEmpty());
}

TEST_F(DnsNamesTest, WhatIsNoAnswerIsCounted) {
  names_->SetNames(kNames, kServices);
  listener_.Pass(kOwn, {1, 2, 3});
  listener_.Pass(kOwn, DnsMessageForTest("a.hub.org").Set(1, 0x8183).bytes());
  listener_.Pass(kOwn, Answer("a.hub.org", "192.0.2.1"));
  Round();
  EXPECT_EQ(names_->state().refused, 2U);
  EXPECT_EQ(names_->state().answers, 1U);
}

TEST_F(DnsNamesTest, AFloodWaitsForTheNextSecond) {
  names_->SetNames(kNames, kServices);
  const auto answer = Answer("a.hub.org", "192.0.2.1");
  for (size_t i = 0; i < DnsNames::kMaxASecond + 10; ++i) listener_.Pass(kOwn, answer);
  const absl::Time begin = clock_.Now();
  for (int i = 0; i < 20; ++i) Round();
  EXPECT_EQ(names_->state().answers, DnsNames::kMaxASecond);
  EXPECT_EQ(names_->NextWake(), begin + absl::Seconds(1));
  EXPECT_FALSE(Hears(kFirst));
  listener_.lost = 7;
  clock_.Advance(absl::Seconds(1));
  Round();  // The round begins to read again.
  Round();
  EXPECT_EQ(names_->state().answers, DnsNames::kMaxASecond + 10);
  EXPECT_EQ(names_->state().skipped, 7U);
}

TEST_F(DnsNamesTest, AFloodThatIsOverWithItsNamesDoesNotGoOn) {
  names_->SetNames(kNames, kServices);
  const auto answer = Answer("a.hub.org", "192.0.2.1");
  for (size_t i = 0; i < DnsNames::kMaxASecond; ++i) listener_.Pass(kOwn, answer);
  for (int i = 0; i < 20; ++i) Round();
  names_->SetNames({}, kServices);
  names_->Tick();
  EXPECT_EQ(names_->NextWake(), absl::InfiniteFuture());
  clock_.Advance(absl::Seconds(1));
  names_->SetNames(kNames, kServices);
  listener_.Pass(kOwn, answer);
  Round();
  EXPECT_EQ(names_->state().answers, DnsNames::kMaxASecond + 1);
}

TEST_F(DnsNamesTest, FollowsTheNodesNameServers) {
  names_->SetNames(kNames, kServices);
  listener_.Pass(kOwn, Answer("a.hub.org", "192.0.2.1"));
  Round();
  WriteResolvConf("nameserver 192.0.2.1\n");
  EXPECT_EQ(names_->NextWake(), clock_.Now() + DnsNames::kLook);
  clock_.Advance(DnsNames::kLook);
  Round();
  EXPECT_TRUE(Hears(kFirst));
  EXPECT_FALSE(Hears(kOwn));
  listener_.Pass(kFirst, Answer("a.hub.org", "192.0.2.2"));
  Round();
  EXPECT_EQ(names_->state().addresses, 2U);
  // What stays the same is not opened again.
  const int opened = listener_.opened;
  clock_.Advance(DnsNames::kLook);
  names_->SetNames(kNames, kServices);
  Round();
  EXPECT_EQ(listener_.opened, opened);
}

TEST_F(DnsNamesTest, AnErrorIsSaidOnceAndTriedAgain) {
  listener_.failure = absl::PermissionDeniedError("not root");
  names_->SetNames(kNames, kServices);
  EXPECT_EQ(names_->NextWake(), clock_.Now() + DnsNames::kRetry);
  clock_.Advance(DnsNames::kRetry);
  Round();
  EXPECT_EQ(log_.Count("dns_not_heard"), 1);
  EXPECT_THAT(std::string(names_->state().problem.message()), HasSubstr("not root"));
  listener_.failure = absl::OkStatus();
  clock_.Advance(DnsNames::kRetry);
  Round();
  EXPECT_TRUE(names_->state().problem.ok());
  listener_.Pass(kOwn, Answer("a.hub.org", "192.0.2.1"));
  listener_.failure = absl::InternalError("broken");
  Round();
  EXPECT_EQ(log_.Count("dns_not_heard"), 2);
  EXPECT_EQ(listener_.fd(), -1);
  listener_.failure = absl::OkStatus();
  clock_.Advance(DnsNames::kRetry);
  Round();
  listener_.Pass(kOwn, Answer("a.hub.org", "192.0.2.1"));
  Round();
  EXPECT_EQ(names_->state().answers, 1U);
}

TEST_F(DnsNamesTest, WhenOthersCannotBeHeardTheOldOnesStillAre) {
  names_->SetNames(kNames, kServices);
  listener_.failure = absl::ResourceExhaustedError("no memory");
  names_->SetNames(kNames, {});
  listener_.failure = absl::OkStatus();
  EXPECT_FALSE(names_->state().problem.ok());
  listener_.Pass(kService, Answer("a.hub.org", "192.0.2.1"));
  Round();
  EXPECT_EQ(names_->state().answers, 1U);
  clock_.Advance(DnsNames::kRetry);
  Round();
  EXPECT_FALSE(Hears(kService));
  EXPECT_TRUE(names_->state().problem.ok());
}

TEST_F(DnsNamesTest, TooManyResolversAreSaid) {
  std::vector<ip::Prefix> services;
  for (uint64_t i = 0; i < DnsListener::kMaxResolvers; ++i) {
    services.push_back(ip::Prefix::Host(ip::Advance(kService, i)));
  }
  names_->SetNames(kNames, services);
  EXPECT_EQ(listener_.resolvers().size(), DnsListener::kMaxResolvers);
  EXPECT_TRUE(Hears(kOwn) && Hears(kConfigured));
  EXPECT_EQ(log_.Count("dns_not_heard"), 1);
  EXPECT_THAT(std::string(names_->state().problem.message()), HasSubstr("10.96.0.72"));
  names_->SetNames(kNames, kServices);
  EXPECT_TRUE(names_->state().problem.ok());
}

TEST_F(DnsNamesTest, WithoutResolvConfTheOthersAreHeard) {
  ::unlink(ResolvConf().c_str());
  names_->SetNames(kNames, kServices);
  EXPECT_TRUE(Hears(kConfigured) && Hears(kService));
  EXPECT_TRUE(names_->state().problem.ok());
}

}  // namespace
}  // namespace spoke::netagent
