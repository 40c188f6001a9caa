// Giving addresses up against a server that acts upon agreements, over streams that break: what the
// server has detached must not be assigned, and what it has not must not be lost.
#include <deque>
#include <map>
#include <optional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/attachments.h"
#include "netagent/journal/fake_journal.h"
#include "netagent/links/testing/fake_kernel.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kAddresses = 8;

ip::Address V4(uint32_t number) { return ip::Address::V4(number); }

// Both directions of one stream.
struct Stream {
  bool hello_said = false;
  std::deque<node_api::ReclaimAnswer> to_server;
  std::deque<node_api::ServerMessage> to_agent;
};

// The agent's end of the present stream. Reports are of no interest here.
class StreamLink final : public ServerLink {
 public:
  void Report(const node_api::AssignmentReport&) override {}
  void ReportTraffic(const node_api::TrafficReport&) override {}
  void ReportBudgets(const node_api::BudgetReport&) override {}
  void Acknowledge(uint64_t) override {}
  void AcknowledgePolicy(const node_api::PolicyAck&) override {}
  void Answer(const node_api::ReclaimAnswer& answer) override {
    if (stream != nullptr) stream->to_server.push_back(answer);
  }
  void Answer(const node_api::Inventory&) override {}
  void Answer(const node_api::AttachTracesAnswer&) override {}
  void Answer(const node_api::ProbeAnswer&) override {}
  void Answer(const node_api::PolicyTrialAnswer&) override {}
  void Answer(const node_api::NodeDataAnswer&) override {}
  void Ask(const node_api::Demand&) override {}
  void ReportConflict(const ip::Address&, const std::optional<ip::MacAddress>&) override {}
  void BeginAnew(std::string_view) override {}

  Stream* stream = nullptr;
};

// Does what the server does about reclaiming: its record decides, one session a node counts, and an
// agreement detaches at once. It takes an agreement only for what was attached when it asked and
// has been ever since: after an overlapping request, an address may have gone and come back.
class ModelServer {
 public:
  ModelServer() {
    for (uint32_t i = 0; i < kAddresses; ++i) attached_[V4(i)] = ++serial_;
  }

  bool Has(const ip::Address& address) const { return attached_.contains(address); }
  size_t size() const { return attached_.size(); }

  void OnHello(Stream& stream) {
    session_ = &stream;
    asked_.clear();
    version_ = 1;
    node_api::DesiredState all{.version = version_, .full = true};
    for (const auto& [address, serial] : attached_)
      all.added.push_back({.range = ip::Prefix::Host(address), .pool = "p"});
    stream.to_agent.emplace_back(all);
  }
  void OnAnswer(const Stream& stream, const node_api::ReclaimAnswer& answer) {
    if (&stream != session_) return;  // It is of an older session: stale.
    node_api::DesiredState change{.version = ++version_};
    for (const ip::Prefix& block : answer.agreed) {
      for (const auto& [address, serial] : asked_[answer.id]) {
        const auto it = attached_.find(address);
        if (!block.Contains(address) || it == attached_.end() || it->second != serial) continue;
        attached_.erase(it);
        change.removed.push_back(ip::Prefix::Host(address));
      }
    }
    session_->to_agent.emplace_back(change);
  }
  void Ask(const ip::Prefix& block) {
    if (session_ == nullptr) return;
    session_->to_agent.emplace_back(node_api::ReclaimRequest{++id_, {block}});
    for (const auto& [address, serial] : attached_) {
      if (block.Contains(address)) asked_[id_][address] = serial;
    }
  }
  void Attach(const ip::Address& address) {
    if (!attached_.emplace(address, ++serial_).second || session_ == nullptr) return;
    session_->to_agent.emplace_back(node_api::DesiredState{
        .version = ++version_, .added = {{.range = ip::Prefix::Host(address), .pool = "p"}}});
  }

 private:
  std::map<ip::Address, uint64_t> attached_;  // A number for each time it was attached.
  std::map<uint64_t, std::map<ip::Address, uint64_t>> asked_;
  Stream* session_ = nullptr;
  uint64_t serial_ = 0;
  uint64_t version_ = 0;
  uint64_t id_ = 0;
};

