#include "cni-plugin/agent/agent_client.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "cni-plugin/agent/fake_agent_test.h"
#include "gmock/gmock.h"

namespace spoke::cni {
namespace {

constexpr Patience kPatience{.deadline_ms = 5000, .absent_ms = 2000, .hung_up_ms = 2000};

class AgentClientTest : public testing::Test {
 protected:
  static Request Message() {
    Request request;
    request.verb = Verb::kAdd;
    request.container_id = "aaa";
    request.attempt = 42;
    return request;
  }
  Expected<Response> AskWith(const Patience& patience) {
    return Ask(path_, Message(), -1, patience);
  }

  const testing_support::TempDir dir_;
  const std::string path_ = dir_.File("cni.sock");
};

TEST_F(AgentClientTest, OnePacketEachWay) {
  FakeAgent agent(path_, {{AttachmentAnswer()}});
  const os::UniqueFd netns(::dup(0));
  const int64_t before_ms = MonotonicMs();
  const auto response = Ask(path_, Message(), netns.get(), kPatience);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->attachment.addresses.at(0).address, "10.1.0.5/32");
  const v1::CniRequest& request = agent.Requests().at(0);
  EXPECT_EQ(request.attempt(), 42U);
  EXPECT_GE(request.deadline_monotonic_ms(), before_ms + kPatience.deadline_ms);
  EXPECT_LE(request.deadline_monotonic_ms(), MonotonicMs() + kPatience.deadline_ms);
  EXPECT_EQ(agent.Descriptors().at(0), 1);
}

TEST_F(AgentClientTest, AskedAgainUnderTheSameAttemptWhenTheAgentHangsUp) {
  FakeAgent agent(path_, {{""}, {""}, {AttachmentAnswer()}});
  EXPECT_TRUE(AskWith(kPatience).ok());
  ASSERT_EQ(agent.Requests().size(), 3U);
  for (const v1::CniRequest& request : agent.Requests()) {
    EXPECT_EQ(request.attempt(), 42U);
    EXPECT_EQ(request.deadline_monotonic_ms(), agent.Requests()[0].deadline_monotonic_ms());
  }
}

TEST_F(AgentClientTest, AnAgentThatStartsInTimeIsMet) {
  std::optional<FakeAgent> agent;
  std::thread starter([&] {
    ::poll(nullptr, 0, 50);
    agent.emplace(path_, std::vector<Answer>{{DoneAnswer()}});
  });
  const auto response = AskWith(kPatience);
  starter.join();
  ASSERT_TRUE(response.ok()) << response.error().details;
  EXPECT_EQ(response->outcome, Response::Outcome::kDone);
}

TEST_F(AgentClientTest, AnAgentThatIsRestartedIsMet) {
  std::optional<FakeAgent> next;
  std::optional<FakeAgent> first(std::in_place, path_, std::vector<Answer>{{""}});
  std::thread restart([&] {
    first.reset();  // The agent has hung up, or does so now: either way nobody listens then.
    std::filesystem::remove(path_);
    ::poll(nullptr, 0, 50);
    next.emplace(path_, std::vector<Answer>{{DoneAnswer()}});
  });
  EXPECT_TRUE(AskWith(kPatience).ok());
  restart.join();
}

TEST_F(AgentClientTest, WithoutAnAgentItSaysSoAfterItsPatience) {
  const int64_t before_ms = MonotonicMs();
  const auto missing = AskWith({.deadline_ms = 5000, .absent_ms = 30});
  EXPECT_GE(MonotonicMs() - before_ms, 30);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, kTryAgainLater);
  EXPECT_THAT(missing.error().details, testing::HasSubstr("check that the agent runs here"));
  // A socket that nobody listens on any more.
  { FakeAgent gone(path_, {}); }
  EXPECT_EQ(AskWith({.deadline_ms = 5000}).error().code, kTryAgainLater);
  EXPECT_EQ(Ask("/" + std::string(200, 'a'), Message(), -1, kPatience).error().code,
            kTryAgainLater);
}

TEST_F(AgentClientTest, AnAgentThatHasJustStoppedInOrderIsWaitedFor) {
  { FakeAgent gone(path_, {}); }
  std::ofstream(StoppedMark(path_)).close();
  std::optional<FakeAgent> next;
  std::thread starter([&] {
    ::poll(nullptr, 0, 200);
    std::filesystem::remove(path_);
    next.emplace(path_, std::vector<Answer>{{DoneAnswer()}});
  });
  EXPECT_TRUE(AskWith({.deadline_ms = 5000, .absent_ms = 20, .replaced_ms = 5000}).ok());
  starter.join();
}

