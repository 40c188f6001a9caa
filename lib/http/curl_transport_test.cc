#include "lib/http/curl_transport.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"
#include "tests/support/temp_dir.h"

namespace spoke::http {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

// The tests' servers are on this machine, whatever proxy its user has.
class NoProxies : public testing::Environment {
  void SetUp() override {
    for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                             "no_proxy", "NO_PROXY"}) {
      ::unsetenv(name);
    }
  }
};
const auto* const kNoProxies = testing::AddGlobalTestEnvironment(new NoProxies);

// An HTTP server on a port of its own, for the time of a test.
template <typename Server>
class Serving {
 public:
  explicit Serving(Server& server) : server_(server) {
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~Serving() {
    server_.stop();
    thread_.join();
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  int port() const { return port_; }
  std::string Url(std::string_view path, std::string_view scheme = "http") const {
    return fmt::format("{}://127.0.0.1:{}{}", scheme, port_, path);
  }

 private:
  Server& server_;
  int port_ = 0;
  std::thread thread_;
};

// Answers one connection with bytes that no HTTP library would send.
class RawServer {
 public:
  using Talk = std::function<void(int connection)>;

  explicit RawServer(Talk talk) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in self{};
    self.sin_family = AF_INET;
    self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(self);
    auto* address = reinterpret_cast<sockaddr*>(&self);
    EXPECT_EQ(::bind(listener_.get(), address, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), address, &size), 0);
    port_ = ntohs(self.sin_port);
    thread_ = std::thread([this, talk = std::move(talk)] {
      const os::UniqueFd connection(::accept(listener_.get(), nullptr, nullptr));
      char request[4096];
      if (::recv(connection.get(), request, sizeof(request), 0) > 0) talk(connection.get());
    });
  }
  ~RawServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);  // Ends accept() if nobody came.
    thread_.join();
  }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  std::string Url() const { return fmt::format("http://127.0.0.1:{}/", port_); }

 private:
  os::UniqueFd listener_;
  int port_ = 0;
  std::thread thread_;
};

void Say(int connection, std::string_view text) {
  EXPECT_EQ(::send(connection, text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

std::string CodeOf(const absl::StatusOr<Response>& response) {
  return absl::StatusCodeToString(response.status().code());
}

// Waits until `count` calls have completed.
std::map<uint64_t, absl::StatusOr<Response>> WaitFor(Transport& transport, size_t count) {
  std::map<uint64_t, absl::StatusOr<Response>> all;
  while (all.size() < count) {
    std::vector<Completion> some = transport.Wait(kPatience);
    if (some.empty()) break;
    for (Completion& one : some) all.emplace(one.id, std::move(one.response));
  }
  return all;
}

TEST(CurlTransport, CarriesMethodHeadersAndBodyBothWays) {
  httplib::Server server;
  server.Put("/thing", [](const httplib::Request& request, httplib::Response& response) {
    response.status = 404;  // A response like any other.
    response.set_header("ETag", "\"1\"");
    response.set_header("x-echo", request.get_header_value("If-Match") + "|" +
                                      request.get_header_value("Content-Type") + "|" +
                                      request.get_header_value("Expect"));
    response.set_content(request.target + " " + request.body, "text/plain");
  });
  const Serving serving(server);
  const auto response = Fetch({"PUT",
                               serving.Url("/thing?a=%2F&b=1"),
                               {{"If-Match", "\"0\""}, {"Content-Type", "application/json"}},
                               "{}"},
                              kPatience);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 404);
  EXPECT_EQ(response->headers.Find("etag"), "\"1\"");
  EXPECT_EQ(response->headers.Find("x-echo"), "\"0\"|application/json|");
  EXPECT_EQ(response->body, "/thing?a=%2F&b=1 {}");
}

TEST(CurlTransport, SendsEveryMethodWithAndWithoutBody) {
  httplib::Server server;
  const auto echo = [](const httplib::Request& request, httplib::Response& response) {
    response.set_content(request.method + ":" + request.body, "text/plain");
  };
  server.Get("/", echo).Post("/", echo).Put("/", echo).Patch("/", echo).Delete("/", echo);
  const Serving serving(server);
  for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    const auto empty = Fetch({method, serving.Url("/"), {}, ""}, kPatience);
    ASSERT_TRUE(empty.ok()) << method << empty.status();
    EXPECT_EQ(empty->body, std::string(method) + ":");
  }
  for (const char* method : {"POST", "PUT", "PATCH"}) {
    const auto full = Fetch({method, serving.Url("/"), {}, "x=1"}, kPatience);
    ASSERT_TRUE(full.ok()) << method << full.status();
    EXPECT_EQ(full->body, std::string(method) + ":x=1");
  }
  const auto head = Fetch({"HEAD", serving.Url("/"), {}, ""}, kPatience);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->body, "");
}

