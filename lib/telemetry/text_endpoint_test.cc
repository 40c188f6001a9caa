#include "lib/telemetry/text_endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::telemetry {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

os::UniqueFd Connect(int port) {
  os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

std::string Ask(int port, const std::string& request) {
  const os::UniqueFd fd = Connect(port);
  EXPECT_EQ(::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0;) {
    answer.append(buffer.data(), static_cast<size_t>(got));
  }
  return answer;
}

std::unique_ptr<TextEndpoint> Open(std::string text) {
  auto opened = TextEndpoint::Open({.address = "127.0.0.1:0"},
                                   MetricsPage([text = std::move(text)] { return text; }));
  EXPECT_TRUE(opened.ok()) << opened.status();
  return *std::move(opened);
}

TEST(TextEndpoint, ServesWhatItIsGiven) {
  const auto endpoint = Open("up 1\n");
  for (const char* path : {"/metrics", "/metrics?collect=all"}) {
    EXPECT_THAT(Ask(endpoint->port(), std::string("GET ") + path + " HTTP/1.1\r\nHost: a\r\n\r\n"),
                AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Length: 5\r\n"),
                      HasSubstr("text/plain; version=0.0.4"), EndsWith("\r\n\r\nup 1\n")));
  }
}

TEST(TextEndpoint, ServesALongTextWhole) {
  const std::string text(10'000'000, 'x');
  const auto endpoint = Open(text);
  EXPECT_THAT(Ask(endpoint->port(), "GET /metrics HTTP/1.0\r\n\r\n").size(),
              testing::Gt(text.size()));
}

