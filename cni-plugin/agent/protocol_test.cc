// Tests of what the spec and the reference plugins promise a runtime of every verb, whatever the
// agent says: errors are one object on standard output, and an exit code.
#include <string>
#include <vector>

#include "cni-plugin/agent/fake_agent_test.h"
#include "gmock/gmock.h"

namespace spoke::cni {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class ProtocolTest : public PluginTest {
 protected:
  // Expects what the spec says each error has: a version, a code and a message, and exit code 1.
  void ExpectError(const Outcome& outcome, int code) {
    EXPECT_EQ(outcome.code, 1);
    const json error = outcome.Json();
    ASSERT_TRUE(error.is_object()) << outcome.out;
    EXPECT_EQ(error["code"], code) << outcome.out;
    EXPECT_FALSE(error["msg"].get<std::string>().empty());
    EXPECT_TRUE(error["cniVersion"].is_string());
  }
};

TEST_F(ProtocolTest, A1_VersionNeedsNothingAndReadsNothing) {
  process_.variables.clear();
  const Outcome outcome = Run("VERSION", std::nullopt);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.Json(),
            (json{{"cniVersion", "1.1.0"},
                  {"supportedVersions", {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}}}));
  EXPECT_FALSE(process_.has_read_input);  // This is A19.
}

TEST_F(ProtocolTest, A2_VersionTakesTheDummiesOfAProbe) {
  process_.variables = {{"CNI_NETNS", "dummy"},
                        {"CNI_IFNAME", "dummy"},
                        {"CNI_PATH", "dummy"},
                        {"CNI_CONTAINERID", ""},
                        {"CNI_ARGS", ""}};
  EXPECT_EQ(Run("VERSION", R"({"cniVersion":"1.1.0"})").code, 0);
}

TEST_F(ProtocolTest, A3_A4_EveryListedVersionIsAcceptedAndEchoed) {
  const std::vector<std::string> versions = {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"};
  FakeAgent agent(path_, std::vector<Answer>(versions.size(), Answer{AttachmentAnswer()}));
  for (const std::string& version : versions) {
    const Outcome outcome = Run("ADD", Config({}, version));
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.Json()["cniVersion"], version);
    EXPECT_EQ(outcome.Json()["ips"][0].contains("version"), version.starts_with("0."));
    EXPECT_EQ(outcome.Json()["interfaces"][0].contains("mtu"), version == "1.1.0");
  }
}

TEST_F(ProtocolTest, A5_A6_A7_VersionsThatAreNotSpoken) {
  const Outcome outcome = Run("ADD", Config({}, "9.9.9"));
  ExpectError(outcome, 1);
  EXPECT_THAT(outcome.Json()["details"].get<std::string>(),
              AllOf(HasSubstr("9.9.9"), HasSubstr("1.1.0")));
  ExpectError(Run("ADD", R"({"name":"a"})"), 1);
  ExpectError(Run("ADD", Config({}, "abc")), 1);
  ExpectError(Run("ADD", Config({{"cniVersion", 7}})), 6);
  EXPECT_EQ(Run("ADD", Config({{"mtu", "x"}}, "0.4.0")).Json()["cniVersion"], "0.4.0");
}

TEST_F(ProtocolTest, A8_EveryMissingVariableIsNamed) {
  process_.variables.clear();
  const Outcome outcome = Run("ADD");
  ExpectError(outcome, 4);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("CNI_CONTAINERID"), HasSubstr("CNI_IFNAME"), HasSubstr("CNI_NETNS")));
  EXPECT_FALSE(process_.has_read_input);
}

TEST_F(ProtocolTest, A9_A11_NamesThatAreInvalid) {
  for (const char* id : {"some-%%container-id", "-a", ""}) {
    process_.variables["CNI_CONTAINERID"] = id;
    for (const char* verb : {"ADD", "DEL", "CHECK"}) ExpectError(Run(verb), 4);
  }
  process_.variables["CNI_CONTAINERID"] = "aaa";
  for (const char* name :
       {"sixteen-letters-", ".", "..", "a/b", "a:b", "a b", "a\t", "a\xC2\xA0"}) {
    process_.variables["CNI_IFNAME"] = name;
    for (const char* verb : {"ADD", "DEL", "CHECK"}) ExpectError(Run(verb), 4);
  }
}

