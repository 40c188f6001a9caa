// ADD and DEL with a fault at every step that touches the journal or the kernel, one after the
// other: the step fails, or the agent dies before it and another one takes over. Whatever happens,
// after the runtime's DEL nothing remains, no address is lost, and none was ever assigned twice.
#include <map>
#include <set>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/attachments.h"
#include "netagent/journal/fake_journal.h"
#include "netagent/journal/faulty_journal.h"
#include "netagent/links/testing/fake_kernel.h"
#include "netagent/session/testing/fake_server_link.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::IsEmpty;

const AttachmentKey kPod{"aaa", "eth0"};
const AttachmentKey kNeighbour{"bbb", "eth0"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

enum class Kind { kFails, kDies };

// Counts the steps of one agent, and lets the fault happen at one of them. An agent that has died
// reaches nothing any more: each later step of it fails and has no effect.
class Fault {
 public:
  Fault(int at, Kind kind) : at_(at), kind_(kind) {}

  absl::Status Reach(std::string_view step) {
    if (at_ < 0) return absl::OkStatus();
    ++count_;
    if (count_ < at_ || (kind_ == Kind::kFails && count_ > at_)) return absl::OkStatus();
    if (count_ == at_) hit_ = std::string(step);
    return absl::InternalError(fmt::format("fault at {}", step));
  }
  bool hit() const { return !hit_.empty(); }
  const std::string& step() const { return hit_; }
  void Mend() { at_ = -1; }

 private:
  int at_;
  Kind kind_;
  int count_ = 0;
  std::string hit_;
};

class FaultyLinks final : public Links {
 public:
  FaultyLinks(Links& links, Fault& fault) : links_(links), fault_(fault) {}

  absl::StatusOr<std::map<std::string, HostSide>> Read() override { return links_.Read(); }
  absl::StatusOr<PodSide> ReadPod(const AttachSpec& spec, int pod_netns) override {
    return links_.ReadPod(spec, pod_netns);
  }
  PodChanges TakePodChanges() override { return links_.TakePodChanges(); }
  uint32_t IndexOf(const std::string& host_link) const override {
    return links_.IndexOf(host_link);
  }
  HostSide Recall(const std::string& host_link) const override { return links_.Recall(host_link); }
  absl::Status Apply(const AttachSpec& spec, const LinkOperations& plan,
                     std::optional<int> pod_netns) override {
    const bool removes = spec.addresses.empty();
    if (absl::Status fault = fault_.Reach(removes ? "kernel.detach" : "kernel.attach");
        !fault.ok()) {
      return fault;
    }
    return links_.Apply(spec, plan, pod_netns);
  }
  absl::Status SetUnreachable(const std::vector<ip::Address>& addresses) override {
    if (absl::Status fault = fault_.Reach("kernel.unreachable"); !fault.ok()) return fault;
    return links_.SetUnreachable(addresses);
  }
  absl::StatusOr<Nic> ReadNic(const std::string& name) override { return links_.ReadNic(name); }
  absl::StatusOr<uint32_t> SetNicTable(const ip::MacAddress& nic) override {
    return links_.SetNicTable(nic);
  }

 private:
  Links& links_;
  Fault& fault_;
};

// One node with two addresses, of which a neighbour has one.
class Node {
 public:
  Node(int at, Kind kind) : fault_(at, kind) {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    Fault none(-1, Kind::kFails);
    Start(none);
    node_api::DesiredState desired{.version = 1, .full = true};
    for (const char* address : {"10.1.0.5", "10.1.0.6"}) {
      desired.added.push_back({.range = ip::Prefix::Host(A(address)), .pool = "default"});
    }
    EXPECT_TRUE(agent_->OnDesired(desired).ok());
    EXPECT_TRUE(Add(kNeighbour).ok());
    Start(fault_);
  }

  // Starts a new agent on what the last one has left.
  void Start(Fault& fault) {
    agent_.reset();
    links_.emplace(kernel_, fault);
    const std::vector<Event> events = tmpfs_.events;
    agent_.emplace(Attachments::Settings{.node_name = "node1", .nic = "eth0"},
                   Attachments::Edges{*links_, server_, clock_, log_},
                   std::make_unique<FaultyJournal>(
                       std::make_unique<FakeJournal>(tmpfs_),
                       [&fault](std::string_view step) { return fault.Reach(step); }));
    started_ = agent_->Start(events);
  }
  void Restart() {
    fault_.Mend();
    Start(fault_);
    ASSERT_TRUE(started_.ok()) << started_;
  }

  absl::Status Add(const AttachmentKey& key) {
    pods_.push_back(kernel_.NewPodNetns());
    return agent_->Add({.key = key, .attempt = 7}, pods_.back().get()).status();
  }
  absl::Status Del(const AttachmentKey& key) { return agent_->Del(key); }
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    agent_->Tick();
  }

  // Expects that no address of one attachment's link is assigned to, or free for, another.
  void ExpectNothingTwice() {
    std::map<ip::Address, std::string> users;
    for (const Assignment& assignment : agent_->assignments().Built()) {
      for (const ip::Address& address : assignment.addresses) {
        EXPECT_TRUE(users.emplace(address, HostLinkName(assignment.key)).second);
      }
    }
    for (const Assignment& assignment : agent_->assignments().Unfinished()) {
      for (const ip::Address& address : assignment.addresses) {
        EXPECT_TRUE(users.emplace(address, HostLinkName(assignment.key)).second);
      }
    }
    const std::vector<AttachedLink> links = ListAttached(kernel_).value();
    for (const AttachedLink& link : links) {
      for (const ip::Address& address : link.addresses) {
        EXPECT_EQ(users[address], link.host_link) << address.ToString();
      }
    }
  }
  // Expects that the neighbour has its address, and everything else is as before the pod came.
  void ExpectOnlyTheNeighbour() {
    ASSERT_EQ(agent_->assignments().Built().size(), 1U);
    EXPECT_EQ(agent_->assignments().Built()[0].key, kNeighbour);
    EXPECT_THAT(agent_->assignments().Unfinished(), IsEmpty());
    EXPECT_FALSE(kernel_.Attached(HostLinkName(kPod)).has_value());
    EXPECT_TRUE(kernel_.Attached(HostLinkName(kNeighbour)).has_value());
    EXPECT_EQ(agent_->assignments().CountByPool().at("default"),
              (UseCounts{.available = 1, .in_use = 1}));
  }

  Fault& fault() { return fault_; }
  const absl::Status& started() const { return started_; }

 private:
  FakeKernel kernel_;
  FakeServerLink server_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeTmpfs tmpfs_;
  std::vector<os::UniqueFd> pods_;
  Fault fault_;
  absl::Status started_;
  std::optional<FaultyLinks> links_;
  std::optional<Attachments> agent_;
};

