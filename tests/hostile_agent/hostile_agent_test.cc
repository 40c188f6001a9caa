// Tests that an agent that lies, or floods, can do nothing to others. The real server runs over
// TLS, with an honest node beside the hostile one; and an operator sees who it is.
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/authority/authority_files.h"
#include "ipam-server/enroll/node_identity.h"
#include "lib/base/version.h"
#include "lib/ip/address.h"
#include "lib/os/file.h"
#include "tests/crash/child_process.h"
#include "tests/crash/server_under_test.h"
#include "tests/hostile_agent/hostile_node.h"
#include "tests/support/temp_dir.h"

namespace spoke::hostile {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr std::string_view kSettings =
    "cloud: {static: {}}\n"
    "pools: [{name: shared, cidr: 10.60.0.0/24}]\n"
    "node_addresses: {min: 4, batch: 4, spare: 0.5, max: 16}\n"
    "cooldown: 1s\n";
constexpr uint64_t kMost = 16;     // The addresses of one node.
constexpr uint64_t kMachines = 4;  // The machines with addresses, under one name.
constexpr const char* kServerName = "spoke-ipam-server";
constexpr const char* kInstance = "/subscriptions/s/instances/";

std::string Bytes(std::string_view address) {
  return ip::Address::Parse(address).value().ToBytes();
}

class HostileAgent : public testing::Test {
 protected:
  HostileAgent() : authority_(ipam::OpenAuthority(directory_.path(), absl::Now()).value()) {
    const Credentials server = Enrolled(
        authority_,
        {.common_name = kServerName, .dns_names = {kServerName}, .purpose = tls::Purpose::kServer});
    Put("ca.pem", authority_.certificate);
    Put("server.pem", server.certificate);
    Put("server.key", server.key);
    server_.emplace(directory_.path(), kSettings,
                    fmt::format("tls: {{ca: {0}/ca.pem, certificate: {0}/server.pem, key: "
                                "{0}/server.key}}\nseal_key_file: {0}/seal.key",
                                directory_.path()));
    EXPECT_TRUE(server_->Exec().ok());
    for (int i = 0; i < 600; ++i) {
      const auto ready = server_->IsReady();
      if (!ready.ok() || *ready) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    honest_ = Connect("honest", {{"role", "own"}});
    const auto told = honest_->Greet(HelloOf("honest"), 4);
    EXPECT_TRUE(told.ok()) << told.status() << server_->Warnings();
  }
  ~HostileAgent() override {
    honest_.reset();
    const absl::Status stopped = server_->Stop();
    EXPECT_TRUE(stopped.ok()) << stopped << server_->Warnings();
  }

  void Put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(os::WriteFileAtomic(directory_.File(name), text, os::Durability::kVisible).ok());
  }

  // Connects with a certificate as enrollment makes it for a node with these labels; `instance` is
  // where it runs, which is its name's unless said.
  std::unique_ptr<HostileNode> Connect(const std::string& node,
                                       std::map<std::string, std::string> labels = {}) {
    const ipam::NodeFacts facts{.name = node,
                                .provider_id = std::string("azure://") + kInstance + node,
                                .labels = std::move(labels)};
    return ConnectWith(node, ipam::IdentityUris(facts));
  }
  std::unique_ptr<HostileNode> ConnectWith(const std::string& node,
                                           const std::vector<std::string>& uris) {
    return std::make_unique<HostileNode>(
        server_->target(), kServerName, authority_.certificate,
        Enrolled(authority_, {.common_name = node, .dns_names = {node}, .uris = uris}));
  }