class ReclaimTest : public testing::Test {
 protected:
  ReclaimTest() {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    RestartAgent();
    Connect();
  }
  void RestartAgent() {
    const std::vector<Event> events = tmpfs_.events;
    link_.stream = nullptr;
    agent_.emplace(
        Attachments::Settings{.node_name = "node1", .nic = "eth0", .cooldown = absl::Seconds(30)},
        Attachments::Edges{kernel_, link_, clock_, log_}, std::make_unique<FakeJournal>(tmpfs_));
    ASSERT_TRUE(agent_->Start(events).ok());
  }
  // What is on its way to the agent is lost with the old stream; what is on its way to the server
  // may still arrive, before the new stream's hello or after.
  void Connect() {
    link_.stream = &streams_.emplace_back();
    agent_->BeginSession();
    link_.stream->hello_said = true;
  }
  void ToServer(Stream& stream) {
    if (stream.hello_said) {
      stream.hello_said = false;
      server_.OnHello(stream);
    } else if (!stream.to_server.empty()) {
      server_.OnAnswer(stream, stream.to_server.front());
      stream.to_server.pop_front();
    }
  }
  void ToAgent() {
    if (link_.stream == nullptr || link_.stream->to_agent.empty()) return;
    const node_api::ServerMessage request = link_.stream->to_agent.front();
    link_.stream->to_agent.pop_front();
    if (const auto* desired = std::get_if<node_api::DesiredState>(&request)) {
      ASSERT_TRUE(agent_->OnDesired(*desired).ok());
    } else {
      agent_->OnReclaim(std::get<node_api::ReclaimRequest>(request));
    }
  }
  absl::Status Add(const AttachmentKey& key) {
    const os::UniqueFd pod = kernel_.NewPodNetns();
    return agent_->Add({.key = key}, pod.get()).status();
  }
  void DeliverAll() {
    for (int i = 0; i < 100; ++i) {
      for (Stream& stream : streams_) ToServer(stream);
      ToAgent();
    }
  }
  void ExpectNothingAssignedThatWasDetached() {
    for (const Assignment& assignment : agent_->assignments().Built()) {
      for (const ip::Address& address : assignment.addresses) {
        ASSERT_TRUE(server_.Has(address)) << address.ToString();
      }
    }
  }
  size_t Assignable() {
    size_t in_use = 0;
    while (Add({"probe" + std::to_string(in_use), "eth0"}).ok()) ++in_use;
    return in_use;
  }

  FakeKernel kernel_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeTmpfs tmpfs_;
  StreamLink link_;
  std::deque<Stream> streams_;
  ModelServer server_;
  std::optional<Attachments> agent_;
};

TEST_F(ReclaimTest, AnAgreementThatWasActedUponTakesTheAddressOff) {
  DeliverAll();
  server_.Ask(ip::Prefix::Host(V4(3)));
  DeliverAll();
  EXPECT_EQ(Assignable(), kAddresses - 1);
  EXPECT_THAT(agent_->assignments().Withdrawn(), IsEmpty());
}

TEST_F(ReclaimTest, AgreedThenBrokenThenListedAnewThenAssignedAndTheLateAnswerDoesNoHarm) {
  DeliverAll();
  server_.Ask(ip::Prefix::Host(V4(3)));
  ToAgent();
  Stream& old = *link_.stream;
  ASSERT_EQ(old.to_server.size(), 1U);  // The agreement is on its way, and stays there.
  Connect();
  EXPECT_THAT(agent_->assignments().Withdrawn(), ElementsAre(V4(3)));
  ToServer(*link_.stream);  // The hello goes before the late answer.
  ToAgent();                // The whole list, which has the address.
  EXPECT_THAT(agent_->assignments().Withdrawn(), IsEmpty());
  EXPECT_EQ(Assignable(), kAddresses);
  ToServer(old);
  ExpectNothingAssignedThatWasDetached();
  EXPECT_EQ(server_.size(), kAddresses);
}

