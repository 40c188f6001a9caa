#include "lib/http/curl_transport.h"

#include <fmt/core.h>
#include <httplib.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "lib/http/testing/http_servers.h"
#include "tests/support/temp_dir.h"

namespace spoke::http {
namespace {

const auto* const kNoProxies = testing::AddGlobalTestEnvironment(new NoProxies);

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
