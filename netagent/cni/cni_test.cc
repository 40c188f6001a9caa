// The plugin's side played over a real socket, with a fake kernel behind the agent.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/cni/cni_handler.h"
#include "netagent/cni/cni_server.h"
#include "netagent/links/testing/fake_kernel.h"
#include "netagent/session/testing/fake_server_link.h"
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

class FakeChecker final : public AttachmentChecker {
 public:
  absl::Status Check(const AttachmentKey& key, const CheckExpectation& expected,
                     int pod_netns) override {
    EXPECT_GE(pod_netns, 0);
    last_key = key;
    last_expected = expected;
    return check;
  }
  absl::Status DataPath() const override { return data_path; }

  absl::Status check;
  absl::Status data_path;
  AttachmentKey last_key;
  CheckExpectation last_expected;
};

// Keeps the one answer that is given.
class OneAnswer final : public ResponseChannel {
 public:
  absl::Status Send(uint64_t, const cni::Response& response) override {
    answer = response;
    return absl::OkStatus();
  }
  void Close(uint64_t) override {}
  void OnHangUp(uint64_t, std::function<void()>) override {}

  cni::Response answer;
};

class CniTest : public testing::Test {
 protected:
  CniTest() {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    EXPECT_TRUE(attachments_.Start({}).ok());
    EXPECT_TRUE(
        attachments_
            .OnDesired(
                {.version = 1,
                 .full = true,
                 .added = {{.range = ip::Prefix::Host(ip::Address::Parse("10.1.0.5").value()),
                            .pool = "default"}}})
            .ok());
    EXPECT_TRUE(server_->Listen(path_).ok());
    thread_ = std::thread([this] {
      while (loop_.RunOnce(absl::Seconds(1))) {
      }
    });
  }
  ~CniTest() override { StopLoop(); }
  void StopLoop() {
    loop_.Stop();
    if (thread_.joinable()) thread_.join();
  }
  // Runs `work` on the loop's thread and waits for it.
  void OnLoop(const std::function<void()>& work) {
    absl::Notification done;
    loop_.Post([&] {
      work();
      done.Notify();
    });
    done.WaitForNotification();
  }

