// The verbs against an agent that the test plays on a real socket.
#include "cni-plugin/commands.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"
#include "proto/spoke/v1/cni.pb.h"
#include "tests/support/temp_dir.h"

namespace spoke::cni {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class CommandsTest : public testing::Test {
 protected:
  struct Outcome {
    int code = -1;
    std::string out;
    std::string err;
    json Json() const { return json::parse(out, nullptr, false); }
  };

  Outcome Run(const std::string& command, std::optional<std::string> input = std::nullopt) {
    const std::map<std::string, std::string> variables = {{"CNI_COMMAND", command},
                                                          {"CNI_CONTAINERID", "aaa"},
                                                          {"CNI_NETNS", "/proc/self/ns/net"},
                                                          {"CNI_IFNAME", "eth0"}};
    const std::string text =
        input.value_or(json{{"cniVersion", "1.0.0"}, {"name", "spoke"}, {"socket", path_}}.dump());
    Outcome outcome;
    outcome.code =
        RunCommand({.environment = [&](const char* name) -> std::optional<std::string> {
                      const auto it = variables.find(name);
                      if (command.empty() || it == variables.end()) return std::nullopt;
                      return it->second;
                    },
                    .read_stdin =
                        [&](std::string& in) {
                          in = text;
                          return true;
                        },
                    .write_stdout =
                        [&](const std::string& out) {
                          outcome.out += out;
                          return stdout_works_;
                        },
                    .write_stderr = [&](const std::string& err) { outcome.err += err; }});
    return outcome;
  }

  // Plays the agent for as many requests as there are answers.
  void PlayAgent(std::vector<std::string> answers) {
    listener_ = os::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    ASSERT_EQ(::listen(listener_.get(), 8), 0);
    agent_ = std::thread([this, answers = std::move(answers)] {
      for (const std::string& answer : answers) {
        const os::UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        std::string bytes(65536, '\0');
        const ssize_t got = ::recv(client.get(), bytes.data(), bytes.size(), 0);
        v1::CniRequest request;
        if (got > 0) request.ParseFromArray(bytes.data(), static_cast<int>(got));
        requests_.push_back(request);
        if (!answer.empty()) ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      }
    });
  }
  void TearDown() override {
    if (agent_.joinable()) agent_.join();
  }

  static std::string AttachmentAnswer() {
    v1::CniResponse response;
    response.mutable_attachment()->set_host_link("spk0123456789ab");
    v1::CniAddress& address = *response.mutable_attachment()->add_addresses();
    address.set_address("10.1.0.5/32");
    address.set_gateway("169.254.1.1");
    return response.SerializeAsString();
  }
  static std::string DoneAnswer() {
    v1::CniResponse response;
    response.mutable_done();
    return response.SerializeAsString();
  }

  const testing_support::TempDir dir_;
  const std::string path_ = dir_.File("cni.sock");
  bool stdout_works_ = true;
  os::UniqueFd listener_;
  std::vector<v1::CniRequest> requests_;
  std::thread agent_;
};

TEST_F(CommandsTest, AddPrintsOneResult) {
  PlayAgent({AttachmentAnswer()});
  const Outcome outcome = Run("ADD");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.Json()["ips"][0]["address"], "10.1.0.5/32");
  TearDown();
  EXPECT_EQ(requests_.at(0).verb(), v1::CniRequest::VERB_ADD);
  EXPECT_EQ(requests_.at(0).container_id(), "aaa");
}

TEST_F(CommandsTest, DelPrintsNothing) {
  PlayAgent({DoneAnswer()});
  const Outcome outcome = Run("DEL");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
}

TEST_F(CommandsTest, WithoutAnAgentBothFailFastAndSayWhatToCheck) {
  for (const char* command : {"ADD", "DEL"}) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.Json()["code"], 11);
    EXPECT_THAT(outcome.out, HasSubstr("check that the agent runs here"));
    // containerd takes an error with these words for success, and the address would leak.
    EXPECT_THAT(outcome.out, Not(HasSubstr("not found")));
    EXPECT_THAT(outcome.out, Not(HasSubstr("no such file")));
  }
}

TEST_F(CommandsTest, AnAgentThatDiesOrTalksNonsenseIsAnErrorObject) {
  PlayAgent({"", "\xff\xff", DoneAnswer()});
  EXPECT_EQ(Run("ADD").Json()["code"], 11);
  EXPECT_EQ(Run("ADD").Json()["code"], 100);
  EXPECT_EQ(Run("ADD").Json()["code"], 100);  // A DEL's answer to an ADD.
}

TEST_F(CommandsTest, TheAgentsOwnErrorIsPassedOn) {
  v1::CniResponse response;
  response.mutable_error()->set_code(11);
  response.mutable_error()->set_message("no IPv4 address is free");
  PlayAgent({response.SerializeAsString()});
  const Outcome outcome = Run("ADD");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.Json()["msg"], "no IPv4 address is free");
}

TEST_F(CommandsTest, AResultThatNobodyReadsIsUndone) {
  PlayAgent({AttachmentAnswer(), DoneAnswer()});
  stdout_works_ = false;
  EXPECT_EQ(Run("ADD").code, 1);
  TearDown();
  ASSERT_EQ(requests_.size(), 2U);
  EXPECT_EQ(requests_[1].verb(), v1::CniRequest::VERB_DEL);
}

TEST_F(CommandsTest, VersionAndAboutNeedNothing) {
  EXPECT_EQ(Run("VERSION").Json()["cniVersion"], "1.0.0");
  const Outcome about = Run("");
  EXPECT_EQ(about.code, 0);
  EXPECT_EQ(about.out, "");
  EXPECT_THAT(about.err, HasSubstr("CNI"));
}

TEST_F(CommandsTest, BadInputIsOneErrorObject) {
  for (const char* text : {"", "{bad", "[]"}) {
    const Outcome outcome = Run("ADD", text);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.Json()["code"], 6) << text;
  }
}

}  // namespace
}  // namespace spoke::cni