TEST_F(AgentClientTest, AnAgentThatStoppedLongAgoIsNotWaitedFor) {
  { FakeAgent gone(path_, {}); }
  std::ofstream(StoppedMark(path_)).close();
  const auto now = std::filesystem::file_time_type::clock::now();
  // The second: the clock was set back since.
  for (const auto when : {now - std::chrono::seconds(6), now + std::chrono::hours(1)}) {
    std::filesystem::last_write_time(StoppedMark(path_), when);
    const int64_t before_ms = MonotonicMs();
    const auto refused = AskWith({.deadline_ms = 20'000, .absent_ms = 20, .replaced_ms = 5000});
    EXPECT_EQ(refused.error().code, kTryAgainLater);
    EXPECT_LT(MonotonicMs() - before_ms, 4000);
  }
  // A request that need not wait does not, either.
  std::filesystem::last_write_time(StoppedMark(path_), now);
  const int64_t before_ms = MonotonicMs();
  EXPECT_FALSE(AskWith({.deadline_ms = 20'000, .absent_ms = 20}).ok());
  EXPECT_LT(MonotonicMs() - before_ms, 4000);
}

TEST_F(AgentClientTest, ALateAnswerIsTakenUntilTheDeadlineAndItsGrace) {
  FakeAgent agent(path_, {{DoneAnswer(), 80}, {DoneAnswer(), 10'000}});
  EXPECT_TRUE(AskWith({.deadline_ms = 50, .grace_ms = 3000}).ok());
  const int64_t before_ms = MonotonicMs();
  const auto late = AskWith({.deadline_ms = 30, .grace_ms = 20});
  EXPECT_GE(MonotonicMs() - before_ms, 49);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, kTryAgainLater);
  EXPECT_THAT(late.error().message, testing::HasSubstr("in time"));
}

TEST_F(AgentClientTest, AnAgentThatAlwaysHangsUpIsGivenUp) {
  FakeAgent agent(path_, std::vector<Answer>(100));
  const auto response = AskWith({.deadline_ms = 5000, .absent_ms = 2000, .hung_up_ms = 100});
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, kTryAgainLater);
  EXPECT_GE(agent.Requests().size(), 2U);
  EXPECT_LE(agent.Requests().size(), 10U);  // The pauses grow.
}

TEST_F(AgentClientTest, WhatIsNoResponseIsNotAskedForAgain) {
  const std::string answers[] = {"\xff\xff", std::string("\xA0\x06\x01"),
                                 std::string(100'000, '\x1A')};
  for (const std::string& answer : answers) {
    const testing_support::TempDir dir;
    FakeAgent agent(dir.File("s"), {{answer}, {DoneAnswer()}});
    const auto response = Ask(dir.File("s"), Message(), -1, kPatience);
    ASSERT_FALSE(response.ok());
    EXPECT_EQ(response.error().code, kInternal);
    EXPECT_EQ(agent.Requests().size(), 1U);
  }
}

// Covers E10: as many attachments as a GC may have go in one packet.
TEST_F(AgentClientTest, FiveThousandAttachmentsFitIntoOnePacket) {
  FakeAgent agent(path_, {{DoneAnswer()}});
  Request request = Message();
  request.verb = Verb::kGc;
  request.valid.emplace();
  for (int i = 0; i < 5000; ++i) {
    request.valid->push_back({std::string(60, 'a') + std::to_string(1000 + i), "eth0"});
  }
  const auto response = Ask(path_, request, -1, kPatience);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(agent.Requests().at(0).valid_size(), 5000);
  EXPECT_EQ(agent.Requests().at(0).valid(4999).container_id(), std::string(60, 'a') + "5999");
}

TEST_F(AgentClientTest, ARequestThatIsTooLargeIsRefusedHere) {
  FakeAgent agent(path_, {{DoneAnswer()}});
  Request request = Message();
  request.valid.emplace().assign(20'000, {std::string(64, 'a'), "eth0"});
  EXPECT_EQ(Ask(path_, request, -1, kPatience).error().code, kInternal);
  EXPECT_TRUE(agent.Requests().empty());
}

}  // namespace
}  // namespace spoke::cni