  os::UniqueFd Connect() const {
    os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(ConnectTo(fd), 0);
    return fd;
  }
  // Connects; returns the error number, or 0.
  int ConnectTo(const os::UniqueFd& fd) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    const bool connected =
        ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    return connected ? 0 : errno;
  }

  // Sends one packet with `descriptors`, and returns the answer.
  v1::CniResponse Ask(const std::string& bytes, const std::vector<int>& descriptors) const {
    const os::UniqueFd fd = Connect();
    Say(fd, bytes, descriptors);
    return Hear(fd).value();
  }
  static void Say(const os::UniqueFd& fd, const std::string& bytes,
                  const std::vector<int>& descriptors) {
    const int room = 4 << 20;  // The default is not enough for 1 MiB in one packet.
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
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
    EXPECT_EQ(::sendmsg(fd.get(), &message, 0), static_cast<ssize_t>(bytes.size()))
        << std::strerror(errno);
  }
  // Hears the answer; nullopt: the connection was closed without one.
  static std::optional<v1::CniResponse> Hear(const os::UniqueFd& fd) {
    std::string answer(65536, '\0');
    const ssize_t got = ::recv(fd.get(), answer.data(), answer.size(), 0);
    if (got <= 0) return std::nullopt;
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
  os::EventLoop loop_ = os::EventLoop::Create().value();
  std::optional<CniServer> server_{
      std::in_place, loop_,
      [this](const cni::Request& request, os::UniqueFd netns, Responder responder) {
        handler_.Handle(request, std::move(netns), std::move(responder));
      },
      log_};
  AddService adds_{absl::Seconds(20),
                   {.attachments = attachments_,
                    .server = no_server_,
                    .clock = clock_,
                    .log = log_,
                    .monotonic_ms = [] { return int64_t{5000}; },
                    .random = [] { return uint64_t{1}; }}};
  FakeChecker checker_;
  CniHandler handler_{
      {.attachments = attachments_, .adds = adds_, .checker = &checker_, .log = log_}};
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
  v1::CniRequest hurried;
  ASSERT_TRUE(hurried.ParseFromString(Request(v1::CniRequest::VERB_ADD, "bbb")));
  hurried.set_deadline_monotonic_ms(5500);
  const v1::CniResponse empty = Ask(hurried.SerializeAsString(), {pod.get()});
  EXPECT_EQ(empty.error().code(), 11U);
  EXPECT_THAT(empty.error().message(), HasSubstr("pool default: 1 attached here, 1 in use"));
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

TEST_F(CniTest, AnAddThatWaitsIsAnsweredWhenAnAddressComes) {
  const os::UniqueFd pod = kernel_.NewPodNetns();
  ASSERT_TRUE(Ask(Request(v1::CniRequest::VERB_ADD), {pod.get()}).has_attachment());
  const os::UniqueFd waiting = Connect();
  Say(waiting, Request(v1::CniRequest::VERB_ADD, "bbb"), {kernel_.NewPodNetns().get()});
  // Other clients are served meanwhile.
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_DEL, "ccc"), {}).has_done());
  OnLoop([&] {
    EXPECT_EQ(adds_.waiting(), 1U);
    EXPECT_TRUE(
        attachments_
            .OnDesired(
                {.version = 2,
                 .added = {{.range = ip::Prefix::Host(ip::Address::Parse("10.1.0.6").value()),
                            .pool = "default"}}})
            .ok());
    adds_.Tick();
  });
  const auto answer = Hear(waiting);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->attachment().addresses(0).address(), "10.1.0.6/32");
}

TEST_F(CniTest, AnAddWhosePluginDiesWhileItWaitsIsForgotten) {
  const os::UniqueFd pod = kernel_.NewPodNetns();
  ASSERT_TRUE(Ask(Request(v1::CniRequest::VERB_ADD), {pod.get()}).has_attachment());
  os::UniqueFd waiting = Connect();
  Say(waiting, Request(v1::CniRequest::VERB_ADD, "bbb"), {kernel_.NewPodNetns().get()});
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_DEL, "ccc"), {}).has_done());
  OnLoop([&] { EXPECT_EQ(adds_.waiting(), 1U); });
  waiting.Reset();
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_DEL, "ccc"), {}).has_done());
  OnLoop([&] { EXPECT_EQ(adds_.waiting(), 0U); });
  EXPECT_EQ(log_.Count("cni_add_given_up"), 1);
}

TEST_F(CniTest, AnAgentThatStopsServesWhatIsInHandAndClosesWhatWaits) {
  const os::UniqueFd pod = kernel_.NewPodNetns();
  ASSERT_TRUE(Ask(Request(v1::CniRequest::VERB_ADD), {pod.get()}).has_attachment());
  const os::UniqueFd waiting = Connect();
  Say(waiting, Request(v1::CniRequest::VERB_ADD, "bbb"), {kernel_.NewPodNetns().get()});
  const os::UniqueFd silent = Connect();
  const os::UniqueFd slow = Connect();
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_DEL, "ccc"), {}).has_done());
  StopLoop();
  Say(slow, Request(v1::CniRequest::VERB_DEL), {});
  // One of an upgrade a year ago that nobody took away.
  std::ofstream(cni::StoppedMark(path_)).close();
  std::filesystem::last_write_time(
      cni::StoppedMark(path_),
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(9000));
  const int64_t begun_s = ::time(nullptr) - 1;
  server_->Stop();
  EXPECT_TRUE(Hear(slow)->has_done());
  EXPECT_EQ(Hear(waiting), std::nullopt);
  EXPECT_EQ(Hear(silent), std::nullopt);
  EXPECT_EQ(adds_.waiting(), 0U);
  // The file stays, and says by its refusal that an agent belongs here.
  os::UniqueFd late(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_EQ(ConnectTo(late), ECONNREFUSED);
  // And since when: an ADD waits for the next agent for a while.
  struct stat mark {};
  ASSERT_EQ(::stat(cni::StoppedMark(path_).c_str(), &mark), 0);
  EXPECT_GE(mark.st_mtim.tv_sec, begun_s);
}

