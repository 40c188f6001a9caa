// Tests of the dashboard as a browser meets it: real HTTP, and the tests' server behind it.
#include <httplib.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "admin-cli/dashboard/answers.h"
#include "admin-cli/dashboard/page_server.h"
#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Returns the port in "http://127.0.0.1:PORT/...".
int PortIn(const std::string& url) {
  const size_t colon = url.rfind(':');
  return colon == std::string::npos ? 0 : std::atoi(url.c_str() + colon + 1);
}

class DashboardTest : public CommandTest {
 protected:
  DashboardTest() {
    Change(FillCluster);
    auto opened = PageServer::Open(0, {.place = "aa11", .token = "0123456789abcdef"}, answers_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    page_ = *std::move(opened);
    http_ = std::make_unique<httplib::Client>("127.0.0.1", PortIn(page_->url()));
  }

  // Gets a path below the place, as whoever has logged in.
  httplib::Result Get(const std::string& path, httplib::Headers headers = {}) {
    headers.emplace("Cookie", "spoke_dashboard=0123456789abcdef");
    return http_->Get("/aa11/" + path, headers);
  }
  nlohmann::json Answer(const std::string& path, int status = 200) {
    const httplib::Result result = Get("api/" + path);
    EXPECT_TRUE(result) << httplib::to_string(result.error());
    if (!result) return {};
    EXPECT_EQ(result->status, status) << result->body;
    EXPECT_EQ(result->get_header_value("Content-Type"), "application/json");
    return nlohmann::json::parse(result->body, nullptr, false);
  }
  size_t Asked(const std::string& method) {
    size_t count = 0;
    Change([&](const FakeState& state) {
      for (const std::string& request : state.requests) count += request.starts_with(method + " ");
    });
    return count;
  }

  os::SimClock clock_{absl::FromUnixMillis(kNowMs)};
  const Client client_{Target{.servers = {target_}}, absl::Seconds(5)};
  Answers answers_{client_, clock_, absl::Seconds(10)};
  std::unique_ptr<PageServer> page_;
  std::unique_ptr<httplib::Client> http_;
};

TEST_F(DashboardTest, TheTokenBecomesACookieAndLeavesTheUrl) {
  const std::string url = page_->url();
  EXPECT_THAT(url, testing::EndsWith("/aa11/?token=0123456789abcdef"));
  const httplib::Result first = http_->Get("/aa11/?token=0123456789abcdef");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, 303);
  EXPECT_EQ(first->get_header_value("Location"), "/aa11/");
  EXPECT_EQ(first->get_header_value("Set-Cookie"),
            "spoke_dashboard=0123456789abcdef; Path=/aa11/; HttpOnly; SameSite=Strict");
  const httplib::Result page = Get("");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->body, StartsWith("<!doctype html>"));
}

TEST_F(DashboardTest, EveryAnswerForbidsWhatDoesNotComeFromHere) {
  for (const char* path : {"", "page.js", "api/fleet", "nothing"}) {
    const httplib::Result result = Get(path);
    ASSERT_TRUE(result) << path;
    EXPECT_THAT(result->get_header_value("Content-Security-Policy"),
                StartsWith("default-src 'self';"));
    EXPECT_EQ(result->get_header_value("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(result->get_header_value("Cache-Control"), "no-store");
    EXPECT_EQ(result->get_header_value("Referrer-Policy"), "no-referrer");
    EXPECT_FALSE(result->has_header("Access-Control-Allow-Origin"));
    EXPECT_FALSE(result->has_header("Content-Encoding"));
  }
}

TEST_F(DashboardTest, WhoHasNoTokenSeesNothingAndAsksNothing) {
  for (const char* path : {"/aa11/", "/aa11/page.js", "/aa11/api/fleet", "/aa11/?token=0123"}) {
    const httplib::Result result = http_->Get(path);
    ASSERT_TRUE(result) << path;
    EXPECT_EQ(result->status, 403) << path;
    EXPECT_FALSE(result->has_header("Set-Cookie")) << path;
  }
  EXPECT_EQ(Asked("GetStatus"), 0);
}

TEST_F(DashboardTest, AnotherNameOfTheHostIsRefused) {
  const httplib::Result wrong = Get("api/fleet", {{"Host", "rebound.example:80"}});
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->status, 403);
  const httplib::Result right = Get("api/fleet", {{"Host", "localhost:9"}});
  ASSERT_TRUE(right);
  EXPECT_EQ(right->status, 200);
}

TEST_F(DashboardTest, APageFromElsewhereIsRefused) {
  const httplib::Result wrong = Get("api/fleet", {{"Sec-Fetch-Site", "same-site"}});
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->status, 403);
}

