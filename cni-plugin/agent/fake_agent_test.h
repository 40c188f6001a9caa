// An agent for tests on a real socket that answers as it is told, and a process whose environment,
// input and output are values.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cni-plugin/commands.h"
#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"
#include "proto/spoke/v1/cni.pb.h"
#include "tests/support/temp_dir.h"

namespace spoke::cni {

// The behaviour of the agent with one connection. If there is no text, it hangs up.
struct Answer {
  std::string bytes;
  int delay_ms = 0;
};

inline std::string DoneAnswer() {
  v1::CniResponse response;
  response.mutable_done();
  return response.SerializeAsString();
}

inline std::string AttachmentAnswer() {
  v1::CniResponse response;
  response.mutable_attachment()->set_host_link("spk0123456789ab");
  response.mutable_attachment()->set_mtu(1500);
  v1::CniAddress& address = *response.mutable_attachment()->add_addresses();
  address.set_address("10.1.0.5/32");
  address.set_gateway("169.254.1.1");
  return response.SerializeAsString();
}

inline std::string ErrorAnswer(unsigned code, const std::string& message) {
  v1::CniResponse response;
  response.mutable_error()->set_code(code);
  response.mutable_error()->set_message(message);
  return response.SerializeAsString();
}

// Listens from its creation until the answers are given, or until its end.
class FakeAgent {
 public:
  FakeAgent(const std::string& path, std::vector<Answer> answers) {
    EXPECT_EQ(::pipe(stop_), 0);
    listener_ = os::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this, answers = std::move(answers)] {
      for (size_t i = 0; i < answers.size(); ++i) {
        if (!Serve(answers[i], i + 1 == answers.size())) break;
      }
      listener_.Reset();
    });
  }
  FakeAgent(const FakeAgent&) = delete;
  FakeAgent& operator=(const FakeAgent&) = delete;
  ~FakeAgent() {
    Join();
    ::close(stop_[0]);
    ::close(stop_[1]);
  }

  // Returns what was asked; a connection that said nothing is an empty request. Ends the agent.
  const std::vector<v1::CniRequest>& Requests() {
    Join();
    return requests_;
  }
  // Returns how many descriptors came with each.
  const std::vector<int>& Descriptors() {
    Join();
    return descriptors_;
  }

 private:
  bool Serve(const Answer& answer, bool is_last) {
    pollfd waiting[2] = {{listener_.get(), POLLIN, 0}, {stop_[0], POLLIN, 0}};
    ::poll(waiting, 2, -1);
    if ((waiting[0].revents & POLLIN) == 0) return false;
    const os::UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::string bytes(2 << 20, '\0');
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = ::recvmsg(client.get(), &message, MSG_CMSG_CLOEXEC);
    int count = 0;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
      ::close(fd);
      ++count;
    }
    descriptors_.push_back(count);
    requests_.emplace_back();
    if (got > 0) {
      EXPECT_TRUE(requests_.back().ParseFromArray(bytes.data(), static_cast<int>(got)));
    }
    // The listener goes before the answer, so that the next to ask finds nobody.
    if (is_last) listener_.Reset();
    pollfd delay{stop_[0], POLLIN, 0};
    if (answer.delay_ms > 0) ::poll(&delay, 1, answer.delay_ms);
    if (!answer.bytes.empty()) {
      ::send(client.get(), answer.bytes.data(), answer.bytes.size(), MSG_NOSIGNAL);
    }
    return true;
  }

  void Join() {
    if (!thread_.joinable()) return;
    EXPECT_EQ(::write(stop_[1], "x", 1), 1);
    thread_.join();
  }

  int stop_[2] = {-1, -1};
  os::UniqueFd listener_;
  std::vector<v1::CniRequest> requests_;
  std::vector<int> descriptors_;
  std::thread thread_;
};

class FakeProcess : public Process {
 public:
  std::map<std::string, std::string> variables;
  std::optional<std::string> input;  // The input; nullopt: never closed by the caller.
  bool output_works = true;
  std::string output;
  std::string notes;
  bool has_read_input = false;

  const char* Variable(const char* name) override {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  }
  Expected<std::string_view> Input() override {
    has_read_input = true;
    if (!input) return Error{kIoFailure, "not closed in time", ""};
    return std::string_view(*input);
  }
  bool WriteOutput(std::string_view text) override {
    output += text;
    return output_works;
  }
  void WriteNote(std::string_view text) override { notes += text; }
  // A namespace of another kind: the test's own network may play the pod's.
  const char* OwnNetns() override { return own_netns.c_str(); }
  uint64_t DrawNumber() override { return ++drawn; }

  std::string own_netns = "/proc/self/ns/uts";
  uint64_t drawn = 0;
};

// Runs commands as a runtime would, with the agent's socket in a folder of the test's own.
class PluginTest : public testing::Test {
 protected:
  struct Outcome {
    int code = -1;
    std::string out;
    std::string notes;

    // What is printed has to be one object of JSON, or nothing.
    nlohmann::json Json() const { return nlohmann::json::parse(out, nullptr, false); }
    int ErrorCode() const {
      const auto json = Json();
      return json.is_object() && json.contains("code") ? json["code"].get<int>() : -1;
    }
  };

  PluginTest() {
    process_.variables = {{"CNI_CONTAINERID", "aaa"},
                          {"CNI_NETNS", "/proc/self/ns/net"},
                          {"CNI_IFNAME", "eth0"},
                          {"CNI_PATH", "/opt/cni/bin"}};
  }

  // Returns a configuration with what the test adds to it, or overrides.
  std::string Config(const nlohmann::json& more = nlohmann::json::object(),
                     const std::string& version = "1.1.0") const {
    nlohmann::json config = {
        {"cniVersion", version}, {"name", "spoke"}, {"type", "spoke"}, {"socket", path_}};
    if (more.is_object()) config.update(more);
    return config.dump();
  }

  Outcome Run(const std::string& command, const std::optional<std::string>& input) {
    process_.variables["CNI_COMMAND"] = command;
    process_.input = input;
    process_.output.clear();
    process_.notes.clear();
    const int code = RunCommand(process_);
    return {code, process_.output, process_.notes};
  }
  Outcome Run(const std::string& command) { return Run(command, Config()); }

  const testing_support::TempDir dir_;
  const std::string path_ = dir_.File("cni.sock");
  FakeProcess process_;
};

}  // namespace spoke::cni