TEST_F(CniTest, TheNextAgentTakesTheSocketOverWithoutAMomentInWhichItIsNotThere) {
  StopLoop();
  server_->Stop();
  os::EventLoop loop = os::EventLoop::Create().value();
  CniServer next(
      loop,
      [this](const cni::Request& request, os::UniqueFd netns, Responder responder) {
        handler_.Handle(request, std::move(netns), std::move(responder));
      },
      log_);
  // A thread that looks sees a socket all the time.
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      struct stat info {};
      EXPECT_EQ(::stat(path_.c_str(), &info), 0);
    }
  });
  ASSERT_TRUE(next.Listen(path_).ok());
  EXPECT_NE(::access(cni::StoppedMark(path_).c_str(), F_OK), 0);
  done = true;
  watcher.join();
  const os::UniqueFd client = Connect();
  Say(client, Request(v1::CniRequest::VERB_DEL), {});
  loop.RunOnce(absl::Seconds(1));
  EXPECT_TRUE(Hear(client)->has_done());
}

TEST_F(CniTest, CheckIsTheCheckersWithWhatTheResultSaid) {
  const os::UniqueFd pod = kernel_.NewPodNetns();
  v1::CniRequest request;
  ASSERT_TRUE(request.ParseFromString(Request(v1::CniRequest::VERB_CHECK)));
  request.mutable_expected()->set_host_link("spk1");
  request.mutable_expected()->set_pod_mac("0e:11:22:33:44:55");
  request.mutable_expected()->set_mtu(1500);
  request.mutable_expected()->add_addresses()->set_address("10.1.0.5/32");
  EXPECT_TRUE(Ask(request.SerializeAsString(), {pod.get()}).has_done());
  EXPECT_EQ(checker_.last_key, (AttachmentKey{"aaa", "eth0"}));
  EXPECT_EQ(checker_.last_expected,
            (CheckExpectation{.host_link = "spk1",
                              .pod_mac = ip::MacAddress::Parse("0e:11:22:33:44:55").value(),
                              .mtu = 1500,
                              .addresses = {ip::Address::Parse("10.1.0.5").value()}}));
  checker_.check = absl::DataLossError("route 10.1.0.5/32 is gone");
  const v1::CniResponse broken = Ask(request.SerializeAsString(), {pod.get()});
  EXPECT_EQ(broken.error().code(), 102U);
  EXPECT_EQ(broken.error().message(), "route 10.1.0.5/32 is gone");
  EXPECT_NE(broken.error().details(), "");
  EXPECT_EQ(Ask(request.SerializeAsString(), {}).error().code(), 4U);
  request.mutable_expected()->set_pod_mac("x");
  EXPECT_EQ(Ask(request.SerializeAsString(), {pod.get()}).error().code(), 7U);
}

TEST_F(CniTest, AFullNodeIsReadyUnlessToldToBeStrict) {
  const os::UniqueFd pod = kernel_.NewPodNetns();
  CniHandler lenient{{.attachments = attachments_,
                      .adds = adds_,
                      .checker = &checker_,
                      .log = log_,
                      .strict_status = false}};
  ASSERT_TRUE(Ask(Request(v1::CniRequest::VERB_ADD), {pod.get()}).has_attachment());
  EXPECT_EQ(Ask(Request(v1::CniRequest::VERB_STATUS), {}).error().code(), 50U);
  cni::Request status;
  status.verb = cni::Verb::kStatus;
  OneAnswer channel;
  OnLoop([&] { lenient.Handle(status, os::UniqueFd(), Responder(channel, 1)); });
  EXPECT_EQ(channel.answer.outcome, cni::Response::Outcome::kDone);
}

