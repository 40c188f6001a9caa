// Tests that what version 0.1.0 has written is read by the programs as they are now: journals and
// stores outlive an upgrade, and during one old and new programs talk to each other.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/store/record_codec.h"
#include "lib/cni_api/wire.h"
#include "lib/node_api/messages.h"
#include "lib/os/file.h"
#include "netagent/cni/add_service.h"
#include "netagent/journal/journal.h"
#include "proto/spoke/v1/node.pb.h"
#include "tests/compat/samples.h"

namespace spoke::compat {
namespace {

using testing::ElementsAre;

std::string Golden(const std::string& name) {
  const auto bytes = os::ReadFile(SPOKE_SOURCE_DIR "/tests/compat/testdata/0.1.0/" + name);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or("");
}

template <typename Message>
Message Parsed(const std::string& name) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(Golden(name))) << name;
  return message;
}

TEST(Golden, TheJournalIsReadWholeAndMeansTheSame) {
  const std::string bytes = Golden("journal");
  const netagent::ParsedJournal journal = netagent::ParseJournal(bytes);
  EXPECT_EQ(journal.valid_bytes, bytes.size());
  const auto wanted = JournalSample();
  ASSERT_EQ(journal.events.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(journal.events[i].index(), wanted[i].index()) << i;
    // Events have no comparison of their own; today's bytes say all that is in one.
    EXPECT_EQ(netagent::EncodeFrame(journal.events[i]), netagent::EncodeFrame(wanted[i])) << i;
  }
}

TEST(Golden, TheStoresRecordsMeanTheSame) {
  EXPECT_EQ(ipam::DecodeNode(Golden("node")).value(), NodeSample());
  EXPECT_EQ(ipam::DecodeQuarantine(Golden("quarantine")).value(), QuarantineSample());
  EXPECT_EQ(ipam::DecodeReservation(Golden("reservation")).value(), ReservationSample());
  EXPECT_EQ(ipam::DecodeBreaker(Golden("breaker")).value(), BreakerSample());
}

TEST(Golden, TheServerTakesTheHello) {
  const auto message = Parsed<v1::AgentMessage>("hello");
  ASSERT_TRUE(message.has_hello());
  const node_api::Hello hello = node_api::FromWire(message.hello()).value();
  EXPECT_EQ(ipam::KeyOf(hello), (ipam::NodeKey{"node1", "vm-1"}));
  EXPECT_EQ(hello.node.boot_id, "boot");
  EXPECT_EQ(hello.node.agent_version, "0.1.0");
  EXPECT_EQ(hello.policy_version, 12U);
  EXPECT_EQ(hello.node.vnet, "west");
  EXPECT_EQ(hello.node.instance, "/subscriptions/s/vm/1");
  EXPECT_EQ(hello.node.labels, (std::map<std::string, std::string>{{"zone", "2"}}));
  EXPECT_EQ(hello.nic.mac.ToString(), "00:0d:3a:00:00:01");
  ASSERT_EQ(hello.in_use.size(), 2U) << "one an address";
  EXPECT_EQ(hello.in_use[0].generation, 42U);
  EXPECT_EQ(hello.in_use[0].since, kThen);
  EXPECT_EQ(hello.in_use[0].lessee, (node_api::Lessee{"c0ffee", "eth0", "ns", "pod", "uid"}));
  EXPECT_EQ(hello.cooldown.size(), 1U);
  EXPECT_EQ(hello.node.subnets.size(), 1U);
}

TEST(Golden, TheAgentTakesWelcomeAndDesiredState) {
  const auto welcome = Parsed<v1::ServerMessage>("welcome");
  EXPECT_EQ(welcome.welcome().session_epoch(), 7U);
  EXPECT_EQ(welcome.welcome().server_version(), "0.1.0");
  const auto request = node_api::FromWire(Parsed<v1::ServerMessage>("desired")).value();
  ASSERT_TRUE(request.has_value());
  const auto& desired = std::get<node_api::DesiredState>(*request);
  EXPECT_EQ(desired.version, 3U);
  EXPECT_TRUE(desired.full);
  ASSERT_EQ(desired.added.size(), 1U);
  EXPECT_EQ(desired.added[0].range.ToString(), "10.1.0.16/31");
  EXPECT_EQ(desired.added[0].pool, "default");
  EXPECT_EQ(desired.added[0].cooldown, absl::Seconds(9));
  ASSERT_EQ(desired.removed.size(), 1U);
  EXPECT_EQ(desired.removed[0].ToString(), "10.1.0.9/32");
  EXPECT_THAT(desired.pools, ElementsAre(node_api::PoolState{.name = "default",
                                                             .cidr = "10.1.0.0/24",
                                                             .usable = 251,
                                                             .attached = 16,
                                                             .free = 235,
                                                             .namespaces = {"web"}}));
}

TEST(Golden, TheAgentTakesAnAddOfThePlugin) {
  const auto message = cni::DecodeRequest(Golden("cni_request"));
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->verb, cni::Verb::kAdd);
  EXPECT_EQ(message->plugin_version, "0.1.0");
  const netagent::Assignment request = netagent::AssignmentOf(*message).value();
  EXPECT_EQ(request.key, (netagent::AttachmentKey{"c0ffee", "eth0"}));
  EXPECT_EQ(request.pod, (cni::PodReference{"ns", "pod", "uid"}));
  EXPECT_EQ(request.attempt, 7U);
  EXPECT_EQ(request.netns_path, "/run/netns/cni-1");
  EXPECT_EQ(request.network, "spoke");
  EXPECT_EQ(request.options.mtu, 1400U);
  ASSERT_EQ(request.addresses.size(), 1U);
  EXPECT_EQ(request.addresses[0].ToString(), "10.1.0.5");
}

TEST(Golden, ThePluginTakesTheAgentsAnswer) {
  const auto response = cni::DecodeResponse(Golden("cni_response"));
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->outcome, cni::Response::Outcome::kAttachment);
  EXPECT_EQ(response->attachment, (cni::Attachment{.host_link = "spk1",
                                                   .host_mac = "0e:00:00:00:00:01",
                                                   .pod_mac = "02:00:5e:00:53:01",
                                                   .mtu = 1400,
                                                   .addresses = {{"10.1.0.5/32", "169.254.1.1"}}}));
}

}  // namespace
}  // namespace spoke::compat