TEST(CurlTransport, UsesAConnectionAgain) {
  httplib::Server server;
  absl::Mutex mutex;
  std::set<int> ports;
  server.Get("/", [&](const httplib::Request& request, httplib::Response&) {
    const absl::MutexLock lock(&mutex);
    ports.insert(request.remote_port);
  });
  server.set_keep_alive_max_count(100);
  const Serving serving(server);
  CurlTransport transport({});
  for (uint64_t id = 0; id < 20; ++id) {
    transport.Send(id, {"GET", serving.Url("/"), {}, ""}, kPatience);
    const auto done = WaitFor(transport, 1);
    ASSERT_TRUE(done.at(id).ok()) << done.at(id).status();
  }
  EXPECT_EQ(ports.size(), 1U);
}

TEST(CurlTransport, CarriesManyAtOnceWithinItsBound) {
  httplib::Server server;
  std::atomic<int> present{0};
  std::atomic<int> most{0};
  server.Get(R"(/(\d+))", [&](const httplib::Request& request, httplib::Response& response) {
    const int now = ++present;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    response.set_content(request.matches[1].str(), "text/plain");
    --present;
  });
  const Serving serving(server);
  constexpr size_t kCalls = 200;
  CurlTransport transport({.max_connections = 4});
  for (uint64_t id = 0; id < kCalls; ++id) {
    transport.Send(id, {"GET", serving.Url(fmt::format("/{}", id)), {}, ""}, kPatience);
  }
  const auto done = WaitFor(transport, kCalls);
  ASSERT_EQ(done.size(), kCalls);
  for (const auto& [id, response] : done) {
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, std::to_string(id));
  }
  EXPECT_LE(most, 4);
  EXPECT_GT(most, 1);
}

TEST(CurlTransport, RefusesMoreThanMayWait) {
  CurlTransport transport({.max_waiting = 1});
  transport.Send(1, {"GET", "http://127.0.0.1:1/", {}, ""}, kPatience);
  transport.Send(2, {"GET", "http://127.0.0.1:1/", {}, ""}, kPatience);
  const auto done = WaitFor(transport, 2);
  EXPECT_EQ(CodeOf(done.at(1)), "UNAVAILABLE");
  EXPECT_EQ(CodeOf(done.at(2)), "RESOURCE_EXHAUSTED");
}

TEST(CurlTransport, ReadsCompressedAnswersWithinTheBound) {
  httplib::Server server;
  server.Get("/", [](const httplib::Request& request, httplib::Response& response) {
    EXPECT_EQ(request.get_header_value("Accept-Encoding"), "gzip");
    // The body is 100 to 1 on the wire.
    response.set_content(std::string(100000, 'x'), "text/plain");
  });
  const Serving serving(server);
  const auto response = Fetch({"GET", serving.Url("/"), {}, ""}, kPatience);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->headers.Find("Content-Encoding"), "gzip");
  EXPECT_EQ(response->body, std::string(100000, 'x'));
  const auto bounded =
      Fetch({"GET", serving.Url("/"), {}, ""}, kPatience, {.max_response_bytes = 99999});
  EXPECT_EQ(CodeOf(bounded), "RESOURCE_EXHAUSTED");
}

TEST(CurlTransport, DoesNotFollowRedirects) {
  httplib::Server server;
  std::atomic<int> elsewhere{0};
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_redirect("/elsewhere");
  });
  server.Get("/elsewhere", [&](const httplib::Request&, httplib::Response&) { ++elsewhere; });
  const Serving serving(server);
  const auto response = Fetch({"GET", serving.Url("/"), {}, ""}, kPatience);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 302);
  EXPECT_EQ(response->headers.Find("Location"), "/elsewhere");
  EXPECT_EQ(elsewhere, 0);
}