TEST_F(CniTest, AddsOfAnotherMajorVersionAreRefusedAndNothingElse) {
  CniHandler handler{{.attachments = attachments_,
                      .adds = adds_,
                      .checker = &checker_,
                      .log = log_,
                      .version = "1.2.0"}};
  const auto ask = [&](cni::Verb verb, const std::string& plugin_version) {
    cni::Request request;
    request.verb = verb;
    request.container_id = "c";
    request.ifname = "eth0";
    request.network_name = "spoke";
    request.plugin_version = plugin_version;
    OneAnswer channel;
    OnLoop([&] { handler.Handle(request, kernel_.NewPodNetns(), Responder(channel, 1)); });
    return channel.answer;
  };
  for (const cni::Verb verb :
       {cni::Verb::kAdd, cni::Verb::kCheck, cni::Verb::kGc, cni::Verb::kStatus, cni::Verb::kDel}) {
    EXPECT_EQ(ask(verb, "2.0.0").error.code == cni::kVersionSkew, verb == cni::Verb::kAdd);
  }
  EXPECT_EQ(log_.Count("plugin_version_skew"), 1) << "once a version";
  for (const char* const version : {"1.9.0", "", "nonsense"}) {
    EXPECT_EQ(ask(cni::Verb::kAdd, version).outcome, cni::Response::Outcome::kAttachment);
    EXPECT_EQ(ask(cni::Verb::kDel, version).outcome, cni::Response::Outcome::kDone);
    OnLoop([&] {
      clock_.Advance(absl::Minutes(1));
      attachments_.Tick();
    });
  }
  EXPECT_EQ(ask(cni::Verb::kAdd, "2.0.0").error.message,
            "the plugin 2.0.0 and spoke-netagent 1.2.0 do not work together, since they are of "
            "different major versions: upgrade spoke-netagent first, to 2.0");
}

TEST_F(CniTest, StatusSaysWhetherAPodCouldBeServedAndChangesNothing) {
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_STATUS), {}).has_done());
  const os::UniqueFd pod = kernel_.NewPodNetns();
  ASSERT_TRUE(Ask(Request(v1::CniRequest::VERB_ADD), {pod.get()}).has_attachment());
  OnLoop([&] { adds_.OnForecast({"enlarging the node", absl::Seconds(9)}); });
  const v1::CniResponse empty = Ask(Request(v1::CniRequest::VERB_STATUS), {});
  EXPECT_EQ(empty.error().code(), 50U);
  EXPECT_THAT(empty.error().message(), HasSubstr("pool default: 1 attached here, 1 in use"));
  EXPECT_THAT(empty.error().message(), HasSubstr("server: enlarging the node, expected in 9s"));
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_DEL), {}).has_done()) << "other verbs go on";
  checker_.data_path = absl::DataLossError("table inet spoke is gone");
  EXPECT_EQ(Ask(Request(v1::CniRequest::VERB_STATUS), {}).error().code(), 51U);
}

TEST_F(CniTest, StatusIsContentWithPoolsOfNamespacesWhereThereAreNoOthers) {
  OnLoop([&] {
    EXPECT_TRUE(
        attachments_
            .OnDesired(
                {.version = 2,
                 .full = true,
                 .added = {{.range = ip::Prefix::Host(ip::Address::Parse("10.2.0.5").value()),
                            .pool = "teams"}},
                 .pools = {{"teams", "10.2.0.0/24", 1, 1, 0, {"web"}}}})
            .ok());
  });
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_STATUS), {}).has_done());
}