TEST_F(DashboardTest, WhatIsNotThereIsNotFound) {
  for (const char* path : {"nothing", "api/nothing", "api/", "api/Fleet", "page/page.js"}) {
    const httplib::Result result = Get(path);
    ASSERT_TRUE(result) << path;
    EXPECT_EQ(result->status, 404) << path;
  }
  for (const char* path : {"/", "/favicon.ico", "/api/fleet"}) {
    const httplib::Result result = http_->Get(path);
    ASSERT_TRUE(result) << path;
    EXPECT_EQ(result->status, 404) << path;
  }
}

TEST_F(DashboardTest, NothingCanBeChanged) {
  const httplib::Headers cookie = {{"Cookie", "spoke_dashboard=0123456789abcdef"}};
  const httplib::Result post = http_->Post("/aa11/api/fleet", cookie, "{}", "application/json");
  ASSERT_TRUE(post);
  EXPECT_EQ(post->status, 405);
  EXPECT_EQ(post->get_header_value("Allow"), "GET, HEAD");
  const httplib::Result put = http_->Put("/aa11/api/fleet", cookie, "{}", "application/json");
  ASSERT_TRUE(put);
  EXPECT_EQ(put->status, 405);
  const httplib::Result gone = http_->Delete("/aa11/api/fleet", cookie);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->status, 405);
  Change([](const FakeState& state) { EXPECT_TRUE(state.requests.empty()); });
}

