// Tests of the verbs against an agent that the test plays on a real socket.
#include "cni-plugin/commands.h"

#include <filesystem>
#include <fstream>

#include "cni-plugin/agent/agent_client.h"
#include "cni-plugin/agent/fake_agent_test.h"
#include "gmock/gmock.h"
#include "lib/base/version.h"

namespace spoke::cni {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CommandsTest : public PluginTest {
 protected:
  std::string TombstonePath() const {
    return dir_.File("tombstones/" + TombstoneName("aaa", "eth0"));
  }
  bool HasTombstone() const { return std::filesystem::exists(TombstonePath()); }

  // Returns a configuration with the result of an ADD.
  std::string CheckConfig(const std::string& sandbox) const {
    return Config({{"prevResult",
                    {{"interfaces",
                      {{{"name", "spk1"}, {"mac", "0a:00:00:00:00:01"}},
                       {{"name", "eth0"}, {"mac", "0e:00:00:00:00:01"}, {"sandbox", sandbox}}}},
                     {"ips", {{{"address", "10.1.0.5/32"}, {"interface", 1}}}}}}});
  }
};

// Covers B1, B2, B24.
TEST_F(CommandsTest, AddAsksForWhatTheRuntimeSaysAndPrintsOneResult) {
  FakeAgent agent(path_, {{AttachmentAnswer()}});
  process_.variables["CNI_ARGS"] = "K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web;K8S_POD_UID=u";
  process_.variables["TRACEPARENT"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const Outcome outcome =
      Run("ADD", Config({{"mtu", 1400},
                         {"timeoutSeconds", 50},
                         {"runtimeConfig",
                          {{"mac", "0E:11:22:33:44:55"},
                           {"ips", {"10.1.0.5"}},
                           {"bandwidth", {{"IngressRate", 8}, {"IngressBurst", 16}}}}}}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.Json()["ips"][0]["address"], "10.1.0.5/32");
  EXPECT_EQ(outcome.Json()["interfaces"][1]["sandbox"], "/proc/self/ns/net");
  EXPECT_EQ(outcome.Json()["interfaces"][1]["mtu"], 1500);
  EXPECT_EQ(outcome.notes, "");
  const v1::CniRequest& request = agent.Requests().at(0);
  EXPECT_EQ(request.verb(), v1::CniRequest::VERB_ADD);
  EXPECT_EQ(request.container_id(), "aaa");
  EXPECT_EQ(request.ifname(), "eth0");
  EXPECT_EQ(request.network_name(), "spoke");
  EXPECT_EQ(request.pod().namespace_(), "prod");
  EXPECT_EQ(request.attempt(), 1U);
  EXPECT_EQ(request.netns_path(), "/proc/self/ns/net");
  EXPECT_EQ(request.trace_parent(), process_.variables["TRACEPARENT"]);
  EXPECT_EQ(request.plugin_version(), base::kVersion);
  EXPECT_EQ(request.options().mac(), "0e:11:22:33:44:55");
  EXPECT_EQ(request.options().addresses(0), "10.1.0.5");
  EXPECT_EQ(request.options().mtu(), 1400U);
  EXPECT_EQ(request.options().bandwidth().ingress_burst(), 16U);
  EXPECT_EQ(agent.Descriptors().at(0), 1);
}

// Covers B16, B17, B18: nothing is asked, and an agent that is away is not waited for.
TEST_F(CommandsTest, ANamespaceThatCannotBeThePodsIsRefusedBeforeAnythingIsAsked) {
  for (const char* verb : {"ADD", "CHECK"}) {
    process_.own_netns = "/proc/self/ns/uts";
    process_.variables["CNI_NETNS"] = dir_.File("missing");
    EXPECT_EQ(Run(verb, CheckConfig("/x")).ErrorCode(), 4);
    std::ofstream(dir_.File("file")) << "x";
    process_.variables["CNI_NETNS"] = dir_.File("file");
    EXPECT_EQ(Run(verb, CheckConfig("/x")).ErrorCode(), 4);
    process_.own_netns = "/proc/self/ns/net";
    process_.variables["CNI_NETNS"] = "/proc/thread-self/ns/net";
    EXPECT_EQ(Run(verb, CheckConfig("/x")).ErrorCode(), 8);
  }
  EXPECT_FALSE(std::filesystem::exists(dir_.File("tombstones")));
}

// Covers B22.
TEST_F(CommandsTest, AnAddWithoutAUsableAnswerIsOneErrorObject) {
  const Outcome missing = Run("ADD");
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.ErrorCode(), 11);
  EXPECT_THAT(missing.out, HasSubstr("check that the agent runs here"));
  EXPECT_EQ(missing.Json()["cniVersion"], "1.1.0");
  v1::CniResponse empty;
  empty.mutable_attachment();
  FakeAgent agent(path_, {{"\xff\xff"}, {DoneAnswer()}, {empty.SerializeAsString()}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run("ADD").ErrorCode(), 100);
}

// Covers B9, B10, B23.
TEST_F(CommandsTest, TheAgentsOwnErrorIsPassedOn) {
  FakeAgent agent(path_, {{ErrorAnswer(11, "no IPv4 address is free")},
                          {ErrorAnswer(101, "eth0 exists already")},
                          {ErrorAnswer(102, "the route is gone")},
                          {ErrorAnswer(100, "half of it was not deleted")}});
  const Outcome full = Run("ADD");
  EXPECT_EQ(full.code, 1);
  EXPECT_EQ(full.ErrorCode(), 11);
  EXPECT_EQ(full.Json()["msg"], "no IPv4 address is free");
  EXPECT_EQ(Run("ADD").ErrorCode(), 101);
  EXPECT_EQ(Run("CHECK", CheckConfig("/proc/self/ns/net")).ErrorCode(), 102);
  EXPECT_EQ(Run("GC", Config({{"cni.dev/valid-attachments", json::array()}})).ErrorCode(), 100);
}

// Covers B20.
TEST_F(CommandsTest, AResultThatNobodyReadsIsUndone) {
  FakeAgent agent(path_, {{AttachmentAnswer()}, {DoneAnswer()}});
  process_.output_works = false;
  const Outcome outcome = Run("ADD");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.notes, HasSubstr("was undone"));
  ASSERT_EQ(agent.Requests().size(), 2U);
  EXPECT_EQ(agent.Requests()[1].verb(), v1::CniRequest::VERB_DEL);
  EXPECT_EQ(agent.Requests()[1].container_id(), "aaa");
}

TEST_F(CommandsTest, AResultThatNobodyReadsIsUndoneLaterIfTheAgentIsGone) {
  {
    FakeAgent agent(path_, {{AttachmentAnswer()}});
    process_.output_works = false;
    EXPECT_EQ(Run("ADD").code, 1);
  }
  EXPECT_TRUE(HasTombstone());
}

// Covers C1, C2, C4, C5, C6, C7, C8, C19: the namespace does not matter.
TEST_F(CommandsTest, DelPrintsNothingWhateverTheNamespaceIs) {
  std::ofstream(dir_.File("file")) << "x";
  const std::optional<std::string> namespaces[] = {
      std::nullopt,     "",    "/proc/self/ns/net", dir_.File("missing"), dir_.File("file"),
      "/proc/1/ns/uts", "\xff"};
  FakeAgent agent(path_, std::vector<Answer>(std::size(namespaces), Answer{DoneAnswer()}));
  process_.own_netns = "/proc/self/ns/net";
  for (const auto& netns : namespaces) {
    process_.variables.erase("CNI_NETNS");
    if (netns) process_.variables["CNI_NETNS"] = *netns;
    const Outcome outcome = Run("DEL", Config({}, "0.3.1"));
    EXPECT_EQ(outcome.code, 0) << netns.value_or("unset");
    EXPECT_EQ(outcome.out, "");
  }
  for (const int descriptors : agent.Descriptors()) EXPECT_EQ(descriptors, 0);
}

// Covers C12, C24.
TEST_F(CommandsTest, DelIsHeldUpByNothingInArgsOrPrevResult) {
  const json prevs[] = {nullptr,
                        json::object(),
                        {{"dns", json::object()}},
                        "x",
                        7,
                        {{"cniVersion", "9"}, {"ips", 7}}};
  FakeAgent agent(path_, std::vector<Answer>(std::size(prevs), Answer{DoneAnswer()}));
  process_.variables["CNI_ARGS"] = "FOO;=;MAC=x;IP=y;";
  for (const json& prev : prevs) EXPECT_EQ(Run("DEL", Config({{"prevResult", prev}})).code, 0);
}

// Covers C14, E11.
TEST_F(CommandsTest, ADelThatNobodyHearsIsNotedDownAndSucceeds) {
  const Outcome outcome = Run("DEL");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.notes, AllOf(HasSubstr("does not answer"), testing::EndsWith("\n")));
  std::ifstream file(TombstonePath(), std::ios::binary);
  v1::CniRequest request;
  ASSERT_TRUE(request.ParseFromIstream(&file));
  EXPECT_EQ(request.verb(), v1::CniRequest::VERB_DEL);
  EXPECT_EQ(request.container_id(), "aaa");
  EXPECT_EQ(request.network_name(), "spoke");
}

TEST_F(CommandsTest, ADelThatIsAnsweredWithNonsenseIsNotedDown) {
  FakeAgent agent(path_, {{"\xff\xff"}, {AttachmentAnswer()}});
  EXPECT_EQ(Run("DEL").code, 0);
  EXPECT_TRUE(HasTombstone());
  EXPECT_EQ(Run("DEL").code, 0);
}

TEST_F(CommandsTest, ADelThatCannotBeNotedDownIsAnError) {
  std::ofstream(dir_.File("tombstones")) << "x";
  const Outcome outcome = Run("DEL");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.ErrorCode(), 11);
}

