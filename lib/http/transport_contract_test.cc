// What every transport promises: those over the network, against real servers.
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/http/curl_transport.h"
#include "lib/http/plain_transport.h"
#include "lib/http/testing/http_servers.h"

namespace spoke::http {
namespace {

const auto* const kNoProxies = testing::AddGlobalTestEnvironment(new NoProxies);

constexpr size_t kMaxBody = 100000;

struct Kind {
  const char* name;
  std::unique_ptr<Transport> (*make)();
};

std::unique_ptr<Transport> MakeCurl() {
  return std::make_unique<CurlTransport>(CurlOptions{.max_response_bytes = kMaxBody});
}

std::unique_ptr<Transport> MakePlain() {
  auto made = PlainTransport::Create(kMaxBody);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

class TransportContract : public testing::TestWithParam<Kind> {
 protected:
  static std::unique_ptr<Transport> Make() { return GetParam().make(); }
  static absl::StatusOr<Response> Fetch(Request request, absl::Duration timeout) {
    return http::Fetch(*Make(), std::move(request), timeout);
  }
};

INSTANTIATE_TEST_SUITE_P(All, TransportContract,
                         testing::Values(Kind{"Curl", &MakeCurl}, Kind{"Plain", &MakePlain}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(TransportContract, CarriesMethodHeadersAndBodyBothWays) {
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

TEST_P(TransportContract, SendsEveryMethodWithAndWithoutBody) {
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

TEST_P(TransportContract, DoesNotFollowRedirects) {
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

TEST_P(TransportContract, CallsATruncatedAnswerUnavailable) {
  const RawServer server([](int connection) {
    Say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"value\":[");
  });
  const auto response = Fetch({"GET", server.Url(), {}, ""}, kPatience);
  EXPECT_EQ(CodeOf(response), "UNAVAILABLE");
  EXPECT_NE(response.status().ToString().find("cut short"), std::string::npos) << response.status();
}

TEST_P(TransportContract, CallsATruncatedChunkUnavailable) {
  const RawServer server([](int connection) {
    Say(connection, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  });
  EXPECT_EQ(CodeOf(Fetch({"GET", server.Url(), {}, ""}, kPatience)), "UNAVAILABLE");
}

TEST_P(TransportContract, CallsAResetUnavailable) {
  const RawServer server([](int connection) {
    Say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    const linger at_once{1, 0};
    ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  });
  EXPECT_EQ(CodeOf(Fetch({"GET", server.Url(), {}, ""}, kPatience)), "UNAVAILABLE");
}

TEST_P(TransportContract, CallsNoHttpUnavailable) {
  const RawServer server([](int connection) { Say(connection, "220 mail ready\r\n\r\n"); });
  EXPECT_EQ(CodeOf(Fetch({"GET", server.Url(), {}, ""}, kPatience)), "UNAVAILABLE");
}

TEST_P(TransportContract, CallsARefusedConnectionUnavailable) {
  EXPECT_EQ(CodeOf(Fetch({"GET", "http://127.0.0.1:1/", {}, ""}, kPatience)), "UNAVAILABLE");
}

TEST_P(TransportContract, GivesUpOnAnAnswerThatDoesNotCome) {
  std::atomic<bool> over{false};
  const RawServer server([&over](int) {
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const auto response = Fetch({"GET", server.Url(), {}, ""}, absl::Milliseconds(100));
  over = true;
  EXPECT_EQ(CodeOf(response), "DEADLINE_EXCEEDED") << response.status();
}

TEST_P(TransportContract, DoesNotSendWhatCouldBeAnotherRequest) {
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

TEST_P(TransportContract, DoesNotTellTheQueryInErrors) {
  const auto response = Fetch({"GET", "http://127.0.0.1:1/path?signature=1234", {}, ""}, kPatience);
  EXPECT_NE(response.status().ToString().find("/path"), std::string::npos);
  EXPECT_EQ(response.status().ToString().find("1234"), std::string::npos) << response.status();
}

TEST_P(TransportContract, WakesFromAnotherThread) {
  const std::unique_ptr<Transport> owned = Make();
  Transport& transport = *owned;
  transport.Wake();  // A wake before Wait() is not lost.
  EXPECT_TRUE(transport.Wait(kPatience).empty());
  std::thread waker([&transport] { transport.Wake(); });
  EXPECT_TRUE(transport.Wait(kPatience).empty());
  waker.join();
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(transport.Wait(absl::Milliseconds(5)).empty());
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(5));
}

TEST_P(TransportContract, EndsCallsThatAreUnderWay) {
  std::atomic<bool> over{false};
  const RawServer server([&over](int) {
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  {
    const std::unique_ptr<Transport> owned = Make();
    Transport& transport = *owned;
    transport.Send(1, {"GET", server.Url(), {}, ""}, kPatience);
    EXPECT_TRUE(transport.Wait(absl::Milliseconds(20)).empty());
  }
  over = true;
}

TEST_P(TransportContract, RefusesABodyThatIsTooLong) {
  for (const std::string framing :
       {"Content-Length: 100001\r\n", "", "Transfer-Encoding: chunked\r\n"}) {
    const RawServer server([&framing](int connection) {
      const std::string body(kMaxBody + 1, 'x');
      const bool chunked = framing.starts_with("Transfer");
      const std::string answer = "HTTP/1.1 200 OK\r\n" + framing + "\r\n" +
                                 (chunked ? "186a1\r\n" + body + "\r\n0\r\n\r\n" : body);
      // What has had enough may close.
      static_cast<void>(::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL));
    });
    EXPECT_EQ(CodeOf(Fetch({"GET", server.Url(), {}, ""}, kPatience)), "RESOURCE_EXHAUSTED")
        << framing;
  }
}

TEST_P(TransportContract, TakesABodyOfTheGreatestLength) {
  for (const std::string framing : {"Content-Length: 100000\r\n", ""}) {
    const RawServer server([&framing](int connection) {
      Say(connection, "HTTP/1.1 200 OK\r\n" + framing + "\r\n" + std::string(kMaxBody, 'x'));
    });
    const auto response = Fetch({"GET", server.Url(), {}, ""}, kPatience);
    ASSERT_TRUE(response.ok()) << framing << response.status();
    EXPECT_EQ(response->body, std::string(kMaxBody, 'x')) << framing;
  }
}

TEST_P(TransportContract, RefusesHeadersWithoutEnd) {
  const RawServer server([](int connection) {
    const std::string line = "X-More: " + std::string(1000, 'x') + "\r\n";
    std::string_view next = "HTTP/1.1 200 OK\r\n";
    for (int sent = 0; sent < 10000; ++sent, next = line) {
      if (::send(connection, next.data(), next.size(), MSG_NOSIGNAL) < 0) return;
    }
    ADD_FAILURE() << "ten megabytes of headers were taken";
  });
  EXPECT_FALSE(Fetch({"GET", server.Url(), {}, ""}, kPatience).ok());
}

TEST_P(TransportContract, GivesUpOnAnAnswerThatDripsForEver) {
  std::atomic<bool> over{false};
  const RawServer server([&over](int connection) {
    std::string_view next = "HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n";
    while (!over) {
      static_cast<void>(::send(connection, next.data(), next.size(), MSG_NOSIGNAL));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      next = "x";
    }
  });
  const auto response = Fetch({"GET", server.Url(), {}, ""}, absl::Milliseconds(300));
  over = true;
  EXPECT_EQ(CodeOf(response), "DEADLINE_EXCEEDED") << response.status();
}

TEST_P(TransportContract, KeepsHeadersOfOneNameApart) {
  const RawServer server([](int connection) {
    Say(connection,
        "HTTP/1.1 200 OK\r\nX-Policy: a;1\r\nx-policy:  b;2 \r\nContent-Length: 2\r\n\r\nok");
  });
  const auto response = Fetch({"GET", server.Url(), {}, ""}, kPatience);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->headers.FindAll("X-Policy"), (std::vector<std::string_view>{"a;1", "b;2"}));
  EXPECT_EQ(response->body, "ok");
}

TEST_P(TransportContract, CarriesSeveralAtOnce) {
  httplib::Server server;
  server.Get(R"(/(\d+))", [](const httplib::Request& request, httplib::Response& response) {
    response.set_content(request.matches[1].str(), "text/plain");
  });
  server.set_keep_alive_max_count(1);  // It waits for what is kept before it stops.
  const Serving serving(server);
  const std::unique_ptr<Transport> transport = Make();
  constexpr size_t kCalls = 20;
  for (uint64_t id = 0; id < kCalls; ++id) {
    transport->Send(id, {"GET", serving.Url(fmt::format("/{}", id)), {}, ""}, kPatience);
  }
  const auto done = WaitFor(*transport, kCalls);
  ASSERT_EQ(done.size(), kCalls);
  for (const auto& [id, response] : done) {
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, std::to_string(id));
  }
}

TEST(PlainTransport, SpeaksToAddressesAlone) {
  for (const char* url : {"http://localhost/", "https://127.0.0.1:1/", "http://127.0.0.1:99999/",
                          "http://[::1/", "http:///x", "127.0.0.1"}) {
    auto transport = PlainTransport::Create(kMaxBody);
    ASSERT_TRUE(transport.ok()) << transport.status();
    EXPECT_EQ(CodeOf(Fetch(**transport, {"GET", url, {}, ""}, kPatience)), "INVALID_ARGUMENT")
        << url;
  }
}

TEST(PlainTransport, SaysWhenNothingWasReached) {
  for (const char* url : {"http://127.0.0.1:1/", "http://255.255.255.255/"}) {
    auto transport = PlainTransport::Create(kMaxBody);
    ASSERT_TRUE(transport.ok()) << transport.status();
    const auto response = Fetch(**transport, {"GET", url, {}, ""}, kPatience);
    EXPECT_EQ(CodeOf(response), "UNAVAILABLE");
    EXPECT_NE(response.status().ToString().find("not reached"), std::string::npos)
        << response.status();
  }
}

TEST(PlainTransport, RefusesWhatItDoesNotDo) {
  auto transport = PlainTransport::Create(kMaxBody);
  ASSERT_TRUE(transport.ok()) << transport.status();
  for (const Request& request :
       {Request{.url = "http://127.0.0.1:1/", .streamed = true},
        Request{.url = "http://127.0.0.1:1/", .send_within = absl::Seconds(1)},
        Request{.method = "BREW", .url = "http://127.0.0.1:1/"}}) {
    EXPECT_EQ(CodeOf(Fetch(**transport, request, kPatience)), "INVALID_ARGUMENT");
  }
}

}  // namespace
}  // namespace spoke::http