TEST(TextEndpoint, OtherRequestsAreRefused) {
  const auto endpoint = Open("up 1\n");
  EXPECT_THAT(Ask(endpoint->port(), "GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Ask(endpoint->port(), "POST /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(Ask(endpoint->port(), "\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(Ask(endpoint->port(), "GET /metrics HTTP/1.1\r\n\r\n"), EndsWith("up 1\n"));
}

// Returns whether the other side has not closed it.
bool IsOpen(const os::UniqueFd& fd) {
  char byte = 0;
  return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

TEST(TextEndpoint, NobodyWaitsForThoseWhoSayNothing) {
  const auto endpoint = Open("up 1\n");
  std::vector<os::UniqueFd> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(Connect(endpoint->port()));
  EXPECT_THAT(Ask(endpoint->port(), "GET /metrics HTTP/1.1\r\n\r\n"), EndsWith("up 1\n"));
  // It was not their end that the scrape waited for; of the forty only so many were kept.
  EXPECT_TRUE(IsOpen(silent.back()));
  EXPECT_FALSE(IsOpen(silent.front()));
}

TEST(TextEndpoint, NobodyWaitsForThoseWhoDoNotRead) {
  const auto endpoint = Open(std::string(10'000'000, 'x'));
  const std::string request = "GET /metrics HTTP/1.1\r\n\r\n";
  std::vector<os::UniqueFd> readers;
  for (int i = 0; i < 5; ++i) {
    readers.push_back(Connect(endpoint->port()));
    ASSERT_EQ(::send(readers.back().get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
  }
  EXPECT_THAT(Ask(endpoint->port(), request).size(), testing::Gt(10'000'000U));
}

TEST(TextEndpoint, AHeadWithoutAnEndIsCutOff) {
  const auto endpoint = Open("up 1\n");
  EXPECT_EQ(Ask(endpoint->port(), "GET /metrics HTTP/1.1\r\nX: " + std::string(20'000, 'a')), "");
  EXPECT_EQ(Ask(endpoint->port(), "GET /metrics"), "");
}

TEST(TextEndpoint, AHeadThatComesByteByByteIsCutOff) {
  const auto endpoint = Open("up 1\n");
  const os::UniqueFd slow = Connect(endpoint->port());
  const absl::Time began = absl::Now();
  while (absl::Now() - began < 5 * kRequestPatience &&
         ::send(slow.get(), "G", 1, MSG_NOSIGNAL) == 1 && IsOpen(slow)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LT(absl::Now() - began, 3 * kRequestPatience);
}

TEST(TextEndpoint, WhoReadsSlowlyIsCutOff) {
  const std::string text(20'000'000, 'x');
  const auto endpoint = Open(text);
  const os::UniqueFd slow = Connect(endpoint->port());
  const std::string request = "GET /metrics HTTP/1.1\r\n\r\n";
  ASSERT_EQ(::send(slow.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  // The endpoint's patience begins when it gets to answer, which is later on a busy machine.
  std::this_thread::sleep_for(absl::ToChronoMilliseconds(4 * kRequestPatience));
  size_t read = 0;
  std::array<char, 65536> buffer{};
  for (ssize_t got = 0; (got = ::recv(slow.get(), buffer.data(), buffer.size(), 0)) > 0;) {
    read += static_cast<size_t>(got);
  }
  EXPECT_LT(read, text.size());
}

TEST(TextEndpoint, ItsEndWaitsForNoConnection) {
  auto endpoint = Open("up 1\n");
  Ask(endpoint->port(), "GET /metrics HTTP/1.1\r\n\r\n");
  const os::UniqueFd silent = Connect(endpoint->port());
  const absl::Time began = absl::Now();
  endpoint.reset();
  EXPECT_LT(absl::Now() - began, kRequestPatience);
}

TEST(TextEndpoint, APageMaySayThatItIsNotWell) {
  const auto endpoint = *TextEndpoint::Open(
      {.address = "127.0.0.1:0"},
      {{"/a", [] { return TextPage{.body = "ok\n"}; }},
       {"/b", [] {
          return TextPage{.status = TextPage::Status::kServiceUnavailable, .body = "stuck\n"};
        }}});
  EXPECT_THAT(Ask(endpoint->port(), "GET /a HTTP/1.1\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\nok\n")));
  EXPECT_THAT(
      Ask(endpoint->port(), "GET /b HTTP/1.1\r\n\r\n"),
      AllOf(StartsWith("HTTP/1.1 503 Service Unavailable\r\n"), EndsWith("\r\n\r\nstuck\n")));
  EXPECT_THAT(Ask(endpoint->port(), "GET /c HTTP/1.1\r\n\r\n"), EndsWith("see /a /b\n"));
}

// Takes everybody for a stranger.
class Strangers : public testing::Test {
 protected:
  Strangers() {
    auto opened = TextEndpoint::Open(
        {.address = "127.0.0.1:0", .token_file = dir_.File("token"), .trust_this_machine = false},
        MetricsPage([] { return "up 1\n"; }));
    EXPECT_TRUE(opened.ok()) << opened.status();
    endpoint_ = *std::move(opened);
  }

  void Put(const std::string& tokens) {
    ASSERT_TRUE(os::WriteFileAtomic(dir_.File("token"), tokens, os::Durability::kVisible).ok());
  }
  std::string AskWith(const std::string& token) const {
    return Ask(endpoint_->port(),
               "GET /metrics HTTP/1.1\r\nAuthorization: Bearer " + token + "\r\n\r\n");
  }
  uint64_t CountOf(rpc::Refusal refusal) const {
    return endpoint_->refusals()->counts()[static_cast<size_t>(refusal)];
  }

  const testing_support::TempDir dir_;
  std::unique_ptr<TextEndpoint> endpoint_;
};

TEST_F(Strangers, AreToldHowToAsk) {
  for (const char* request : {"GET /metrics HTTP/1.1\r\n\r\n", "GET /other HTTP/1.1\r\n\r\n"}) {
    EXPECT_THAT(Ask(endpoint_->port(), request),
                AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("WWW-Authenticate: Bearer"),
                      HasSubstr("Authorization: Bearer TOKEN"), HasSubstr("metrics.token_file"),
                      testing::Not(HasSubstr("up 1"))));
  }
  // Closed while there is no token.
  EXPECT_THAT(AskWith(""), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(AskWith("0123456789abcdef"), StartsWith("HTTP/1.1 401 "));
  EXPECT_EQ(CountOf(rpc::Refusal::kUnauthorized), 4U);
}

TEST_F(Strangers, WithTheTokenAreServedAndANewOneCountsAtOnce) {
  Put("0123456789abcdef\n");
  EXPECT_THAT(AskWith("0123456789abcdef"), EndsWith("up 1\n"));
  EXPECT_THAT(AskWith("0123456789abcdeF"), StartsWith("HTTP/1.1 401 "));
  Put("fedcba9876543210\n");
  EXPECT_THAT(AskWith("0123456789abcdef"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(AskWith("fedcba9876543210"), EndsWith("up 1\n"));
}

TEST_F(Strangers, HaveFewConnectionsEach) {
  std::vector<os::UniqueFd> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(Connect(endpoint_->port()));
  Ask(endpoint_->port(), "GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(IsOpen(silent.front()));
  EXPECT_FALSE(IsOpen(silent[4]));
  EXPECT_GE(CountOf(rpc::Refusal::kPeerConnections), 36U);
}

TEST(TextEndpoint, AnAddressInUseIsAnErrorThatNamesIt) {
  const auto endpoint = Open("");
  const std::string address = "127.0.0.1:" + std::to_string(endpoint->port());
  const auto second = TextEndpoint::Open({.address = address}, {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address));
  for (const char* wrong : {"localhost:1", "9465", "127.0.0.1", ":1", "127.0.0.1:x"}) {
    EXPECT_EQ(TextEndpoint::Open({.address = wrong}, {}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong;
  }
}

}  // namespace
}  // namespace spoke::telemetry