TEST_F(CniTest, GarbageCollectionTakesAListOfThousands) {
  const os::UniqueFd pod = kernel_.NewPodNetns();
  v1::CniRequest add;
  ASSERT_TRUE(add.ParseFromString(Request(v1::CniRequest::VERB_ADD)));
  add.set_network_name("spoke");
  ASSERT_TRUE(Ask(add.SerializeAsString(), {pod.get()}).has_attachment());
  OnLoop([&] { clock_.Advance(Attachments::kGarbageAge); });
  v1::CniRequest gc;
  gc.set_verb(v1::CniRequest::VERB_GC);
  EXPECT_EQ(Ask(gc.SerializeAsString(), {}).error().code(), 7U) << "of which network?";
  gc.set_network_name("spoke");
  for (int i = 0; i < 5000; ++i) {
    v1::AttachmentRef& ref = *gc.add_valid();
    ref.set_container_id(fmt::format("{:064x}", i));
    ref.set_ifname("eth0");
  }
  gc.mutable_valid(0)->set_container_id("aaa");
  EXPECT_TRUE(Ask(gc.SerializeAsString(), {}).has_done());
  EXPECT_TRUE(kernel_.Attached(HostLinkName({"aaa", "eth0"})).has_value());
  gc.mutable_valid(0)->set_container_id("bbb");
  EXPECT_TRUE(Ask(gc.SerializeAsString(), {}).has_done());
  EXPECT_FALSE(kernel_.Attached(HostLinkName({"aaa", "eth0"})).has_value());
  EXPECT_THAT(log_.lines(), testing::Contains(HasSubstr("valid=5000 deleted=1")));
}

TEST_F(CniTest, MalformedRequestsGetAnAnswerAndChangeNothing) {
  EXPECT_EQ(Ask("\xff\xff garbage", {}).error().code(), 6U);
  EXPECT_EQ(Ask(std::string(100'000, '\xff'), {}).error().code(), 6U);
  EXPECT_THAT(Ask(std::string(CniServer::kMaxRequestBytes + 1, 'x'), {}).error().message(),
              HasSubstr("longer than 1 MiB"));
  EXPECT_EQ(Ask(Request(v1::CniRequest::VERB_ADD), {}).error().code(), 4U);
  EXPECT_EQ(Ask(Request(v1::CniRequest::VERB_ADD, ""), {}).error().code(), 4U);
  EXPECT_EQ(Ask(Request(v1::CniRequest::VERB_UNSPECIFIED), {}).error().code(), 100U);
  EXPECT_EQ(Ask("\x08\x06", {}).error().message(), "this agent does not know request 6");
  EXPECT_EQ(Ask("\x08\x85\x02", {}).error().message(), "this agent does not know request 261");
  const os::UniqueFd pod = kernel_.NewPodNetns();
  EXPECT_EQ(
      Ask(Request(v1::CniRequest::VERB_ADD), {pod.get(), pod.get(), pod.get()}).error().code(), 6U);
  const os::UniqueFd node = kernel_.NodeNetns();
  EXPECT_EQ(Ask(Request(v1::CniRequest::VERB_ADD), {node.get()}).error().code(), 8U);
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_ADD), {pod.get()}).has_attachment());
}

TEST_F(CniTest, AClientThatLeavesOrSaysNothingHoldsNobodyUp) {
  const os::UniqueFd silent = Connect();
  Connect().Reset();
  EXPECT_TRUE(Ask(Request(v1::CniRequest::VERB_DEL), {}).has_done());
}

TEST_F(CniTest, TheSocketIsForRootOnly) {
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST(CniServer, APathThatDoesNotFitASocketIsRefused) {
  os::EventLoop loop = os::EventLoop::Create().value();
  testing_support::RecordingLog log;
  CniServer server(
      loop, [](const cni::Request&, os::UniqueFd, Responder) {}, log);
  EXPECT_EQ(server.Listen("/" + std::string(200, 'a')).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server.Listen("/nonexistent/cni.sock").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace spoke::netagent
