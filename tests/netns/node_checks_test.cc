// Tests of what this machine's kernel says to the node checks: its features, devices and rules of
// others.
#include "gmock/gmock.h"
#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"
#include "lib/nft/connection.h"
#include "lib/nft/firewall_dump.h"
#include "lib/node_checks/examine.h"
#include "lib/node_checks/facts/kernel_probe.h"
#include "lib/node_checks/facts/network_facts.h"
#include "lib/os/subprocess.h"
#include "tests/support/netns_fixture.h"

namespace spoke::node_checks {
namespace {

using testing::Contains;
using testing::Field;
using testing::IsEmpty;

class NodeChecksTest : public testing_support::NetnsTest {
 protected:
  static void Shell(const std::string& script) {
    const auto result = os::RunProgram({"/bin/sh", "-ec", script});
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->exit_code, 0) << script << ": " << result->errors;
  }
  static std::vector<Finding> ForwardFindings() {
    NodeFacts facts;
    ReadFirewall("/proc", facts);
    EXPECT_TRUE(facts.firewall_status.ok()) << facts.firewall_status;
    std::vector<Finding> found;
    for (const Finding& finding : Examine(facts).findings) {
      if (finding.id == "forward-rules") found.push_back(finding);
    }
    return found;
  }
};

// This machine runs all other tests of the kernel, so it has it all.
TEST_F(NodeChecksTest, EveryFeatureIsFoundAndNothingStays) {
  auto socket = netlink::Socket::Open();
  ASSERT_TRUE(socket.ok());
  const auto before = netlink::DumpLinks(*socket, "");
  for (int round = 0; round < 2; ++round) {
    for (const auto& [feature, state] : ProbeKernel()) {
      EXPECT_EQ(state.answer, FeatureState::Answer::kPresent)
          << static_cast<int>(feature) << ": " << state.words;
    }
  }
  EXPECT_EQ(netlink::DumpLinks(*socket, "").value(), before.value());
  EXPECT_THAT(ForwardFindings(), IsEmpty());
}

TEST_F(NodeChecksTest, DevicesAreThoseOfTheNamespace) {
  Shell(
      "ip link add nic0 mtu 1400 type veth peer name cni0; ip link set nic0 up;"
      "ip address add 10.9.0.1/20 dev nic0; ip address add fd00::1/64 dev nic0 nodad");
  NodeFacts facts;
  facts.settings.nic = "nic0";
  ReadLinks(facts);
  ASSERT_TRUE(facts.links_status.ok()) << facts.links_status;
  ASSERT_TRUE(facts.nic.has_value());
  EXPECT_TRUE(facts.nic->link.up);
  EXPECT_EQ(facts.nic->link.mtu, 1400U);
  EXPECT_EQ(facts.nic->v4_length, 20);
  EXPECT_TRUE(facts.nic->has_v6);
  EXPECT_THAT(Examine(facts).findings, Contains(Field(&Finding::id, "other-networks")));
  EXPECT_THAT(facts.gateways, IsEmpty());
}

TEST_F(NodeChecksTest, TheNicIsThatOfTheDefaultRoute) {
  Shell(
      "ip link add nic0 type veth peer name far0; ip link add nic1 type veth peer name far1;"
      "for link in nic0 far0 nic1 far1; do ip link set $link up; done;"
      "ip address add 10.9.0.1/20 dev nic0; ip address add 10.8.0.1/20 dev nic1;"
      "ip address add fd00::1/64 dev nic0 nodad");
  EXPECT_TRUE(absl::IsNotFound(ReadUplink().status())) << ReadUplink().status();
  Shell("ip route add default via fd00::fe");
  EXPECT_EQ(ReadUplink().value(), "nic0");  // By IPv6, as long as IPv4 has none.
  Shell(
      "ip route add default via 10.8.0.254 metric 100; ip route add default via 10.9.0.254 metric "
      "200");
  EXPECT_EQ(ReadUplink().value(), "nic1");
  Shell("ip route replace default nexthop via 10.8.0.254 nexthop via 10.9.0.254");
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadUplink().status())) << ReadUplink().status();
}

TEST_F(NodeChecksTest, AGatewayThatNobodyAnswersForIsFound) {
  Shell(
      "ip link add nic0 type veth peer name far0; ip link set nic0 up; ip link set far0 up;"
      "ip address add 10.9.0.1/20 dev nic0; ip address add fd00::1/64 dev nic0 nodad;"
      "ip route add default via 10.9.0.254; ip route add default via fd00::fe;"
      "ip neighbour replace fd00::fe lladdr 02:00:00:00:00:01 dev nic0 nud permanent;"
      "ip neighbour replace 10.9.0.254 dev nic0 nud failed");
  NodeFacts facts;
  facts.settings.nic = "nic0";
  ReadLinks(facts);
  ASSERT_TRUE(facts.links_status.ok()) << facts.links_status;
  ASSERT_EQ(facts.gateways.size(), 2U);
  EXPECT_EQ(facts.gateways[0].address, "10.9.0.254");
  EXPECT_TRUE(facts.gateways[0].silent);
  EXPECT_EQ(facts.gateways[1].address, "fd00::fe");
  EXPECT_FALSE(facts.gateways[1].silent);
}

TEST_F(NodeChecksTest, RulesOfOthersAreReadAsNftWritesThem) {
  Shell(R"(nft '
      table inet other {
        chain pods { oifname "spk*" counter accept; }
        chain forward {
          type filter hook forward priority 0; policy drop;
          ct state established,related accept
          iifname "docker0" accept
          meta mark 0x4000 accept comment "x"
        }
        chain elsewhere { type filter hook input priority 0; policy drop; }
      }
      table ip some {
        chain forward {
          type filter hook forward priority 1; policy accept;
          ip saddr 10.0.0.0/8 ip daddr != 10.0.0.0/8 drop
        }
      }')");
  auto found = ForwardFindings();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].object, "inet other forward");
  EXPECT_EQ(found[0].severity, Severity::kBlocking) << found[0].what;
  EXPECT_EQ(found[1].object, "ip some forward");
  EXPECT_EQ(found[1].severity, Severity::kWarning);
  Shell("nft 'delete table ip some; insert rule inet other forward jump pods'");
  found = ForwardFindings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::kWarning) << found[0].what;
  Shell("nft 'add rule inet other forward reject; insert rule inet other forward accept'");
  EXPECT_THAT(ForwardFindings(), IsEmpty());
}

TEST_F(NodeChecksTest, RulesOfIptablesAreReadFromBothItsBackEnds) {
  for (const std::string program : {"iptables-nft", "iptables-legacy"}) {
    Shell("F=" + program + "; $F -P FORWARD DROP; $F -N DOCKER-USER;" +
          "$F -A DOCKER-USER -j RETURN; $F -A FORWARD -j DOCKER-USER;" +
          "$F -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT;" +
          "$F -A FORWARD -i docker0 -j ACCEPT");
    const auto found = ForwardFindings();
    ASSERT_EQ(found.size(), 1U) << program;
    EXPECT_EQ(found[0].severity, Severity::kBlocking) << program << ": " << found[0].what;
    Shell(program + " -I FORWARD -i spk+ -j ACCEPT");
    const auto better = ForwardFindings();
    ASSERT_EQ(better.size(), 1U) << program;
    EXPECT_EQ(better[0].severity, Severity::kWarning) << program;
    Shell(program + " -P FORWARD ACCEPT");
    EXPECT_THAT(ForwardFindings(), IsEmpty()) << program;
  }
}

}  // namespace
}  // namespace spoke::node_checks