// containerd takes an error with these words for success, and the address would leak.
TEST_F(CommandsTest, NoErrorOfADelSaysThatSomethingIsGone) {
  FakeAgent agent(path_,
                  {{ErrorAnswer(100, "link not found, Not Found: No such file or directory")}});
  const Outcome outcome = Run("DEL");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.Json()["msg"], "link unknown, unknown: missing");
  EXPECT_FALSE(HasTombstone());
}

// Covers D1, D16, G3.
TEST_F(CommandsTest, CheckSendsWhatPrevResultExpects) {
  FakeAgent agent(path_, {{DoneAnswer()}});
  const Outcome outcome = Run("CHECK", CheckConfig("/proc/thread-self/ns/net"));
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_EQ(outcome.out, "");
  const v1::CniRequest& request = agent.Requests().at(0);
  EXPECT_EQ(request.verb(), v1::CniRequest::VERB_CHECK);
  EXPECT_EQ(request.expected().host_link(), "spk1");
  EXPECT_EQ(request.expected().pod_mac(), "0e:00:00:00:00:01");
  EXPECT_EQ(request.expected().addresses(0).address(), "10.1.0.5/32");
  EXPECT_EQ(agent.Descriptors().at(0), 1);
}

// Covers D3, D4.
TEST_F(CommandsTest, CheckOfAnotherSandboxAsksNobody) {
  EXPECT_EQ(Run("CHECK", CheckConfig("/proc/self/ns/uts")).ErrorCode(), 7);
  EXPECT_EQ(Run("CHECK", CheckConfig("/nowhere")).ErrorCode(), 7);
  EXPECT_EQ(Run("CHECK").ErrorCode(), 7);
}

