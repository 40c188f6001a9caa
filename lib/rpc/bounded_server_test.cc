#include "lib/rpc/bounded_server.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::rpc {
namespace {

namespace health = grpc::health::v1;

constexpr ListenerLimits kLimits{
    .peers = {.connections = 6, .connections_per_address = 4, .burst = 50, .per_second = 50},
    .burst_bytes = 16 << 10,
    .bytes_per_second = 1 << 10,
    .max_streams = 4,
    .memory_bytes = 16U << 20U,
    .max_threads = 8,
    .handshake = absl::Seconds(1)};

class Answers final : public health::Health::Service {
 public:
  grpc::Status Check(grpc::ServerContext* context, const health::HealthCheckRequest*,
                     health::HealthCheckResponse* response) override {
    response->set_status(health::HealthCheckResponse::SERVING);
    context->AddTrailingMetadata("peer", context->peer());
    return grpc::Status::OK;
  }
};

class BoundedServerTest : public testing::Test {
 protected:
  std::unique_ptr<BoundedServer> Start(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    auto server = BoundedServer::Start(builder,
                                       {.name = "test",
                                        .address = address,
                                        .credentials = grpc::InsecureServerCredentials(),
                                        .limits = kLimits},
                                       log_);
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  // Returns a client with a connection of its own, which ends with it.
  static std::unique_ptr<health::Health::Stub> NewClient(const std::string& target) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return health::Health::NewStub(
        grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
  }

  // Returns what the client hears, and the peer that the server takes it for.
  static std::pair<grpc::Status, std::string> Ask(health::Health::Stub& client,
                                                  const std::string& text = "") {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(5)));
    health::HealthCheckRequest request;
    request.set_service(text);
    health::HealthCheckResponse response;
    const grpc::Status status = client.Check(&context, request, &response);
    const auto& trailing = context.GetServerTrailingMetadata();
    const auto peer = trailing.find("peer");
    return {status,
            peer == trailing.end() ? "" : std::string(peer->second.data(), peer->second.size())};
  }
  static std::pair<grpc::Status, std::string> Ask(const std::string& target,
                                                  const std::string& text = "") {
    return Ask(*NewClient(target), text);
  }

  static os::UniqueFd Connect(int port, const std::string& from = "127.0.0.1") {
    os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    ::inet_pton(AF_INET, from.c_str(), &at.sin_addr);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
    at.sin_port = htons(static_cast<uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
    return fd;
  }

  // Returns whether the other side closes it within some seconds.
  static bool IsClosed(const os::UniqueFd& fd) {
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    char bytes[4096];
    ssize_t got = 0;
    while ((got = ::recv(fd.get(), bytes, sizeof(bytes), 0)) > 0) {
    }
    return got == 0 || errno == ECONNRESET;
  }

  // Waits until gRPC has taken the connection: then it sends its settings (RFC 9113, section 3.4).
  static void AwaitSettings(const os::UniqueFd& fd) {
    char byte = 0;
    EXPECT_EQ(::recv(fd.get(), &byte, sizeof(byte), 0), 1);
  }

  static ptrdiff_t CountDescriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  }

  static uint64_t CountOf(const BoundedServer& server, Refusal refusal) {
    return server.refusals()->counts()[static_cast<size_t>(refusal)];
  }

  const testing_support::TempDir dir_;
  testing_support::RecordingLog log_;
  Answers service_;
};

TEST_F(BoundedServerTest, ServesAndKnowsItsPeers) {
  const auto server = Start("127.0.0.1:0");
  const auto [status, peer] = Ask(fmt::format("127.0.0.1:{}", server->port()));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(peer, testing::StartsWith("ipv4:127.0.0.1:"));
}

TEST_F(BoundedServerTest, ServesASocketOfFilesAndRemovesIt) {
  const std::string path = dir_.File("s.sock");
  auto server = Start("unix:" + path);
  EXPECT_TRUE(Ask("unix:" + path).first.ok());
  EXPECT_EQ(server->port(), 0);
  server->Shutdown(std::chrono::system_clock::now());
  server.reset();
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  // The socket that a killed program has left behind is in nobody's way.
  const auto second = Start("unix:" + path);
  EXPECT_TRUE(Ask("unix:" + path).first.ok());
}

TEST_F(BoundedServerTest, OnePeerHasSoManyConnectionsAndOthersHaveRoom) {
  const auto server = Start("127.0.0.1:0");
  std::vector<os::UniqueFd> crowd;
  for (int i = 0; i < 5; ++i) crowd.push_back(Connect(server->port(), "127.0.0.9"));
  EXPECT_TRUE(IsClosed(crowd.back()));
  EXPECT_EQ(CountOf(*server, Refusal::kPeerConnections), 1U);
  const std::string target = fmt::format("127.0.0.1:{}", server->port());
  EXPECT_TRUE(Ask(target).first.ok());
  // A peer with one more than its share makes room for others when all places are taken.
  for (int i = 0; i < 2; ++i) crowd.push_back(Connect(server->port(), "127.0.0.8"));
  EXPECT_TRUE(Ask(target).first.ok());
  EXPECT_TRUE(IsClosed(crowd.front()));
  EXPECT_EQ(log_.Count("connections_refused"), 1);
}