TEST(CurlTransport, KeepsRepeatedHeadersAndDropsInterimOnes) {
  const RawServer server([](int connection) {
    Say(connection,
        "HTTP/1.1 103 Early Hints\r\nX-Interim: 1\r\n\r\n"
        "HTTP/1.1 200 OK\r\nX-Policy: a;1\r\nx-policy:  b;2 \r\nContent-Length: 2\r\n\r\nok");
  });
  const auto response = Fetch({"GET", server.Url(), {}, ""}, kPatience);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->headers.FindAll("X-Policy"), (std::vector<std::string_view>{"a;1", "b;2"}));
  EXPECT_EQ(response->headers.Find("X-Interim"), std::nullopt);
  EXPECT_EQ(response->body, "ok");
}

TEST(CurlTransport, CallsATruncatedAnswerUnavailable) {
  const RawServer server([](int connection) {
    Say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"value\":[");
  });
  const auto response = Fetch({"GET", server.Url(), {}, ""}, kPatience);
  EXPECT_EQ(CodeOf(response), "UNAVAILABLE");
  EXPECT_NE(response.status().ToString().find("cut short"), std::string::npos) << response.status();
}

TEST(CurlTransport, CallsATruncatedChunkUnavailable) {
  const RawServer server([](int connection) {
    Say(connection, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  });
  EXPECT_EQ(CodeOf(Fetch({"GET", server.Url(), {}, ""}, kPatience)), "UNAVAILABLE");
}

TEST(CurlTransport, CallsAResetUnavailable) {
  const RawServer server([](int connection) {
    Say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    const linger at_once{1, 0};
    ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  });
  EXPECT_EQ(CodeOf(Fetch({"GET", server.Url(), {}, ""}, kPatience)), "UNAVAILABLE");
}

TEST(CurlTransport, CallsNoHttpUnavailable) {
  const RawServer server([](int connection) { Say(connection, "220 mail ready\r\n\r\n"); });
  EXPECT_EQ(CodeOf(Fetch({"GET", server.Url(), {}, ""}, kPatience)), "UNAVAILABLE");
}

TEST(CurlTransport, CallsARefusedConnectionUnavailable) {
  EXPECT_EQ(CodeOf(Fetch({"GET", "http://127.0.0.1:1/", {}, ""}, kPatience)), "UNAVAILABLE");
}

TEST(CurlTransport, GivesUpOnAnAnswerThatDoesNotCome) {
  std::atomic<bool> over{false};
  const RawServer server([&over](int) {
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const auto response = Fetch({"GET", server.Url(), {}, ""}, absl::Milliseconds(100));
  over = true;
  EXPECT_EQ(CodeOf(response), "DEADLINE_EXCEEDED") << response.status();
}

TEST(CurlTransport, GivesUpOnAnAnswerThatStalls) {
  std::atomic<bool> over{false};
  const RawServer server([&over](int connection) {
    Say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const auto response =
      Fetch({"GET", server.Url(), {}, ""}, kPatience, {.stall_timeout = absl::Seconds(1)});
  over = true;
  EXPECT_EQ(CodeOf(response), "DEADLINE_EXCEEDED") << response.status();
}

TEST(CurlTransport, GivesAStreamedBodyInPartsAndOtherStatusesWhole) {
  absl::Notification first_seen;
  RawServer server([&](int connection) {
    Say(connection, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n");
    EXPECT_TRUE(first_seen.WaitForNotificationWithTimeout(kPatience));
    Say(connection, "4\r\ntwo\n\r\n0\r\n\r\n");
  });
  CurlTransport transport(CurlOptions{});
  transport.Send(1, {.url = server.Url(), .streamed = true}, kPatience);
  std::string body;
  for (bool more = true; more;) {
    for (const Completion& completion : transport.Wait(kPatience)) {
      ASSERT_TRUE(completion.response.ok()) << completion.response.status();
      EXPECT_EQ(completion.response->status, 200);
      body += completion.response->body;
      more = completion.more;
    }
    if (body == "one\n" && !first_seen.HasBeenNotified()) first_seen.Notify();
  }
  EXPECT_EQ(body, "one\ntwo\n");
  RawServer gone([](int connection) {
    Say(connection, "HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone");
  });
  transport.Send(2, {.url = gone.Url(), .streamed = true}, kPatience);
  const auto completed = transport.Wait(kPatience);
  ASSERT_EQ(completed.size(), 1U);
  EXPECT_FALSE(completed[0].more);
  EXPECT_EQ(completed[0].response->status, 410);
  EXPECT_EQ(completed[0].response->body, "gone");
}

TEST(CurlTransport, WhatCannotLeaveInItsTimeIsGivenUpAndNotSent) {
  absl::Notification over;
  RawServer busy([&](int /*connection*/) { over.WaitForNotification(); });
  CurlTransport transport({.max_connections = 1});
  transport.Send(1, {.url = busy.Url()}, kPatience);
  EXPECT_TRUE(transport.Wait(absl::Milliseconds(50)).empty());
  Request write{.method = "PUT", .url = busy.Url(), .headers = {}, .body = "write"};
  write.send_within = absl::Milliseconds(50);
  transport.Send(2, write, kPatience);
  const auto done = WaitFor(transport, 1);
  over.Notify();
  ASSERT_EQ(done.count(2), 1U);
  EXPECT_EQ(CodeOf(done.at(2)), "UNAVAILABLE");
  EXPECT_NE(std::string(done.at(2).status().message()).find("not sent"), std::string::npos);
}

TEST(CurlTransport, WhatLeavesOnlyInPartInItsTimeMayHaveHappened) {
  absl::Notification over;
  RawServer server([&](int /*connection*/) { over.WaitForNotification(); });
  CurlTransport transport({});
  Request write{.method = "PUT", .url = server.Url(), .headers = {}};
  write.body.resize(size_t{64} << 20U);
  write.send_within = absl::Milliseconds(200);
  transport.Send(1, write, kPatience);
  const auto done = WaitFor(transport, 1);
  over.Notify();
  ASSERT_EQ(done.count(1), 1U);
  EXPECT_EQ(CodeOf(done.at(1)), "DEADLINE_EXCEEDED");
}

TEST(CurlTransport, AnAnswerMayTakeLongerThanTheTimeToLeave) {
  RawServer server([](int connection) {
    absl::SleepFor(absl::Milliseconds(300));
    Say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  CurlTransport transport({});
  Request write{.method = "PUT", .url = server.Url(), .headers = {}, .body = "write"};
  write.send_within = absl::Milliseconds(100);
  transport.Send(1, write, kPatience);
  const auto done = WaitFor(transport, 1);
  ASSERT_EQ(done.count(1), 1U);
  EXPECT_TRUE(done.at(1).ok()) << done.at(1).status();
}

TEST(CurlTransport, DoesNotSendWhatCouldBeAnotherRequest) {
  for (const Request& request :
       {Request{"GET", "http://127.0.0.1:1/\r\nHost: x", {}, ""},
        Request{"GET", std::string("http://127.0.0.1:1/\0x", 21), {}, ""},
        Request{"GET", "", {}, ""}, Request{"GET", "file:///etc/passwd", {}, ""},
        Request{"GET /x HTTP/1.1\r\n", "http://127.0.0.1:1/", {}, ""},
        Request{"GET", "http://127.0.0.1:1/", {{"A", "b\r\nc: d"}}, ""},
        Request{"GET", "http://127.0.0.1:1/", {{"A: b\r\n", "c"}}, ""}}) {
    EXPECT_EQ(CodeOf(Fetch(request, kPatience)), "INVALID_ARGUMENT") << request.url;
  }
}

TEST(CurlTransport, DoesNotTellTheQueryInErrors) {
  const auto response = Fetch({"GET", "http://127.0.0.1:1/path?signature=1234", {}, ""}, kPatience);
  EXPECT_NE(response.status().ToString().find("/path"), std::string::npos);
  EXPECT_EQ(response.status().ToString().find("1234"), std::string::npos) << response.status();
}

TEST(CurlTransport, WakesFromAnotherThread) {
  CurlTransport transport({});
  transport.Wake();  // A wake before Wait() is not lost.
  EXPECT_TRUE(transport.Wait(kPatience).empty());
  std::thread waker([&transport] { transport.Wake(); });
  EXPECT_TRUE(transport.Wait(kPatience).empty());
  waker.join();
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(transport.Wait(absl::Milliseconds(5)).empty());
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(5));
}

TEST(CurlTransport, EndsCallsThatAreUnderWay) {
  std::atomic<bool> over{false};
  const RawServer server([&over](int) {
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  {
    CurlTransport transport({});
    transport.Send(1, {"GET", server.Url(), {}, ""}, kPatience);
    EXPECT_TRUE(transport.Wait(absl::Milliseconds(20)).empty());
  }
  over = true;
}

TEST(CurlTransport, GoesThroughTheProxy) {
  httplib::Server proxy;
  proxy.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    response.set_content("proxied " + request.target, "text/plain");
    return httplib::Server::HandlerResponse::Handled;
  });
  const Serving serving(proxy);
  const auto response =
      Fetch({"GET", "http://management.invalid/x", {}, ""}, kPatience, {.proxy = serving.Url("")});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "proxied http://management.invalid/x");
}

TEST(NeverProxied, HoldsForTheMachinesOwnPlatform) {
  for (const char* url : {"http://169.254.169.254/metadata/instance?api-version=2021-02-01",
                          "http://169.254.0.1:80", "http://168.63.129.16/machine",
                          "http://[fe80::1]/", "http://2852039166/", "HTTP://169.254.169.254"}) {
    EXPECT_TRUE(NeverProxied(url)) << url;
  }
  for (const char* url : {"https://management.azure.com/169.254.169.254", "http://10.0.0.4/",
                          "http://169.254.169.254.example/", "http://[fd00::1]/", "", "nonsense"}) {
    EXPECT_FALSE(NeverProxied(url)) << url;
  }
}

// A certificate that nobody else has signed, for 127.0.0.1.
class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string command = fmt::format(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=test -addext subjectAltName=IP:127.0.0.1 -keyout {} -out {} 2>/dev/null",
        key(), certificate());
    ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(cert-env33-c): a fixed command.
  }
  std::string key() const { return dir_.File("key.pem"); }
  std::string certificate() const { return dir_.File("certificate.pem"); }

 private:
  testing_support::TempDir dir_;
};

TEST_F(TlsTest, TrustsTheExtraAuthorityAlone) {
  httplib::SSLServer server(certificate().c_str(), key().c_str());
  ASSERT_TRUE(server.is_valid());
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("over TLS", "text/plain");
  });
  const Serving serving(server);
  const std::string url = serving.Url("/", "https");
  const auto trusted = Fetch({"GET", url, {}, ""}, kPatience, {.ca_file = certificate()});
  ASSERT_TRUE(trusted.ok()) << trusted.status();
  EXPECT_EQ(trusted->body, "over TLS");

  const auto untrusted = Fetch({"GET", url, {}, ""}, kPatience);
  EXPECT_EQ(CodeOf(untrusted), "FAILED_PRECONDITION");
  EXPECT_NE(untrusted.status().ToString().find("certificate"), std::string::npos)
      << untrusted.status();
}

TEST_F(TlsTest, ChecksTheNameAndTheFile) {
  httplib::SSLServer server(certificate().c_str(), key().c_str());
  const Serving serving(server);
  const std::string other_name = fmt::format("https://localhost:{}/", serving.port());
  EXPECT_EQ(CodeOf(Fetch({"GET", other_name, {}, ""}, kPatience, {.ca_file = certificate()})),
            "FAILED_PRECONDITION");
  EXPECT_EQ(CodeOf(Fetch({"GET", serving.Url("/", "https"), {}, ""}, kPatience,
                         {.ca_file = "/nonexistent/ca.pem"})),
            "FAILED_PRECONDITION");
}

TEST_F(TlsTest, DoesNotTakePlainTextForTls) {
  httplib::Server server;
  const Serving serving(server);
  EXPECT_EQ(CodeOf(Fetch({"GET", serving.Url("/", "https"), {}, ""}, kPatience)),
            "FAILED_PRECONDITION");
}

}  // namespace
}  // namespace spoke::http