TEST_F(DashboardTest, EachPanelHasItsAnswer) {
  EXPECT_EQ(Answer("fleet")["data"]["server"], target_);
  EXPECT_EQ(Answer("fleet")["data"]["interval_ms"], 10'000);
  EXPECT_EQ(Answer("fleet")["at"], kNowMs);
  EXPECT_EQ(Answer("pools")["data"][0]["name"], "default");
  EXPECT_EQ(Answer("nodes")["data"]["names"], nlohmann::json::array({"node1", "node2"}));
  EXPECT_EQ(Answer("nodes")["data"]["fitness"], "oa");
  EXPECT_EQ(Answer("nodes")["data"]["waiting"]["nodes"][0]["node"], "node2");
  EXPECT_TRUE(Answer("budgets")["data"].is_array());
  EXPECT_EQ(Answer("rollout")["data"]["nodes"], 0);
  EXPECT_TRUE(Answer("events")["data"].is_array());
}

TEST_F(DashboardTest, TenWhoLookCostTheServerAsMuchAsOne) {
  for (int viewer = 0; viewer < 10; ++viewer) {
    Answer("fleet");
    Answer("nodes");
  }
  EXPECT_EQ(Asked("GetStatus"), 1);
  EXPECT_EQ(Asked("ListNodes"), 1);
  clock_.Advance(absl::Seconds(10));
  Answer("fleet");
  EXPECT_EQ(Asked("GetStatus"), 2);
}

TEST_F(DashboardTest, TrafficIsPlottedAsTheServerKeepsIt) {
  Change([](FakeState& state) {
    state.course.add_classes("internet");
    state.course.add_times_unix_ms(kNowMs);
    v1::TrafficLine& line = *state.course.add_lines();
    line.set_name("web");
    line.add_bits_per_second(8'000.4);
  });
  const nlohmann::json traffic = Answer("traffic?of=internet")["data"];
  EXPECT_EQ(traffic["lines"][0]["name"], "web");
  EXPECT_EQ(traffic["lines"][0]["rates"], nlohmann::json::array({8'000}));
  EXPECT_EQ(traffic["classes"], nlohmann::json::array({"internet"}));
  EXPECT_EQ(traffic["times"], nlohmann::json::array({kNowMs}));
  EXPECT_EQ(server_.last_request(), "GetTrafficCourse traffic_class: \"internet\" limit: 8");
}

TEST_F(DashboardTest, AStoryIsOfWhatWasNamed) {
  Change([](FakeState& state) { state.explain.set_summary("it has an address"); });
  EXPECT_EQ(Answer("story?of=web%2Ffrontend-1")["data"]["summary"], "it has an address");
  EXPECT_EQ(server_.last_request(), "Explain pod: \"web/frontend-1\"");
  Answer("story?of=10.1.0.5");
  EXPECT_EQ(server_.last_request(), "Explain address: \"10.1.0.5\"");
  EXPECT_EQ(Answer("story?of=", 400)["error"], "invalid_argument");
  Refuse("Explain", absl::NotFoundError("there is no node nope"));
  EXPECT_EQ(Answer("story?of=nope", 404)["message"], "there is no node nope");
}

TEST_F(DashboardTest, ARefusalIsOfTheOnePanel) {
  Refuse("GetBudgets", absl::PermissionDeniedError("a viewer may not"));
  const nlohmann::json refused = Answer("budgets", 403);
  EXPECT_EQ(refused["error"], "permission_denied");
  EXPECT_EQ(refused["message"], "a viewer may not");
  EXPECT_FALSE(refused.contains("data"));
  Answer("fleet");
}

TEST_F(DashboardTest, NamesThatAreHtmlReachThePageAsJsonAlone) {
  Change([](FakeState& state) {
    v1::EventInfo& event = state.events.emplace_back();
    (*event.mutable_fields())["pod"] = "<img src=x onerror=alert(1)>";
  });
  EXPECT_EQ(Answer("events")["data"][0]["fields"]["pod"], "<img src=x onerror=alert(1)>");
  const httplib::Result result = Get("api/story?of=%3Cscript%3E");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->get_header_value("Content-Type"), "application/json");
}

TEST(DashboardAwayTest, AServerThatIsAwayIsToldAndNothingElseFails) {
  const testing_support::TempDir dir;
  const Client client(Target{.servers = {"unix:" + dir.File("none.sock")}}, absl::Seconds(5));
  const os::SimClock clock;
  Answers answers(client, clock, absl::Seconds(10));
  for (const char* name : {"fleet", "pools", "nodes", "traffic", "budgets", "rollout", "events"}) {
    const auto answer = answers.Of(name, "");
    ASSERT_NE(answer, nullptr) << name;
    EXPECT_EQ(answer->status, 503) << name;
    const auto body = nlohmann::json::parse(answer->body, nullptr, false);
    EXPECT_EQ(body["error"], "unavailable") << name;
    EXPECT_THAT(body["message"].get<std::string>(), HasSubstr("no server answers at")) << name;
  }
}

TEST_F(CommandTest, DashboardServesWhileItWaitsAndEndsWhenInterrupted) {
  Change(FillCluster);
  FakeConsole console;
  const os::SimClock clock(absl::FromUnixMillis(kNowMs));
  int waits = 0;
  int status = 0;
  const World world{console, clock,
                    [&](absl::Duration) {
                      const std::string url = console.out.substr(0, console.out.find('\n'));
                      httplib::Client http("127.0.0.1", PortIn(url));
                      const auto result = http.Get(url.substr(url.find('/', 8)));
                      if (result) status = result->status;
                      return ++waits < 3;
                    },
                    [&](const std::string& name) { return variables_[name]; }};
  EXPECT_EQ(ctl::Run({"dashboard"}, world), 0) << console.err;
  EXPECT_EQ(status, 303);
  EXPECT_THAT(console.out,
              testing::ContainsRegex("^http://127.0.0.1:[0-9]+/[0-9a-f]+/.token=[0-9a-f]+\n$"));
}

TEST_F(CommandTest, DashboardHasNewKeysEachTime) {
  const auto keys = [this] {
    const std::string url = Json("dashboard")["url"];
    EXPECT_THAT(url, StartsWith("http://127.0.0.1:"));
    return url.substr(url.find("/", url.rfind(':')));
  };
  const std::string first = keys();
  EXPECT_GT(first.size(), 64);
  EXPECT_NE(first, keys());
}

TEST_F(CommandTest, DashboardWaitsForAServerButNotForARole) {
  Refuse("GetStatus", absl::PermissionDeniedError("no role"));
  const Outcome refused = Run("dashboard");
  EXPECT_EQ(refused.code, 5);
  EXPECT_EQ(refused.out, "");
  const Outcome away = Run("dashboard --server unix:" + dir_.File("none.sock"));
  EXPECT_EQ(away.code, 0);
  EXPECT_THAT(away.err, HasSubstr("no server answers"));
  EXPECT_THAT(away.out, StartsWith("http://127.0.0.1:"));
}

TEST_F(CommandTest, DashboardRefusesWhatIsNoPortAndAnIntervalThatIsTooShort) {
  EXPECT_EQ(Run("dashboard --port 65536").code, 2);
  EXPECT_EQ(Run("dashboard --port x").code, 2);
  EXPECT_EQ(Run("dashboard --interval 0.5s").code, 2);
}

TEST_F(DashboardTest, APortThatIsTakenIsRefused) {
  const Outcome taken = Run("dashboard --port " + std::to_string(PortIn(page_->url())));
  EXPECT_EQ(taken.code, 5);
  EXPECT_THAT(taken.err, HasSubstr("cannot be had"));
}

}  // namespace
}  // namespace spoke::ctl
