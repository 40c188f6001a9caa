// The whole agent over a fake kernel: what one leaves behind, the next one takes up.
#include "netagent/agent.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "lib/policy/wire.h"
#include "lib/tls/authority.h"
#include "netagent/connections/testing/fake_conntrack_table.h"
#include "netagent/links/testing/fake_kernel.h"
#include "netagent/nftables/testing/fake_nft_tables.h"
#include "netagent/node/testing/fake_node_routes.h"
#include "netagent/policy/policy_file.h"
#include "netagent/shaping/testing/fake_shaper.h"
#include "proto/spoke/v1/cni.pb.h"
#include "proto/spoke/v1/policy.pb.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    config_.nic = "eth0";
    config_.servers = {"unix:" + dir_.File("no-server.sock")};
    config_.tls.insecure = true;
    config_.cni_socket = dir_.File("cni.sock");
    config_.state_dir = dir_.path();
    config_.cooldown = absl::ZeroDuration();
    config_.cni = CniFilesConfig{.conf_dir = dir_.path(), .content = dir_.File("source")};
    EXPECT_TRUE(os::WriteFileAtomic(dir_.File("source"), "{}", os::Durability::kVisible).ok());
    // What a server has said to an earlier agent.
    auto opened = OpenJournal(JournalPath()).value();
    EXPECT_TRUE(
        opened.journal
            ->Append(HoldingsReplaced{{{A("10.1.0.5"), "default"}, {A("10.1.0.6"), "default"}}})
            .ok());
  }
  ~AgentTest() override { Stop(); }

  std::string JournalPath() const { return dir_.File("journal"); }

  void Start() {
    OpenedJournal opened = OpenJournal(JournalPath()).value();
    agent_ = std::make_unique<Agent>(
        config_, node_api::NodeIdentity{.node_name = "node1"},
        Agent::Edges{
            .links = kernel_,
            .journal = std::move(opened.journal),
            .clock = clock_,
            .log = log_,
            .loop = os::EventLoop::Create().value(),
            .cloud = {},
            .traffic = {.tables = counts_ ? &nft_ : nullptr,
                        .routes = counts_ ? &routes_ : nullptr,
                        .shaper = &shaper_},
            .health = {.try_to_reach = [this](auto targets) { targets_ = std::move(targets); }},
            .conntrack = clears_ ? &table_ : nullptr,
            .cuts = &cuts_});
    ASSERT_TRUE(agent_->Start(opened.events).ok());
    thread_ = std::thread([this] { agent_->Run(signals_); });
  }
  // Stops the agent by a signal, the way systemd does.
  void Stop() {
    if (!agent_) return;
    ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
    thread_.join();
    agent_.reset();
  }

  // Leaves the policy of an earlier agent: one peer spoke, and what nodes try of it.
  void KeepPolicy() {
    v1::PolicyBundle bundle;
    bundle.set_version(3);
    bundle.set_full(true);
    v1::PolicyEntry& entry = *bundle.add_changed();
    entry.set_key("ClusterNetwork/main");
    entry.mutable_cluster_network()->add_peer_spoke("10.9.0.0/16");
    entry.mutable_cluster_network()->add_peer_spoke_probes("10.9.0.1:443");
    const Policy policy = ApplyPolicy({}, policy::FromWire(bundle)).value();
    ASSERT_TRUE(
        os::WriteFileAtomic(dir_.File("policy"), EncodePolicyFile(policy), os::Durability::kVisible)
            .ok());
  }

  v1::CniRequest Request(v1::CniRequest::Verb verb, const std::string& container) {
    v1::CniRequest request;
    request.set_verb(verb);
    request.set_container_id(container);
    request.set_ifname("eth0");
    request.set_attempt(7);
    return request;
  }
  // Asks once; nullopt: nobody listens, or the connection was closed.
  std::optional<v1::CniResponse> Ask(const v1::CniRequest& request, int netns) const {
    const os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, config_.cni_socket.data(), config_.cni_socket.size());
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0) {
      return std::nullopt;
    }
    std::string bytes = request.SerializeAsString();
    iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &netns, sizeof(int));
    if (::sendmsg(fd.get(), &message, MSG_NOSIGNAL) < 0) return std::nullopt;
    std::array<char, 4096> answer{};
    const ssize_t got = ::recv(fd.get(), answer.data(), answer.size(), 0);
    v1::CniResponse response;
    if (got <= 0 || !response.ParseFromArray(answer.data(), static_cast<int>(got))) {
      return std::nullopt;
    }
    return response;
  }
  // Asks again and again for a second, the way the plugin does.
  std::optional<v1::CniResponse> AskPatiently(const v1::CniRequest& request, int netns) const {
    for (int i = 0; i < 1000; ++i) {
      if (auto answer = Ask(request, netns)) return answer;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return std::nullopt;
  }

  const os::SignalWaiter signals_{SIGTERM};  // Made before the first thread.
  const testing_support::TempDir dir_;
  AgentConfig config_;
  FakeKernel kernel_;
  FakeShaper shaper_;
  const os::RealClock clock_;
  testing_support::RecordingLog log_;
  FakeConntrackTable table_;
  FakeConntrackTable cuts_;
  FakeNftTables nft_;
  FakeNodeRoutes routes_;
  bool clears_ = false;                               // Whether the kernel can clear.
  bool counts_ = false;                               // Whether it is to count and isolate.
  std::optional<node_checks::ReachTargets> targets_;  // What it has the node try.
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
};

