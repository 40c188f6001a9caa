// The plugin's side played over a real socket, with a fake kernel behind the agent.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <optional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/cni/cni_handler.h"
#include "netagent/cni/cni_server.h"
#include "netagent/kernel/fake_kernel.h"
#include "netagent/sync/fake_server_link.h"
#include "proto/spoke/v1/cni.pb.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;

class ForgetfulJournal final : public Journal {
 public:
  absl::Status Append(const Event&) override { return absl::OkStatus(); }
  absl::Status Compact(const std::vector<Event>&) override { return absl::OkStatus(); }
  size_t size() const override { return 0; }
};

class CniTest : public testing::Test {
 protected:
  CniTest() {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    EXPECT_TRUE(attachments_.Start({}).ok());
    EXPECT_TRUE(attachments_
                    .OnDesired({.version = 1,
                                .full = true,
                                .added = {{ip::Address::Parse("10.1.0.5").value(), "default"}}})
                    .ok());
    EXPECT_TRUE(server_->Listen(path_).ok());
    thread_ = std::thread([this] {
      while (loop_.RunOnce(absl::Seconds(1))) {
      }
    });
  }
  ~CniTest() override {
    loop_.Stop();
    thread_.join();
    server_.reset();
  }

  os::UniqueFd Connect() const {
    os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }

  // Sends one packet with `descriptors`, and returns the answer.
  v1::CniResponse Ask(const std::string& bytes, const std::vector<int>& descriptors) const {
    const os::UniqueFd fd = Connect();
    iovec data{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    }
    EXPECT_EQ(::sendmsg(fd.get(), &message, 0), static_cast<ssize_t>(bytes.size()));
    std::string answer(65536, '\0');
    const ssize_t got = ::recv(fd.get(), answer.data(), answer.size(), 0);
    EXPECT_GT(got, 0);
    v1::CniResponse response;
    EXPECT_TRUE(response.ParseFromArray(answer.data(), static_cast<int>(got)));
    return response;
  }
  static std::string Request(v1::CniRequest::Verb verb, const std::string& container = "aaa") {
    v1::CniRequest request;
    request.set_verb(verb);
    request.set_container_id(container);
    request.set_ifname("eth0");
    return request.SerializeAsString();
  }

  const testing_support::TempDir dir_;
  const std::string path_ = dir_.File("cni.sock");
  FakeKernel kernel_;
  FakeServerLink no_server_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  Attachments attachments_{{.node_name = "node1", .nic = "eth0"},
                           {kernel_, no_server_, clock_, log_},
                           std::make_unique<ForgetfulJournal>()};
  CniHandler handler_{attachments_, [] { return int64_t{5000}; }, log_};
  os::EventLoop loop_ = os::EventLoop::Create().value();
  std::optional<CniServer> server_{std::in_place, loop_,
                                   [this](const v1::CniRequest& request, os::UniqueFd netns) {
                                     return handler_.Handle(request, std::move(netns));
                                   },
                                   log_};
  std::thread thread_;
};

TEST_F(CniTest, AddAndDelTravelWithTheNamespaceAsADescriptor) {
  const os::UniqueFd pod = kernel_.NewPodNetns();
  const v1::CniResponse added = Ask(Request(v1::CniRequest::VERB_ADD), {pod.get()});
  ASSERT_TRUE(added.has_attachment()) << added.error().message();
  EXPECT_EQ(added.attachment().addresses(0).address(), "10.1.0.5/32");
  EXPECT_EQ(added.attachment().addresses(0).gateway(), "169.254.1.1");
  EXPECT_EQ(added.attachment().mtu(), 1500U);
  EXPECT_EQ(added.attachment().host_link(), HostLinkName({"aaa", "eth0"}));
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_DEL), {}).has_done());
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_DEL), {}).has_done());
}

TEST_F(CniTest, AnEmptyPoolIsTryAgainLaterAndASecondAddIsNot) {
  const os::UniqueFd pod = kernel_.NewPodNetns();
  ASSERT_TRUE(Ask(Request(v1::CniRequest::VERB_ADD), {pod.get()}).has_attachment());
  EXPECT_EQ(Ask(Request(v1::CniRequest::VERB_ADD), {pod.get()}).error().code(), 101U);
  const v1::CniResponse empty = Ask(Request(v1::CniRequest::VERB_ADD, "bbb"), {pod.get()});
  EXPECT_EQ(empty.error().code(), 11U);
  EXPECT_THAT(empty.error().message(), HasSubstr("pool default: 1 attached here, 1 lent"));
}

TEST_F(CniTest, AnAddThatNobodyWaitsForIsNotBegun) {
  const os::UniqueFd pod = kernel_.NewPodNetns();
  v1::CniRequest request;
  ASSERT_TRUE(request.ParseFromString(Request(v1::CniRequest::VERB_ADD)));
  request.set_deadline_monotonic_ms(5000);
  EXPECT_EQ(Ask(request.SerializeAsString(), {pod.get()}).error().code(), 11U);
  request.set_deadline_monotonic_ms(5001);
  EXPECT_TRUE(Ask(request.SerializeAsString(), {pod.get()}).has_attachment());
}

TEST_F(CniTest, MalformedRequestsGetAnAnswerAndChangeNothing) {
  EXPECT_EQ(Ask("\xff\xff garbage", {}).error().code(), 6U);
  EXPECT_EQ(Ask(std::string(100'000, 'x'), {}).error().code(), 6U);
  EXPECT_EQ(Ask(Request(v1::CniRequest::VERB_ADD), {}).error().code(), 4U);
  EXPECT_EQ(Ask(Request(v1::CniRequest::VERB_ADD, ""), {}).error().code(), 4U);
  EXPECT_EQ(Ask(Request(v1::CniRequest::VERB_UNSPECIFIED), {}).error().code(), 100U);
  const os::UniqueFd pod = kernel_.NewPodNetns();
  EXPECT_EQ(
      Ask(Request(v1::CniRequest::VERB_ADD), {pod.get(), pod.get(), pod.get()}).error().code(), 6U);
  const os::UniqueFd node = kernel_.NodeNetns();
  EXPECT_EQ(Ask(Request(v1::CniRequest::VERB_ADD), {node.get()}).error().code(), 4U);
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_ADD), {pod.get()}).has_attachment());
}

TEST_F(CniTest, AClientThatLeavesOrSaysNothingHoldsNobodyUp) {
  const os::UniqueFd silent = Connect();
  Connect().Reset();
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_DEL), {}).has_done());
}

TEST_F(CniTest, TheSocketIsForRootOnlyAndGoesWithTheServer) {
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST(CniServer, APathThatDoesNotFitASocketIsRefused) {
  os::EventLoop loop = os::EventLoop::Create().value();
  testing_support::RecordingLog log;
  CniServer server(
      loop, [](const v1::CniRequest&, os::UniqueFd) { return v1::CniResponse(); }, log);
  EXPECT_EQ(server.Listen("/" + std::string(200, 'a')).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server.Listen("/nonexistent/cni.sock").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace spoke::netagent