class FaultWalkTest : public testing::TestWithParam<Kind> {};

// Runs Start(), ADD and DEL of a pod with the fault at step `at`; false: there are fewer steps.
bool Walk(int at, Kind kind, std::set<std::string>& steps) {
  Node node(at, kind);
  const auto restart_if_dead = [&] {
    if (node.fault().hit() && kind == Kind::kDies) node.Restart();
  };
  if (!node.started().ok()) node.Restart();
  const absl::Status added = node.Add(kPod);
  node.ExpectNothingTwice();
  restart_if_dead();
  node.ExpectNothingTwice();
  EXPECT_TRUE(added.ok() || node.fault().hit()) << added;
  // The runtime follows a failed ADD, and one whose answer was lost, with a DEL, and repeats that.
  for (int i = 0; i < 3 && !node.Del(kPod).ok(); ++i) {
    node.ExpectNothingTwice();
    restart_if_dead();
    node.ExpectNothingTwice();
  }
  restart_if_dead();
  node.Pass(absl::Minutes(2));
  node.ExpectOnlyTheNeighbour();
  // The address can be used after that.
  node.fault().Mend();
  EXPECT_TRUE(node.Add(kPod).ok());
  node.ExpectNothingTwice();
  if (node.fault().hit()) steps.insert(node.fault().step());
  return node.fault().hit();
}

TEST_P(FaultWalkTest, NothingRemainsAndNothingIsLostOrAssignedTwice) {
  std::set<std::string> steps;
  int at = 1;
  for (; Walk(at, GetParam(), steps); ++at) {
    ASSERT_FALSE(HasFailure()) << "with the fault at step " << at;
    ASSERT_LT(at, 100) << "the walk does not end";
  }
  ASSERT_FALSE(HasFailure()) << "without a fault";
  // Each step of an ADD and a DEL has been made to fail.
  for (const char* step : {"journal.begun", "kernel.attach", "journal.built", "kernel.detach",
                           "journal.released", "journal.compact"}) {
    EXPECT_TRUE(steps.contains(step)) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FaultWalkTest, testing::Values(Kind::kFails, Kind::kDies),
                         [](const auto& test) {
                           return test.param == Kind::kFails ? "OneStepFails" : "TheAgentDies";
                         });

}  // namespace
}  // namespace spoke::netagent