TEST_F(BoundedServerTest, APlaceIsFreeOnceItsConnectionHasEnded) {
  const auto server = Start("127.0.0.1:0");
  const std::string target = fmt::format("127.0.0.1:{}", server->port());
  for (int i = 0; i < 20; ++i) {
    const auto [status, peer] = Ask(target);
    EXPECT_TRUE(status.ok()) << i << ": " << status.error_message();
  }
}

TEST_F(BoundedServerTest, AHandshakeThatNeverEndsIsCutAndItsPlaceFree) {
  const auto server = Start("127.0.0.1:0");
  std::vector<os::UniqueFd> silent;
  for (int i = 0; i < 4; ++i) silent.push_back(Connect(server->port()));
  for (const os::UniqueFd& fd : silent) EXPECT_TRUE(IsClosed(fd));
  EXPECT_TRUE(Ask(fmt::format("127.0.0.1:{}", server->port())).first.ok());
}

TEST_F(BoundedServerTest, AConnectionTakesOneDescriptorOfTheServer) {
  const auto server = Start("127.0.0.1:0");
  std::vector<os::UniqueFd> clients;
  clients.push_back(Connect(server->port()));
  AwaitSettings(clients.back());
  const ptrdiff_t before = CountDescriptors();
  constexpr int kMore = 4;
  for (int i = 0; i < kMore; ++i) {
    clients.push_back(Connect(server->port(), "127.0.0.7"));
    AwaitSettings(clients.back());
  }
  // One of each is the client's. gRPC may open some for itself, as for a thread that polls.
  EXPECT_GE(CountDescriptors() - before, 2 * kMore);
  EXPECT_LT(CountDescriptors() - before, 3 * kMore);
}

// gRPC tells nobody that it has closed a connection, whose descriptor is another's at once.
TEST_F(BoundedServerTest, WhatGrpcClosesByItselfTakesNoPlace) {
  const auto server = Start("127.0.0.1:0");
  const std::string text = "GET / HTTP/1.1\r\n\r\n";
  for (int i = 0; i < 40; ++i) {
    const os::UniqueFd fd = Connect(server->port(), "127.0.0.9");
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    EXPECT_TRUE(IsClosed(fd)) << i;
  }
  EXPECT_EQ(CountOf(*server, Refusal::kPeerConnections), 0U);
  EXPECT_EQ(CountOf(*server, Refusal::kFull), 0U);
  EXPECT_EQ(CountOf(*server, Refusal::kBytes), 0U);
}

TEST_F(BoundedServerTest, WhoSendsTooMuchIsCutAndStaysOut) {
  const auto server = Start("127.0.0.1:0");
  const std::string target = fmt::format("127.0.0.1:{}", server->port());
  EXPECT_TRUE(Ask(target, std::string(8 << 10, 'x')).first.ok());
  // The call may be answered before it is looked at, and is cut then all the same.
  const auto client = NewClient(target);
  static_cast<void>(Ask(*client, std::string(64 << 10, 'x')));
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (CountOf(*server, Refusal::kBytes) == 0 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_GE(CountOf(*server, Refusal::kBytes), 1U);
  EXPECT_FALSE(Ask(target).first.ok());
  EXPECT_GE(CountOf(*server, Refusal::kPeerRate), 1U);
}

TEST_F(BoundedServerTest, AnAddressInUseIsAnErrorThatNamesIt) {
  const auto first = Start("127.0.0.1:0");
  const std::string taken = fmt::format("127.0.0.1:{}", first->port());
  grpc::ServerBuilder builder;
  const auto second = BoundedServer::Start(builder,
                                           {.name = "test",
                                            .address = taken,
                                            .credentials = grpc::InsecureServerCredentials(),
                                            .limits = kLimits},
                                           log_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), testing::HasSubstr(taken));
}

// The mode of a socket is a file's, and can be changed; who is at its other end cannot.
TEST_F(BoundedServerTest, AnotherUserIsNotLetInThoughTheSocketIsOpenToAll) {
  ASSERT_EQ(::geteuid(), 0U) << "only root can be another user";
  const testing_support::TempDir dir;
  const std::string path = dir.File("s");
  grpc::ServerBuilder builder;
  builder.RegisterService(&service_);
  const auto server = BoundedServer::Start(builder,
                                           {.name = "test",
                                            .address = "unix:" + path,
                                            .credentials = grpc::InsecureServerCredentials(),
                                            .limits = kLimits,
                                            .own_users_only = true},
                                           log_);
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  EXPECT_TRUE(Ask("unix:" + path).first.ok()) << "root is let in";
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof(at.sun_path) - 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::setuid(kNobody) != 0 ||
        ::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0) {
      ::_exit(2);
    }
    char byte = 0;
    ::_exit(::read(fd, &byte, 1) <= 0 ? 0 : 1);  // A server that lets one in speaks first.
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(CountOf(**server, Refusal::kUnauthorized), 1U);
}

}  // namespace
}  // namespace spoke::rpc