  static v1::Hello HelloOf(const std::string& node, const std::string& vm = "vm",
                           const std::string& boot = "boot") {
    v1::Hello hello;
    hello.set_node_name(node);
    hello.set_vm_id(vm);
    hello.set_boot_id(boot);
    hello.set_agent_version(base::kVersion);
    hello.set_instance(kInstance + node);
    v1::Nic& nic = *hello.add_nics();
    nic.set_name("eth0");
    nic.set_mac("00:0d:3a:00:00:01");
    return hello;
  }
  static void Assign(v1::Hello& hello, const std::string& address) {
    v1::Assignment& assignment = *hello.add_in_use();
    assignment.set_address(Bytes(address));
    assignment.set_container_id("c-" + address);
    assignment.set_ifname("eth0");
    assignment.set_generation(1);
  }

  json Ask(std::vector<std::string> words) {
    words.insert(words.end(), {"-o", "json"});
    const auto answer = server_->Ask(words);
    EXPECT_TRUE(answer.ok()) << answer.status();
    // The code of status is 1 when there are problems.
    EXPECT_LE(answer->code, words.front() == "status" ? 1 : 0) << answer->output;
    return json::parse(answer->output, nullptr, /*allow_exceptions=*/false);
  }
  std::string Problems() {
    std::string text;
    const json status = Ask({"status"});
    for (const json& problem : status["problems"]) text += problem.get<std::string>();
    return text;
  }
  uint64_t AttachedOf(const std::string& node) {
    const json shown = Ask({"node", "show", node});
    return shown.value("attached", uint64_t{0}) + shown.value("attaching", uint64_t{0});
  }
  // Returns whether the honest node has what it had, hears and is heard, and a new one gets its
  // share.
  void ExpectOthersAreWell() {
    EXPECT_EQ(AttachedOf("honest"), 4U);
    v1::AgentMessage report;
    report.mutable_report()->set_sequence(++honest_sequence_);
    ASSERT_TRUE(honest_->Say(report)) << "its session has ended: " << honest_->End();
    EXPECT_TRUE(honest_->Hear([](const auto& heard) { return heard.has_report_ack(); }));
    auto newcomer = Connect(fmt::format("newcomer-{}", honest_sequence_));
    const auto told = newcomer->Greet(HelloOf(fmt::format("newcomer-{}", honest_sequence_)), 4);
    EXPECT_TRUE(told.ok()) << told.status();
  }