TEST_F(ProtocolTest, A10_A12_NamesThatAreLong) {
  FakeAgent agent(path_, {{AttachmentAnswer()}, {AttachmentAnswer()}});
  process_.variables["CNI_IFNAME"] = "fifteen-letters";
  for (const size_t length : {64U, 200U}) {
    process_.variables["CNI_CONTAINERID"] = std::string(length, 'f');
    EXPECT_EQ(Run("ADD").code, 0);
  }
}

TEST_F(ProtocolTest, A13_CommandsThatAreUnknown) {
  for (const char* command : {"add", "X", "ADD "}) {
    const Outcome outcome = Run(command);
    ExpectError(outcome, 4);
    EXPECT_THAT(outcome.out, HasSubstr(std::string("unknown CNI_COMMAND: ") + command));
  }
}

TEST_F(ProtocolTest, A14_WithoutACommandItSaysWhatItIs) {
  const Outcome outcome = Run("");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.notes, HasSubstr("CNI"));
  process_.variables.erase("CNI_COMMAND");
  EXPECT_EQ(RunCommand(process_), 0);
  EXPECT_EQ(process_.output, "");
  EXPECT_FALSE(process_.has_read_input);
}

TEST_F(ProtocolTest, A15_InputThatIsNoObjectOfJson) {
  for (const std::string& input :
       {std::string(), std::string("{bad"), std::string("[]"), std::string("null"),
        std::string("\"x\""), Config().substr(0, 20), std::string("{\"name\":\"\xFF\"}"),
        std::string(1 << 20, '['), std::string(1 << 20, '{')}) {
    for (const char* verb : {"ADD", "DEL", "CHECK", "GC", "STATUS"})
      ExpectError(Run(verb, input), 6);
  }
  for (const char* verb : {"ADD", "DEL", "CHECK", "GC", "STATUS"}) {
    ExpectError(Run(verb, std::nullopt), 5);
  }
}

TEST_F(ProtocolTest, A16_NetworksWithoutAValidName) {
  ExpectError(Run("ADD", R"({"cniVersion":"1.0.0"})"), 7);
  for (const char* name : {"a/b", "-a", "a b", ""}) {
    for (const char* verb : {"ADD", "DEL", "GC", "STATUS"}) {
      ExpectError(Run(verb, Config({{"name", name}})), 7);
    }
  }
}

TEST_F(ProtocolTest, A17_KeysThatAreUnknownAreIgnored) {
  FakeAgent agent(path_, {{AttachmentAnswer()}});
  EXPECT_EQ(Run("ADD", Config({{"capabilities", {{"bandwidth", true}}},
                               {"ipam", {{"type", "x"}}},
                               {"future", {1, {{"a", 2}}}},
                               {"runtimeConfig",
                                {{"io.kubernetes.cri.pod-annotations", {{"a", "b"}}},
                                 {"aliases", {{"net", {"x"}}}},
                                 {"cgroupPath", "/x"}}}}))
                .code,
            0);
}

TEST_F(ProtocolTest, A18_TheLastOfTwoEqualKeysCounts) {
  FakeAgent agent(path_, {{AttachmentAnswer()}});
  const std::string config = Config();
  EXPECT_EQ(Run("ADD", "{\"mtu\":12,\"mtu\":1400," + config.substr(1)).code, 0);
  EXPECT_EQ(agent.Requests().at(0).options().mtu(), 1400U);
}

TEST_F(ProtocolTest, A20_WhatSucceedsPrintsItsResultAlone) {
  FakeAgent agent(path_, {{AttachmentAnswer()}, {DoneAnswer()}});
  const Outcome add = Run("ADD");
  EXPECT_TRUE(add.Json().is_object());
  EXPECT_EQ(add.notes, "");
  const Outcome del = Run("DEL");
  EXPECT_EQ(del.out, "");
  EXPECT_EQ(del.notes, "");
}

TEST_F(ProtocolTest, VersionsWithoutAVerbRefuseIt) {
  for (const auto& [verb, version] :
       {std::pair("CHECK", "0.3.1"), std::pair("GC", "1.0.0"), std::pair("STATUS", "1.0.0")}) {
    const Outcome outcome = Run(verb, Config({}, version));
    ExpectError(outcome, 1);
    EXPECT_EQ(outcome.Json()["msg"], std::string("config version does not allow ") + verb);
  }
}

}  // namespace
}  // namespace spoke::cni