TEST_F(ReclaimTest, AgreedThenBrokenAndTheAnswerArrivedBeforeTheHello) {
  DeliverAll();
  server_.Ask(ip::Prefix::Host(V4(3)));
  ToAgent();
  Stream& old = *link_.stream;
  Connect();
  ToServer(old);
  DeliverAll();
  EXPECT_EQ(Assignable(), kAddresses - 1);
  ExpectNothingAssignedThatWasDetached();
}

TEST_F(ReclaimTest, AListThatWasSentBeforeTheAgreementArrivedLiftsNothing) {
  // This is a new session; the server asks before the agent has even read the list.
  ToServer(*link_.stream);
  server_.Ask(ip::Prefix::Host(V4(3)));
  node_api::DesiredState list = std::get<node_api::DesiredState>(link_.stream->to_agent.front());
  ToAgent();
  ToAgent();
  ASSERT_THAT(agent_->assignments().Withdrawn(), ElementsAre(V4(3)));
  ASSERT_TRUE(agent_->OnDesired(list).ok());
  list.full = false;
  ASSERT_TRUE(agent_->OnDesired(list).ok());
  EXPECT_THAT(agent_->assignments().Withdrawn(), ElementsAre(V4(3)));
  // The address was taken off and brought back: the server has acted, and attached it again.
  list.removed = {ip::Prefix::Host(V4(3))};
  ASSERT_TRUE(agent_->OnDesired(list).ok());
  EXPECT_THAT(agent_->assignments().Withdrawn(), IsEmpty());
}

TEST_F(ReclaimTest, AnAgreementRepeatedInANewSessionBelongsToThatSession) {
  DeliverAll();
  server_.Ask(ip::Prefix::Host(V4(3)));
  ToAgent();
  Connect();
  // The server asks before it lists, and the agent, which has it withdrawn, agrees once more.
  agent_->OnReclaim({99, {ip::Prefix::Host(V4(3))}});
  ToServer(*link_.stream);
  ToAgent();
  EXPECT_THAT(agent_->assignments().Withdrawn(), ElementsAre(V4(3)));
  DeliverAll();
  ExpectNothingAssignedThatWasDetached();
  EXPECT_EQ(Assignable(), kAddresses - 1);
}

TEST_F(ReclaimTest, WhateverBreaksNothingDetachedIsAssignedAndNothingIsLost) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int step = 0; step < 20'000; ++step) {
    const AttachmentKey key{"pod" + std::to_string(random() % 10), "eth0"};
    const ip::Address address = V4(static_cast<uint32_t>(random() % kAddresses));
    switch (random() % 16) {
      case 0:
        server_.Ask(*ip::Prefix::Of(address, 32 - static_cast<int>(random() % 3)));
        break;
      case 1:
        server_.Attach(address);
        break;
      case 2:
      case 3:
      case 4:
        if (const absl::Status added = Add(key); !added.ok() && !absl::IsAlreadyExists(added)) {
          ASSERT_TRUE(absl::IsResourceExhausted(added)) << added;
        }
        break;
      case 5:
      case 6:
        ASSERT_TRUE(agent_->Del(key).ok());
        break;
      case 7:
        clock_.Advance(absl::Seconds(20));
        agent_->Tick();
        break;
      case 8:
        if (random() % 4 == 0) Connect();
        break;
      case 9:
        if (random() % 8 != 0) break;
        RestartAgent();
        if (random() % 2 == 0) Connect();  // The agent may live on without the server for a while.
        break;
      case 10:
      case 11:
      case 12:
        ToAgent();
        break;
      default:
        ToServer(streams_[streams_.size() - 1 - random() % std::min<size_t>(3, streams_.size())]);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectNothingAssignedThatWasDetached()) << "step " << step;
  }
  DeliverAll();
  Connect();
  DeliverAll();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(agent_->Del({"pod" + std::to_string(i), "eth0"}).ok());
  clock_.Advance(absl::Minutes(1));
  agent_->Tick();
  EXPECT_THAT(agent_->assignments().Withdrawn(), IsEmpty());
  EXPECT_EQ(Assignable(), server_.size());
}

}  // namespace
}  // namespace spoke::netagent
