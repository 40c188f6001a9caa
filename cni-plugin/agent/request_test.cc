#include "cni-plugin/agent/request.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::cni {
namespace {

using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Expected<Invocation> Parse(const Variables& variables) {
  return ParseEnvironment([&](const char* name) -> const char* {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

Variables Good(const std::string& command = "ADD") {
  return {{"CNI_COMMAND", command},
          {"CNI_CONTAINERID", std::string(64, 'a')},
          {"CNI_NETNS", "/var/run/netns/cni-1"},
          {"CNI_IFNAME", "eth0"}};
}

Variables With(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST(ParseEnvironment, TakesWhatTheRuntimesSend) {
  const auto request =
      Parse(With(Good(), "CNI_ARGS",
                 "K8S_POD_UID=u-1;IgnoreUnknown=1;K8S_POD_NAME=web;K8S_POD_NAMESPACE=prod;FOO"));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->verb, Verb::kAdd);
  EXPECT_EQ(request->pod, (PodReference{"prod", "web", "u-1"}));
  EXPECT_EQ(NameOfPod(*request), "pod prod/web");
}

// Covers B33, C24.
TEST(ParseEnvironment, NoArgsHoldAnythingUp) {
  for (const char* args : {"", ";", "FOO", "FOO=BAR", "IgnoreUnknown=1;", "=;=;", "A=B=C",
                           "IgnoreUnknown=maybe", "\xFF=\xFF;K8S_POD_NAME=\xFF"}) {
    EXPECT_TRUE(Parse(With(Good(), "CNI_ARGS", args)).ok()) << args;
    EXPECT_TRUE(Parse(With(Good("DEL"), "CNI_ARGS", args)).ok()) << args;
  }
  const auto request =
      Parse(With(Good(), "CNI_ARGS", "IgnoreUnknown=1;MAC=02:00:00:00:00:50;IP=10.78.0.50"));
  EXPECT_EQ(request->args_mac, "02:00:00:00:00:50");
  EXPECT_EQ(request->args_ip, "10.78.0.50");
  EXPECT_EQ(Parse(With(Good(), "CNI_ARGS", "K8S_POD_NAME=\xFF"))->pod.name, "\xEF\xBF\xBD");
}

// Covers A8.
TEST(ParseEnvironment, NamesEveryMissingVariableAtOnce) {
  for (const char* command : {"ADD", "CHECK"}) {
    const auto none = Parse({{"CNI_COMMAND", command}});
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, kInvalidEnvironment);
    EXPECT_THAT(none.error().message, HasSubstr("CNI_CONTAINERID, CNI_IFNAME, CNI_NETNS"));
  }
  EXPECT_THAT(Parse({{"CNI_COMMAND", "DEL"}}).error().message,
              testing::EndsWith("CNI_CONTAINERID, CNI_IFNAME"));
}

// Covers A2, C4, C5, E5, F6.
TEST(ParseEnvironment, EachVerbNeedsOnlyItsOwn) {
  Variables no_netns = Good("DEL");
  no_netns.erase("CNI_NETNS");
  EXPECT_TRUE(Parse(no_netns).ok());
  EXPECT_TRUE(Parse(With(Good("DEL"), "CNI_NETNS", "")).ok());
  EXPECT_FALSE(Parse(With(Good("ADD"), "CNI_NETNS", "")).ok());
  EXPECT_FALSE(Parse(With(Good("CHECK"), "CNI_NETNS", "")).ok());
  for (const char* command : {"GC", "STATUS", "VERSION"}) {
    EXPECT_TRUE(Parse({{"CNI_COMMAND", command}}).ok()) << command;
    EXPECT_TRUE(Parse({{"CNI_COMMAND", command}, {"CNI_IFNAME", "a/b"}}).ok()) << command;
  }
}

// Covers A9, A10.
TEST(ParseEnvironment, ContainerIdsAreAsTheSpecHasThem) {
  for (const char* id : {"some-%%container-id", "-a", ".a", "_a", "a b", "a/b", "\xC3\xA9"}) {
    const auto request = Parse(With(Good(), "CNI_CONTAINERID", id));
    ASSERT_FALSE(request.ok()) << id;
    EXPECT_EQ(request.error().code, kInvalidEnvironment);
  }
  for (const size_t length : {1U, 64U, 200U, 4000U}) {
    EXPECT_TRUE(Parse(With(Good(), "CNI_CONTAINERID", std::string(length, 'a'))).ok());
  }
  EXPECT_TRUE(Parse(With(Good(), "CNI_CONTAINERID", "default-ct_1.x")).ok());
}

// Covers A11, A12.
TEST(ParseEnvironment, InterfaceNamesAreThoseTheKernelTakes) {
  for (const char* name :
       {"sixteen-letters-", ".", "..", "a/b", "a:b", "a b", "a\tb", "a\nb", "a\x0B", "a\xC2\xA0",
        "a\xC2\x85", "a\xE2\x80\x83", "a\xE3\x80\x80", "a\xFF", "\xC3", "a\x01", "a\x7F",
        "\xC3\xA0" /* the kernel takes its second byte for white space */}) {
    const auto request = Parse(With(Good(), "CNI_IFNAME", name));
    ASSERT_FALSE(request.ok()) << name;
    EXPECT_EQ(request.error().code, kInvalidEnvironment);
    EXPECT_THAT(request.error().message, HasSubstr("CNI_IFNAME"));
  }
  for (const char* name : {"a", "fifteen-letters", "eth0.100", "\xC3\xA9th0", "..."}) {
    EXPECT_TRUE(Parse(With(Good(), "CNI_IFNAME", name)).ok()) << name;
  }
}

// Covers A13.
TEST(ParseEnvironment, CommandsAreInCapitals) {
  for (const char* command : {"add", "Del", "X", "ADD ", "VERSION\n", "\xFF"}) {
    const auto request = Parse(Good(command));
    ASSERT_FALSE(request.ok()) << command;
    EXPECT_EQ(request.error().code, kInvalidEnvironment);
    EXPECT_THAT(request.error().message, HasSubstr("unknown CNI_COMMAND: "));
  }
}

TEST(ParseEnvironment, ATraceContextIsPassedOnIfItIsOne) {
  const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_EQ(Parse(With(Good(), "TRACEPARENT", good))->trace_parent, good);
  EXPECT_EQ(Parse(With(Good("STATUS"), "TRACEPARENT", good))->trace_parent, good);
  EXPECT_EQ(Parse(With(Good(), "TRACEPARENT", "01" + good.substr(2) + "-x"))->trace_parent,
            "01" + good.substr(2));
  for (const std::string& bad :
       {std::string(), std::string("x"), good + "-x", "ff" + good.substr(2), good.substr(0, 54),
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01" + std::string(),
        "00-" + std::string(32, '0') + "-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-" + std::string(16, '0') + "-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" + std::string()}) {
    EXPECT_EQ(Parse(With(Good(), "TRACEPARENT", bad))->trace_parent, "") << bad;
  }
}

}  // namespace
}  // namespace spoke::cni