TEST_F(CommandsTest, CheckAndGcWithoutAnAgentFail) {
  EXPECT_EQ(Run("CHECK", CheckConfig("/proc/self/ns/net")).ErrorCode(), 11);
  EXPECT_EQ(Run("GC", Config({{"cni.dev/attachments", json::array()}})).ErrorCode(), 11);
}

// Covers E1, E2, E3, E4, E5.
TEST_F(CommandsTest, GcSendsWhatIsInUseOrNothing) {
  FakeAgent agent(path_, {{DoneAnswer()}, {DoneAnswer()}});
  process_.variables.clear();
  // Without a list nothing is known to be stale, and nobody is asked.
  EXPECT_EQ(Run("GC").code, 0);
  EXPECT_EQ(Run("GC", Config({{"cni.dev/valid-attachments",
                               {{{"containerID", "aaa"}, {"ifname", "eth0"}},
                                {{"containerID", "aaa"}, {"ifname", "net1"}}}}}))
                .code,
            0);
  EXPECT_EQ(Run("GC", Config({{"cni.dev/attachments", json::array()}})).code, 0);
  EXPECT_EQ(Run("GC", Config({{"cni.dev/attachments", {7}}})).ErrorCode(), 7);
  ASSERT_EQ(agent.Requests().size(), 2U);
  EXPECT_EQ(agent.Requests()[0].verb(), v1::CniRequest::VERB_GC);
  EXPECT_EQ(agent.Requests()[0].network_name(), "spoke");
  ASSERT_EQ(agent.Requests()[0].valid_size(), 2);
  EXPECT_EQ(agent.Requests()[0].valid(1).ifname(), "net1");
  EXPECT_EQ(agent.Requests()[1].valid_size(), 0);
}

// Covers F1, F2, F3, F4, F6, F7.
TEST_F(CommandsTest, StatusAnswersAtOnce) {
  process_.variables.clear();
  const int64_t before_ms = MonotonicMs();
  const Outcome away = Run("STATUS");
  EXPECT_EQ(away.code, 1);
  EXPECT_EQ(away.ErrorCode(), 50);
  FakeAgent agent(path_, {{DoneAnswer()},
                          {ErrorAnswer(50, "no address is idle")},
                          {ErrorAnswer(51, "the data path is broken")},
                          {"\xff"},
                          {""},
                          {DoneAnswer(), 10'000}});
  const Outcome ready = Run("STATUS");
  EXPECT_EQ(ready.code, 0);
  EXPECT_EQ(ready.out, "");
  EXPECT_EQ(Run("STATUS").ErrorCode(), 50);
  EXPECT_EQ(Run("STATUS").ErrorCode(), 51);
  EXPECT_EQ(Run("STATUS").ErrorCode(), 50);
  EXPECT_EQ(Run("STATUS").ErrorCode(), 50);  // An agent that hung up is not asked again.
  EXPECT_EQ(Run("STATUS").ErrorCode(), 50);  // An agent that is silent is not waited for.
  EXPECT_LT(MonotonicMs() - before_ms, 5000);
}

}  // namespace
}  // namespace spoke::cni