TEST_F(AgentTest, TheNextPodWithAnAddressMeetsNoConnectionOfTheLast) {
  clears_ = true;
  Start();
  const os::UniqueFd pod = kernel_.NewPodNetns();
  ASSERT_TRUE(Ask(Request(v1::CniRequest::VERB_ADD, "aaa"), pod.get())->has_attachment());
  const os::UniqueFd other = kernel_.NewPodNetns();
  ASSERT_TRUE(Ask(Request(v1::CniRequest::VERB_ADD, "bbb"), other.get())->has_attachment());
  const FakeConntrackTable::Connection kept = {A("10.1.0.6"), A("192.0.2.1"), A("192.0.2.1"),
                                               A("10.1.0.6")};
  table_.Add({A("10.1.0.5"), A("192.0.2.1"), A("192.0.2.1"), A("10.1.0.5")});
  table_.Add(kept);
  ASSERT_TRUE(Ask(Request(v1::CniRequest::VERB_DEL, "aaa"), pod.get()));
  // There is no other address, so the pod waits for this one.
  const os::UniqueFd next = kernel_.NewPodNetns();
  const auto answer = Ask(Request(v1::CniRequest::VERB_ADD, "ccc"), next.get());
  ASSERT_TRUE(answer && answer->has_attachment());
  EXPECT_THAT(table_.connections(), testing::ElementsAre(kept));
}

TEST_F(AgentTest, ConnectionsThatThePolicyForbidsEndAlsoWhenTheyBeganWithoutAnAgent) {
  KeepPolicy();
  const FakeConntrackTable::Connection kept = {A("10.1.0.5"), A("192.0.2.1"), A("192.0.2.1"),
                                               A("10.1.0.5")};
  cuts_.Add(kept);
  cuts_.Add({A("10.1.0.5"), A("10.9.0.1"), A("10.9.0.1"), A("10.1.0.5")});
  counts_ = true;
  Start();
  for (int i = 0; i < 5000 && cuts_.connections().size() > 1; ++i) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_THAT(cuts_.connections(), testing::ElementsAre(kept));
  // The agent's loop hears of it a moment later.
  auto reading = agent_->Read(absl::Seconds(5));
  for (int i = 0; i < 5000 && reading.ok() && reading->cuts->peer_spoke == 0; ++i) {
    absl::SleepFor(absl::Milliseconds(1));
    reading = agent_->Read(absl::Seconds(5));
  }
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_EQ(reading->cuts->peer_spoke, 1U);
}

