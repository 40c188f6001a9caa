// Tests of the program itself, as a runtime execs it: descriptors, environment, exit code. A build
// with sanitizers tests its own and the one of the release build, which is linked with musl.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>

#include "cni-plugin/agent/fake_agent_test.h"
#include "gmock/gmock.h"
#include "tests/support/netns_fixture.h"

namespace spoke::cni {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ProgramTest : public testing_support::NetnsTest,
                    public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    pod_ = testing_support::NewNetns();
    netns_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(pod_.get());
  }

  // The place where standard output goes; a path, or closed.
  static constexpr const char* kClosed = nullptr;

  int Run(const std::map<std::string, std::string>& variables, const std::string& input,
          const char* output) {
    const std::string in = dir_.File("in");
    std::ofstream(in, std::ios::binary) << input;
    std::vector<std::string> texts;
    for (const auto& [name, value] : variables) texts.push_back(name + "=" + value);
    std::vector<char*> environment;
    for (std::string& text : texts) environment.push_back(text.data());
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (output == kClosed) {
      posix_spawn_file_actions_addclose(&actions, 1);
    } else {
      posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    }
    std::string program = GetParam();
    std::array<char*, 2> arguments = {program.data(), nullptr};
    pid_t child = -1;
    const int refused = ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(),
                                      environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (refused != 0) {
      ADD_FAILURE() << program << ": " << std::strerror(refused)
                    << "; the one in build/release comes from scripts/build.sh release spoke";
      return -1;
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::map<std::string, std::string> Variables(const std::string& command) const {
    return {{"CNI_COMMAND", command},
            {"CNI_CONTAINERID", std::string(64, 'a')},
            {"CNI_NETNS", netns_},
            {"CNI_IFNAME", "eth0"}};
  }
  std::string Config(const json& more = json::object()) const {
    json config = {{"cniVersion", "1.1.0"}, {"name", "spoke"}, {"socket", socket_}};
    config.update(more);
    return config.dump();
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const testing_support::TempDir dir_;
  const std::string socket_ = dir_.File("cni.sock");
  const std::string out_ = dir_.File("out");
  const std::string err_ = dir_.File("err");
  std::string netns_;
  os::UniqueFd pod_;
};

TEST_P(ProgramTest, VersionAndAbout) {
  EXPECT_EQ(Run({{"CNI_COMMAND", "VERSION"}}, "", out_.c_str()), 0);
  EXPECT_EQ(json::parse(Read(out_), nullptr, false)["cniVersion"], "1.1.0");
  EXPECT_EQ(Run({}, "", out_.c_str()), 0);
  EXPECT_EQ(Read(out_), "");
  EXPECT_THAT(Read(err_), HasSubstr("CNI plugin"));
  EXPECT_EQ(Run({{"CNI_COMMAND", "VERSION"}}, "", "/dev/full"), 1);
}

TEST_P(ProgramTest, AnAddAndItsResult) {
  FakeAgent agent(socket_, {{AttachmentAnswer()}});
  EXPECT_EQ(Run(Variables("ADD"), Config(), out_.c_str()), 0) << Read(out_);
  EXPECT_EQ(json::parse(Read(out_), nullptr, false)["interfaces"][1]["sandbox"], netns_);
  EXPECT_EQ(Read(err_), "");
  EXPECT_NE(agent.Requests().at(0).attempt(), 0U);
  EXPECT_EQ(agent.Descriptors().at(0), 1);
}

// Covers B20, also where the descriptor is closed, so that what is opened first could take its
// place.
TEST_P(ProgramTest, AnAddWhoseResultNobodyTakesIsUndone) {
  for (const char* output : {static_cast<const char*>("/dev/full"), kClosed}) {
    const testing_support::TempDir dir;
    FakeAgent agent(dir.File("s"), {{AttachmentAnswer()}, {DoneAnswer()}});
    EXPECT_EQ(Run(Variables("ADD"), Config({{"socket", dir.File("s")}}), output), 1);
    EXPECT_THAT(Read(err_), HasSubstr("undone"));
    ASSERT_EQ(agent.Requests().size(), 2U);
    EXPECT_EQ(agent.Requests()[1].verb(), v1::CniRequest::VERB_DEL);
  }
}

// Covers B18: the program runs in the namespace of the test.
TEST_P(ProgramTest, TheNodesOwnNamespaceIsRefused) {
  auto variables = Variables("ADD");
  variables["CNI_NETNS"] = "/proc/" + std::to_string(::getpid()) + "/ns/net";
  EXPECT_EQ(Run(variables, Config(), out_.c_str()), 1);
  EXPECT_EQ(json::parse(Read(out_), nullptr, false)["code"], 8);
}

TEST_P(ProgramTest, ADelWithoutAnAgentSucceeds) {
  EXPECT_EQ(Run(Variables("DEL"), Config(), out_.c_str()), 0);
  EXPECT_EQ(Read(out_), "");
  EXPECT_THAT(Read(err_), HasSubstr("noted down"));
}

// Covers E10, and as much memory as an exec takes: the list as text, as a document and as a
// request.
TEST_P(ProgramTest, AGcWithFiveThousandAttachmentsIsSent) {
  json list = json::array();
  for (int i = 0; i < 5000; ++i) {
    list.push_back({{"containerID", std::string(64, 'a') + std::to_string(i)}, {"ifname", "eth0"}});
  }
  FakeAgent agent(socket_, {{DoneAnswer()}});
  EXPECT_EQ(Run({{"CNI_COMMAND", "GC"}},
                Config({{"cni.dev/valid-attachments", list}, {"cni.dev/attachments", list}}),
                out_.c_str()),
            0)
      << Read(out_);
  EXPECT_EQ(agent.Requests().at(0).valid_size(), 5000);
}

TEST_P(ProgramTest, InputThatIsMalformedOrTooLongIsOneErrorObject) {
  for (const std::string& input :
       {std::string(), std::string("{bad"), std::string(1 << 20, '['),
        "{\"a\":\"" + std::string(3 << 20, 'x') + "\"", std::string(5 << 20, ' ')}) {
    EXPECT_EQ(Run(Variables("DEL"), input, out_.c_str()), 1);
    const json error = json::parse(Read(out_), nullptr, false);
    ASSERT_TRUE(error.is_object());
    EXPECT_EQ(error["code"], input.size() > (4U << 20U) ? 5 : 6);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, ProgramTest, testing::Values(SPOKE_PROGRAMS),
                         [](const auto& test) {
                           // Where there are two, the second is the released one.
                           return test.index == 0 ? "spoke" : "spoke_released";
                         });

}  // namespace
}  // namespace spoke::cni