  const testing_support::TempDir directory_;
  const tls::Authority authority_;
  std::optional<crash::ServerUnderTest> server_;
  std::unique_ptr<HostileNode> honest_;
  uint64_t honest_sequence_ = 0;
};

TEST_F(HostileAgent, AnotherNodesNameIsRefused) {
  const auto told = Connect("hostile")->Greet(HelloOf("honest"));
  EXPECT_TRUE(absl::IsPermissionDenied(told.status())) << told.status();
  ExpectOthersAreWell();
}

TEST_F(HostileAgent, AnInstanceThatItsCertificateDoesNotNameIsRefused) {
  v1::Hello forged = HelloOf("hostile");
  forged.set_instance(std::string(kInstance) + "honest");
  EXPECT_TRUE(absl::IsPermissionDenied(Connect("hostile")->Greet(forged).status()));
  // A certificate that an operator has made, which names none, does not help either.
  const auto told = ConnectWith("hostile", {})->Greet(forged);
  EXPECT_TRUE(absl::IsPermissionDenied(told.status())) << told.status();
  EXPECT_THAT(std::string(told.status().message()), HasSubstr("node honest"));
  EXPECT_THAT(Problems(), HasSubstr("node hostile says that it is on instance"));
  ExpectOthersAreWell();
}

TEST_F(HostileAgent, LabelsAreThoseOfTheCertificate) {
  v1::Hello forged = HelloOf("hostile");
  (*forged.mutable_labels())["role"] = "own";
  const auto hostile = Connect("hostile", {{"role", "guest"}});
  ASSERT_TRUE(hostile->Greet(forged).ok());
  EXPECT_EQ(Ask({"node", "show", "hostile"})["labels"], (json{{"role", "guest"}}));
  ExpectOthersAreWell();
}

TEST_F(HostileAgent, WhatItClaimsToUseStaysWithinTheLimitsOfOneNode) {
  const json before = Ask({"node", "show", "honest"})["addresses"];
  v1::Hello huge = HelloOf("hostile");
  for (int i = 4; i < 254; ++i) Assign(huge, fmt::format("10.60.0.{}", i));
  for (int i = 1; i < 200; ++i) Assign(huge, fmt::format("10.99.0.{}", i));
  const auto hostile = Connect("hostile");
  ASSERT_TRUE(hostile->Greet(huge).ok());
  EXPECT_EQ(Ask({"node", "show", "honest"})["addresses"], before);
  // A NIC of the static cloud takes 255: but what others have, they keep.
  std::set<std::string> doubled;
  for (const json& address : Ask({"ip", "list"})) {
    EXPECT_TRUE(doubled.insert(address["address"].get<std::string>()).second) << address;
  }
  const auto log = os::ReadFile(directory_.File("server.log"));
  EXPECT_THAT(*log, HasSubstr("event=address_conflict node=hostile"));
}

TEST_F(HostileAgent, EverNewVmIdsGetAFewMachinesAddresses) {
  absl::Status last;
  for (int i = 0; i < 12; ++i) {
    const auto told = Connect("hostile")->Greet(
        HelloOf("hostile", fmt::format("vm-{}", i), fmt::format("b{}", i)));
    last = told.status();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(last)) << last;
  uint64_t held = 0;
  for (const json& address : Ask({"ip", "list"})) held += address["node"] == "hostile" ? 1 : 0;
  EXPECT_LE(held, kMachines * kMost);
  EXPECT_THAT(Problems(), HasSubstr("under the name hostile"));
  ExpectOthersAreWell();
}

TEST_F(HostileAgent, ReportsOfConflictBlindNobody) {
  auto hostile = Connect("hostile");
  ASSERT_TRUE(hostile->Greet(HelloOf("hostile")).ok());
  for (int i = 0; i < 256; ++i) {
    v1::AgentMessage message;
    message.mutable_conflict()->set_address(Bytes(fmt::format("10.60.0.{}", i)));
    message.mutable_conflict()->set_other_mac("00:0d:3a:00:00:02");
    ASSERT_TRUE(hostile->Say(message));
  }
  v1::AgentMessage last;
  last.mutable_report()->set_sequence(1);
  hostile->Say(last);
  ASSERT_TRUE(hostile->Hear([](const auto& heard) { return heard.has_report_ack(); }));
  uint64_t quarantined = 0;
  for (const json& address : Ask({"ip", "list", "--state", "quarantined"})) {
    EXPECT_EQ(address["node"], "hostile") << address;
    ++quarantined;
  }
  EXPECT_LE(quarantined, 4U);
  ExpectOthersAreWell();
}

TEST_F(HostileAgent, ReportsAboutOthersAddressesChangeNothing) {
  const json before = Ask({"node", "show", "honest"})["addresses"];
  ASSERT_FALSE(before.empty());
  auto hostile = Connect("hostile");
  ASSERT_TRUE(hostile->Greet(HelloOf("hostile")).ok());
  v1::AgentMessage report;
  report.mutable_report()->set_sequence(1);
  v1::AgentMessage agreed;
  for (const json& address : before) {
    const std::string bytes = Bytes(address["address"].get<std::string>());
    v1::Assignment& assignment = *report.mutable_report()->add_in_use();
    assignment.set_address(bytes);
    assignment.set_container_id("stolen");
    assignment.set_ifname("eth0");
    assignment.set_generation(9);
    v1::Release& released = *report.mutable_report()->add_released();
    released.set_address(bytes);
    released.set_generation(9);
    report.mutable_report()->add_cooled(bytes);
    v1::IpConfiguration& given = *agreed.mutable_reclaim_answer()->add_agreed();
    given.set_base(bytes);
    given.set_prefix_length(32);
  }
  hostile->Say(report);
  ASSERT_TRUE(hostile->Hear([](const auto& heard) { return heard.has_report_ack(); }));
  hostile->Say(agreed);
  ExpectOthersAreWell();
  EXPECT_EQ(Ask({"node", "show", "honest"})["addresses"], before);
}

TEST_F(HostileAgent, BytesThatAreNoAddressEndItsOwnSession) {
  for (const std::string& bytes : {std::string("12345"), std::string(), std::string(4096, 'x')}) {
    v1::Hello hello = HelloOf("hostile");
    hello.add_in_use()->set_address(bytes);
    const auto told = Connect("hostile")->Greet(hello);
    EXPECT_TRUE(absl::IsInvalidArgument(told.status())) << told.status();
  }
  auto silent = Connect("hostile");
  v1::AgentMessage first;
  first.mutable_report()->set_sequence(1);
  silent->Say(first);
  EXPECT_TRUE(absl::IsInvalidArgument(silent->End())) << "the first message must be Hello";
  ExpectOthersAreWell();
}

// Texts are cut between characters, or nobody could list addresses any more.
TEST_F(HostileAgent, LongTextsThatAreNotAsciiAreListed) {
  auto hostile = Connect("hostile");
  const auto told = hostile->Greet(HelloOf("hostile"), 4);
  ASSERT_TRUE(told.ok()) << told.status();
  v1::AgentMessage report;
  report.mutable_report()->set_sequence(1);
  v1::Assignment& assignment = *report.mutable_report()->add_in_use();
  assignment.set_address(told->front());
  assignment.set_generation(1);
  for (std::string* text : {assignment.mutable_container_id(), assignment.mutable_pod_namespace(),
                            assignment.mutable_pod_name(), assignment.mutable_pod_uid()}) {
    *text = "x";
    for (int i = 0; i < 1000; ++i) *text += "\u20ac";
  }
  assignment.set_ifname("eth0");
  hostile->Say(report);
  static_cast<void>(hostile->Hear([](const auto& heard) { return heard.has_report_ack(); }));
  EXPECT_GE(Ask({"ip", "list"}).size(), 8U);
  ExpectOthersAreWell();
}

TEST_F(HostileAgent, TheOlderOfTwoSessionsSpeaksForNobody) {
  auto older = Connect("hostile");
  const auto told = older->Greet(HelloOf("hostile"));
  ASSERT_TRUE(told.ok()) << told.status();
  auto newer = Connect("hostile");
  ASSERT_TRUE(newer->Greet(HelloOf("hostile")).ok());
  const absl::Status ended = older->End();
  EXPECT_TRUE(absl::IsAborted(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("two machines use one identity"));
  std::vector<std::unique_ptr<HostileNode>> rivals;
  for (int i = 0; i < 3; ++i) {
    rivals.push_back(Connect("hostile"));
    ASSERT_TRUE(rivals.back()->Greet(HelloOf("hostile")).ok());
  }
  EXPECT_THAT(Problems(), HasSubstr("sessions of node hostile replaced one another"));
  ExpectOthersAreWell();
}

TEST_F(HostileAgent, ATokenThatNobodySignedStopsItsOwnNodeOnly) {
  v1::Hello forged = HelloOf("hostile");
  forged.set_store_token("1.another.18446744073709551615.7500.aaaa");
  EXPECT_FALSE(Connect("hostile")->Greet(forged).ok());
  EXPECT_EQ(Ask({"recovery", "show"})["phase"], "open");
  EXPECT_THAT(Problems(), HasSubstr("hostile"));
  ExpectOthersAreWell();
}

TEST_F(HostileAgent, AFloodIsReadNoFasterThanItIsAnswered) {
  auto hostile = Connect("hostile");
  ASSERT_TRUE(hostile->Greet(HelloOf("hostile")).ok());
  std::thread flood([&] {
    v1::AgentMessage demand;
    for (int i = 0; i < 2000; ++i) {
      auto& waiting = *demand.mutable_demand()->add_waiting();
      waiting.set_pod_namespace(fmt::format("ns-{}", i));
      waiting.set_pods(1'000'000);
    }
    for (int i = 0; i < 3000 && hostile->Say(demand); ++i) {
    }
  });
  ExpectOthersAreWell();
  ExpectOthersAreWell();
  flood.join();
  EXPECT_LE(AttachedOf("hostile"), kMost);
}

// gRPC copies all of an unfinished header for each piece of it that arrives, so that what may
// arrive bounds the processor time that a connection can cost.
TEST_F(HostileAgent, AHeaderWithoutAnEndIsCut) {
  const Credentials own =
      Enrolled(authority_, {.common_name = "hostile", .dns_names = {"hostile"}});
  Put("hostile.pem", own.certificate);
  Put("hostile.key", own.key);
  auto attacker = crash::ChildProcess::Start(
      {std::string(SPOKE_SOURCE_DIR) + "/tests/abuse/attack.py", "large-header",
       fmt::format("{}", server_->port()), "127.0.0.66", "10", directory_.File("hostile.pem"),
       directory_.File("hostile.key")},
      directory_.File("attack"));
  ASSERT_TRUE(attacker.ok()) << attacker.status();
  ExpectOthersAreWell();
  EXPECT_EQ(attacker->Wait(), 0);
  const json told = json::parse(os::ReadFile(directory_.File("attack")).value_or(""), nullptr,
                                /*allow_exceptions=*/false);
  ASSERT_TRUE(told.is_object());
  EXPECT_GE(told["cut"], 1) << told;
  // A message of the largest size, and the buffers of both ends of the connection.
  EXPECT_LT(told["most_of_one"], 3 << 20) << told;
  ExpectOthersAreWell();
}

// The largest message is on its way for as long as nothing of it has become a message.
TEST_F(HostileAgent, ALargeHelloIsNoAttack) {
  v1::Hello large = HelloOf("large");
  for (int i = 0; i < 3'800; ++i) {
    Assign(large, fmt::format("10.99.{}.{}", i / 250, 1 + i % 250));
    large.mutable_in_use()->rbegin()->set_container_id(std::string(512, 'c'));
  }
  ASSERT_GT(large.ByteSizeLong(), 1'900'000U);
  const auto node = Connect("large");
  const auto told = node->Greet(large);
  EXPECT_TRUE(told.ok()) << told.status();
  v1::AgentMessage report;
  report.mutable_report()->set_sequence(1);
  ASSERT_TRUE(node->Say(report));
  EXPECT_TRUE(node->Hear([](const auto& heard) { return heard.has_report_ack(); }));
}

TEST_F(HostileAgent, ARevokedAgentIsCutAndStaysOut) {
  auto hostile = Connect("hostile");
  ASSERT_TRUE(hostile->Greet(HelloOf("hostile"), 4).ok());
  const absl::Time revoked = absl::Now();
  EXPECT_EQ(Ask({"node", "revoke", "hostile", "--reason", "taken over"})["sessions_ended"], 1);
  const absl::Status end = hostile->End();
  EXPECT_TRUE(absl::IsPermissionDenied(end)) << end;
  EXPECT_THAT(std::string(end.message()),
              testing::HasSubstr("node hostile is revoked: taken over"));
  EXPECT_LT(absl::Now() - revoked, absl::Seconds(5));
  for (const char* vm : {"vm", "vm-2"}) {
    auto again = Connect("hostile");
    const auto told = again->Greet(HelloOf("hostile", vm), 1);
    EXPECT_TRUE(absl::IsPermissionDenied(told.status())) << told.status();
  }
  EXPECT_EQ(AttachedOf("hostile"), 4U) << "its pods keep what they have";
  ExpectOthersAreWell();
}

}  // namespace
}  // namespace spoke::hostile
