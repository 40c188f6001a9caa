// A loop whose agents and cloud are played by the test.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/cloud/testing/fake_cloud.h"
#include "ipam-server/ledger/testing/hello_for_test.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/policy/object_codec.h"
#include "ipam-server/policy/policy_file.h"
#include "ipam-server/store/record_codec.h"
#include "ipam-server/store/testing/memory_store.h"
#include "tests/support/recording_log.h"

namespace spoke::ipam {

inline const NodeKey kNode{"node1", "vm-1"};

inline ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

// Keeps what the loop says; the test plays the agents.
class FakeAgents final : public AgentLink {
 public:
  void Send(SessionId session, ToAgent message) override {
    sent[session].push_back(std::move(message));
  }
  void ReadNext(SessionId session) override { ++read_next[session]; }
  void Close(SessionId session, absl::Status why) override { closed[session] = std::move(why); }

  std::map<SessionId, std::vector<ToAgent>> sent;
  std::map<SessionId, int> read_next;
  std::map<SessionId, absl::Status> closed;
};

class FleetLoopTest : public testing::Test {
 protected:
  FleetLoopTest() { cloud_.Hold(); }
  // A loop's mailbox ends with it.
  Mailbox& NewMailbox() { return *mailboxes_.emplace_back(std::make_unique<Mailbox>()); }
  std::unique_ptr<FleetLoop> NewLoop() {
    auto loaded = LoadState(store_, settings_, clock_.Now());
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return std::make_unique<FleetLoop>(
        settings_, *std::move(loaded),
        FleetLoop::Edges{.store = store_,
                         .agents = agents_,
                         .cloud = cloud_,
                         .mailbox = NewMailbox(),
                         .clock = clock_,
                         .log = log_,
                         .on_node_gone = [this](const NodeKey& node) { gone_.push_back(node); }});
  }
  void Report(SessionId session, node_api::AssignmentReport report) {
    loop_->PostFromAgent(ReportEvent{session, std::move(report)});
  }
  node_api::AssignmentReport AssignOne() {
    return {.sequence = 1,
            .in_use = {{.address = A("10.1.0.4"),
                        .generation = 1,
                        .since = clock_.Now(),
                        .lessee = {.container_id = "c", .ifname = "eth0"}}}};
  }
  // Applies a team of one namespace, as operators do.
  void PostTeam(const std::string& name, std::function<void(const absl::Status&)> done) {
    loop_->PostChange(
        [this, name](ServerState& state, RawRecords& raw) -> absl::StatusOr<Effects> {
          const std::vector<PolicyFileText> text{
              {"team.yaml", "apiVersion: spoke/v1\nkind: Team\nmetadata: {name: " + name +
                                "}\nspec: {namespaces: [b]}\n"}};
          const auto plan = PlanApply(state.objects, ParsePolicyFiles(text), {}, clock_.Now());
          if (!plan.ok()) return plan.status();
          state.objects = plan->next;
          state.bundles.Advance(state.objects);
          for (const PolicyWrite& write : EncodePlan(*plan)) raw[write.key] = write.value;
          return Effects();
        },
        std::move(done));
  }
  void Step() { ASSERT_TRUE(loop_->RunOnce(absl::ZeroDuration())); }
  void Greet(SessionId session, std::vector<node_api::Assignment> in_use = {}) {
    loop_->PostHello(session, {.node = IdentityOf(kNode, "b", "/subscriptions/s/vm/1"),
                               .in_use = std::move(in_use)});
    Step();
  }
  void AnswerCloud() {
    cloud_.Answer();
    Step();
  }
  // A node with two addresses, of which a pod has the first.
  void JoinWithAPod() {
    Greet(1);
    AnswerCloud();
    loop_->PostFromAgent(ReportEvent{1, AssignOne()});
    Step();
    AnswerCloud();
    ASSERT_EQ(CountAddresses(Stored()).in_use, 1U);
  }
  NodeRecord Stored() { return *DecodeNode(store_.Get(StoreKeyOf(kNode))->value().value); }
  template <typename T>
  std::vector<T> SentTo(SessionId session) {
    std::vector<T> found;
    for (const ToAgent& message : agents_.sent[session]) {
      if (const T* typed = std::get_if<T>(&message)) found.push_back(*typed);
    }
    return found;
  }

  ServerSettings settings_{
      .pools = {{.name = "default", .cidr = ip::Prefix::Parse("10.1.0.0/24").value()}},
      .fleet = {.target = {.min = 2, .batch = 2, .spare = 0.5, .max = 8}}};
  MemoryStore store_;
  FakeAgents agents_;
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // One a loop; the last is the present one's.
  // It holds what it is asked until AnswerCloud().
  FakeCloud cloud_{[this](const NodeKey& node, absl::StatusOr<NicAddresses> result) {
    AnswersTo (*mailboxes_.back())(node, std::move(result));
  }};
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  std::vector<NodeKey> gone_;  // The nodes that were told to be gone.
  std::unique_ptr<FleetLoop> loop_ = NewLoop();
};

}  // namespace spoke::ipam
