#include "netagent/session/server_dialer.h"

#include <grpcpp/channel.h>

#include <map>
#include <optional>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "lib/rpc/listening_sockets.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"
#include "netagent/session/testing/small_server.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);

class ServerDialerTest : public testing::Test {
 protected:
  ServerDialerTest() {
    const absl::Time now = absl::Now();
    const tls::Validity validity{now - absl::Hours(1), now + absl::Hours(1)};
    tls::Authority authority{.certificate = "", .key = tls::MakeKey().value()};
    authority.certificate = tls::MakeAuthorityCertificate(authority.key, "test", validity).value();
    const std::string key = tls::MakeKey().value();
    const auto issue = [&](const std::string& name, tls::Purpose purpose) {
      return tls::IssueCertificate(authority, tls::PublicKeyOf(key).value(),
                                   {.dns_names = {name}, .purpose = purpose}, validity)
          .value();
    };
    Put("ca.pem", authority.certificate);
    Put("key.pem", key);
    Put("server.pem", issue("spoke-ipam-server", tls::Purpose::kServer));
    Put("node.pem", issue("node-1", tls::Purpose::kClient));
  }
  ~ServerDialerTest() override {
    dialer_.reset();
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
  }
  void Put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(os::WriteFileAtomic(dir_.File(name), text, os::Durability::kVisible).ok());
  }
  rpc::TlsFiles Files(const std::string& certificate) const {
    return {.ca = dir_.File("ca.pem"),
            .certificate = dir_.File(certificate),
            .key = dir_.File("key.pem")};
  }
  // Serves with TLS; returns the port.
  int Serve(const std::string& address) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, rpc::ServerCredentials(Files("server.pem")).value(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    return port;
  }
  void Start(std::vector<std::string> servers, const std::string& server_name,
             const rpc::TlsFiles& tls) {
    dialer_.emplace(
        ServerDialer::Settings{std::move(servers), server_name, tls},
        [this](size_t server, const absl::StatusOr<std::shared_ptr<grpc::Channel>>& connection) {
          absl::MutexLock lock(&mutex_);
          outcomes_[server] = connection.status();
          if (connection.ok()) connections_.push_back(*connection);
        });
  }
  absl::Status OutcomeOf(size_t server) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return outcomes_.count(server) > 0;
    };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&there), kPatience));
    return outcomes_[server];
  }

  const testing_support::TempDir dir_;
  SmallServer service_;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex mutex_;
  std::map<size_t, absl::Status> outcomes_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<grpc::Channel>> connections_ ABSL_GUARDED_BY(mutex_);
  std::optional<ServerDialer> dialer_;
};

TEST_F(ServerDialerTest, OfANameWithSeveralAddressesTheOneThatAnswersIsFound) {
  const int port = Serve("127.0.0.3:0");
  Start({fmt::format("ipv4:127.0.0.2:{0},127.0.0.3:{0}", port)}, "spoke-ipam-server",
        Files("node.pem"));
  dialer_->Dial(0);
  EXPECT_EQ(OutcomeOf(0), absl::OkStatus());
}

TEST_F(ServerDialerTest, WhatIsWrongWithEachServerIsSaid) {
  const int port = Serve("127.0.0.1:0");
  const std::string nobody = "unix:" + dir_.File("nobody.sock");
  Start({fmt::format("127.0.0.1:{}", port), nobody}, "another-name", Files("node.pem"));
  dialer_->Dial(0);
  dialer_->Dial(1);
  EXPECT_EQ(OutcomeOf(0).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(OutcomeOf(0).message()), HasSubstr("another-name"));
  EXPECT_EQ(OutcomeOf(1).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(OutcomeOf(1).message()), HasSubstr("No such file"));
}

TEST_F(ServerDialerTest, AMissingFileIsNamed) {
  Start({"127.0.0.1:1"}, "", Files("none.pem"));
  dialer_->Dial(0);
  EXPECT_EQ(OutcomeOf(0).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(OutcomeOf(0).message()), HasSubstr("none.pem"));
}

// A socket that nobody accepts from is what a process that hangs looks like.
TEST_F(ServerDialerTest, AServerThatHangsHoldsUpNeitherTheOthersNorTheEnd) {
  const auto hangs = rpc::ListenAt("127.0.0.1:0");
  ASSERT_TRUE(hangs.ok()) << hangs.status();
  const int port = Serve("127.0.0.1:0");
  Start({fmt::format("127.0.0.1:{}", hangs->port), fmt::format("127.0.0.1:{}", port)},
        "spoke-ipam-server", Files("node.pem"));
  dialer_->Dial(0);
  dialer_->Dial(1);
  EXPECT_EQ(OutcomeOf(1), absl::OkStatus());
  dialer_->Stop();
  dialer_.reset();
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(outcomes_.count(0), 0U);
}

}  // namespace
}  // namespace spoke::netagent