TEST_F(AgentTest, WhatKeptPolicyHasNodesTryIsTriedWhetherTheNodeHasRulesOrNot) {
  for (const bool counts : {true, false}) {
    KeepPolicy();
    counts_ = counts;
    targets_.reset();
    Start();
    ASSERT_TRUE(targets_) << counts;
    ASSERT_EQ(targets_->peer_spoke.size(), 1U);
    EXPECT_EQ(targets_->peer_spoke[0].ToString(), "10.9.0.1:443");
    Stop();
  }
}

TEST_F(AgentTest, ALimitOfAPodsLinkHoldsWhereNothingElseIsCountedOrShaped) {
  config_.shaping.enabled = false;
  Start();
  const os::UniqueFd pod = kernel_.NewPodNetns();
  v1::CniRequest request = Request(v1::CniRequest::VERB_ADD, "aaa");
  request.mutable_options()->mutable_bandwidth()->set_egress_rate(80'000'000);
  request.mutable_options()->mutable_bandwidth()->set_egress_burst(800'000);
  const auto added = Ask(request, pod.get());
  ASSERT_TRUE(added && added->has_attachment());
  Stop();
  ASSERT_EQ(shaper_.tables().flows.size(), 1U);
  EXPECT_EQ(shaper_.tables().flows[0].scope, kWholeLink);
  EXPECT_EQ(shaper_.tables().trees[1].front().ceil, units::ByteRate(10'000'000));
  // The next agent keeps the shaping until the pod goes.
  const ShapingTables before = shaper_.tables();
  Start();
  Stop();
  EXPECT_EQ(shaper_.tables(), before);
  Start();
  ASSERT_TRUE(Ask(Request(v1::CniRequest::VERB_DEL, "aaa"), pod.get()));
  Stop();
  // Nobody is attached while the kernel lacks what would hold the limits.
  shaper_.Break(absl::UnimplementedError("the kernel lacks devices of kind ifb"));
  Start();
  request.set_container_id("bbb");
  const auto refused = Ask(request, pod.get());
  ASSERT_TRUE(refused && refused->has_error());
  EXPECT_FALSE(kernel_.Attached(HostLinkName({"bbb", "eth0"})).has_value());
}

TEST_F(AgentTest, APodThatComesWhileOneAgentFollowsAnotherNoticesNothing) {
  Start();
  const os::UniqueFd first = kernel_.NewPodNetns();
  const auto before = Ask(Request(v1::CniRequest::VERB_ADD, "aaa"), first.get());
  ASSERT_TRUE(before && before->has_attachment());

  const os::UniqueFd second = kernel_.NewPodNetns();
  std::optional<v1::CniResponse> during;
  const absl::Time terminated = absl::Now();
  std::thread plugin([&] {
    // The agent that is going may still have served it; then this is the next one's answer to the
    // same attempt.
    while (log_.Count("agent_stopping") == 0) absl::SleepFor(absl::Milliseconds(1));
    during = AskPatiently(Request(v1::CniRequest::VERB_ADD, "bbb"), second.get());
  });
  Stop();
  struct stat info {};
  EXPECT_EQ(::stat(config_.cni_socket.c_str(), &info), 0) << "the file stays between the two";
  Start();
  plugin.join();
  const absl::Duration took = absl::Now() - terminated;
  ASSERT_TRUE(during && during->has_attachment());
  EXPECT_EQ(during->attachment().addresses(0).address(), "10.1.0.6/32");
  RecordProperty("stop_to_answer_ms", static_cast<int>(absl::ToInt64Milliseconds(took)));
  EXPECT_LT(took, absl::Seconds(1));

  // This is the same exec of the plugin, which did not hear the first agent's answer.
  const auto again = Ask(Request(v1::CniRequest::VERB_ADD, "aaa"), first.get());
  ASSERT_TRUE(again && again->has_attachment());
  EXPECT_EQ(again->SerializeAsString(), before->SerializeAsString());
}

TEST_F(AgentTest, WhatWasAskedForWhileNoAgentWasThereIsDoneBeforeAnybodyIsServed) {
  Start();
  const os::UniqueFd pod = kernel_.NewPodNetns();
  ASSERT_TRUE(Ask(Request(v1::CniRequest::VERB_ADD, "aaa"), pod.get())->has_attachment());
  Stop();
  ASSERT_EQ(::mkdir(dir_.File("tombstones").c_str(), 0700), 0);
  const std::string tombstone = dir_.File("tombstones/" + TombstoneName({"aaa", "eth0"}));
  ASSERT_TRUE(os::WriteFileAtomic(tombstone,
                                  Request(v1::CniRequest::VERB_DEL, "aaa").SerializeAsString(),
                                  os::Durability::kVisible)
                  .ok());
  Start();
  EXPECT_FALSE(kernel_.Attached(HostLinkName({"aaa", "eth0"})).has_value());
  EXPECT_FALSE(os::ReadFile(tombstone).ok());
  EXPECT_EQ(log_.Count("tombstone_taken_up"), 1);
}

TEST_F(AgentTest, TheNetworkConfigurationAppearsWithTheFirstAddress) {
  const std::string conflist = dir_.File("10-spoke.conflist");
  EXPECT_FALSE(os::ReadFile(conflist).ok());
  Start();
  for (int i = 0; i < 1000 && log_.Count("cni_in_place") == 0; ++i) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(os::ReadFile(conflist).value(), "{}");
}

TEST_F(AgentTest, PodsAreServedWhileTheNodeWaitsForItsCertificate) {
  config_.enroll = EnrollConfig{.servers = {"unix:" + dir_.File("no-enroll.sock")},
                                .token_file = dir_.File("token"),
                                .ca_file = dir_.File("ca.pem")};
  config_.tls = {.ca = dir_.File("tls/roots.pem"),
                 .certificate = dir_.File("tls/node.pem"),
                 .key = dir_.File("tls/node.key")};
  const auto wait_for = [this](std::string_view event) {
    for (int i = 0; i < 20'000 && log_.Count(event) == 0; ++i) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return log_.Count(event);
  };
  Start();
  const os::UniqueFd pod = kernel_.NewPodNetns();
  const auto added = Ask(Request(v1::CniRequest::VERB_ADD, "aaa"), pod.get());
  EXPECT_TRUE(added && added->has_attachment());
  EXPECT_EQ(wait_for("enroll_failed"), 1);
  EXPECT_EQ(log_.Count("server_unreachable"), 0) << "without a certificate nobody connects";
  Stop();

  // The next agent connects with the certificate that an earlier agent had.
  const absl::Time now = absl::Now();
  const tls::Validity month{now - absl::Hours(1), now + absl::Hours(24 * 30)};
  tls::Authority authority{.certificate = "", .key = tls::MakeKey().value()};
  authority.certificate = tls::MakeAuthorityCertificate(authority.key, "test", month).value();
  const std::string key = os::ReadFile(config_.tls.key).value_or(tls::MakeKey().value());
  const std::string certificate = tls::IssueCertificate(authority, tls::PublicKeyOf(key).value(),
                                                        {.dns_names = {"node1"}}, month)
                                      .value();
  for (const auto& [file, text] :
       {std::pair(config_.enroll->ca_file, authority.certificate), std::pair(config_.tls.key, key),
        std::pair(config_.tls.certificate, certificate)}) {
    ASSERT_TRUE(os::WriteFileAtomic(file, text, os::Durability::kVisible).ok());
  }
  Start();
  EXPECT_EQ(wait_for("server_unreachable"), 1);
}

}  // namespace
}  // namespace spoke::netagent
