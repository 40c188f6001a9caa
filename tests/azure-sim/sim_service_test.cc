// Tests of the program behind its listeners: administration, the fabric's file, faults of the
// transport.
#include "tests/azure-sim/sim_service.h"

#include "gmock/gmock.h"
#include "lib/os/file.h"
#include "tests/azure-sim/http_server.h"
#include "tests/azure-sim/model_for_test.h"
#include "tests/azure-sim/node_listeners.h"
#include "tests/fabric/nic_table.h"
#include "tests/support/temp_dir.h"

// This header comes behind the others: its macros are many.
#include <httplib.h>

namespace spoke::azure_sim {
namespace {

using testing::HasSubstr;

class SimServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto arm = ArmModel::Build(SmallSpec(2), clock_.Now());
    ASSERT_TRUE(arm.ok()) << arm.status();
    file_ = dir_.path() + "/attachments";
    service_ = std::make_unique<SimService>(*std::move(arm), clock_, file_);
  }
  Json Ask(const std::string& method, const std::string& path, const std::string& body = "",
           int status = 200) {
    const Answer answer = service_->Handle({method, "http://localhost" + path, {}, body});
    EXPECT_EQ(answer.response.status, status) << path << ": " << answer.response.body;
    return Json::parse(answer.response.body, nullptr, false);
  }
  static std::string Path(int number) {
    return fmt::format("{}/virtualMachines/{}?api-version={}", kSet, number, kInstanceApi);
  }
  void Attach(const std::string& name) {
    Json profile = Ask("GET", Path(0))["properties"]["networkProfileConfiguration"];
    Json& configs = profile["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"];
    configs[0]["properties"]["primary"] = true;
    configs.push_back({{"name", name}, {"properties", configs[0]["properties"]}});
    configs.back()["properties"]["primary"] = false;
    Ask("PUT", Path(0), Json({{"properties", {{"networkProfileConfiguration", profile}}}}).dump());
  }
  std::vector<fabric::Attachment> Attachments() {
    const auto text = os::ReadFile(file_);
    EXPECT_TRUE(text.ok()) << text.status();
    auto parsed = fabric::ParseAttachments(text.value_or(""));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? *std::move(parsed) : std::vector<fabric::Attachment>();
  }

  testing_support::TempDir dir_;
  os::SimClock clock_;
  std::string file_;
  std::unique_ptr<SimService> service_;
};

TEST_F(SimServiceTest, TheFabricHearsOfAnAddressWhenItIsOnTheWire) {
  ASSERT_TRUE(service_->Tick().ok());
  EXPECT_TRUE(Attachments().empty());
  Attach("spoke-a");
  EXPECT_TRUE(Attachments().empty());
  clock_.Advance(absl::Minutes(1));
  ASSERT_TRUE(service_->Tick().ok());
  ASSERT_EQ(Attachments().size(), 1);
  EXPECT_EQ(Attachments()[0].addresses.ToString(), "10.0.0.6/32");
  EXPECT_EQ(Attachments()[0].node, "pool000000");

  Ask("POST", "/sim/instances",
      fmt::format(R"({{"id": "{}/virtualMachines/0", "action": "upgrade"}})", kSet));
  clock_.Advance(absl::Minutes(1));
  ASSERT_TRUE(service_->Tick().ok());
  EXPECT_TRUE(Attachments().empty());
}

TEST_F(SimServiceTest, AFileThatCannotBeWrittenIsSaid) {
  auto arm = ArmModel::Build(SmallSpec(1), clock_.Now());
  SimService service(*std::move(arm), clock_, "/nonexistent/dir/file");
  EXPECT_FALSE(service.Tick().ok());
}

TEST_F(SimServiceTest, StateCountersAndKnobsCanBeReadAndSet) {
  Ask("GET", Path(0));
  const Json state = Ask("GET", "/sim/state");
  ASSERT_EQ(state["instances"].size(), 2);
  EXPECT_EQ(state["instances"][1]["addresses"][0]["range"], "10.0.0.5/32");
  EXPECT_EQ(Ask("GET", "/sim/counters")["calls"]["instance.get"]["200"], 1);
  Ask("POST", "/sim/faults", R"({"server_errors": 1})");
  EXPECT_EQ(Ask("GET", "/sim/faults")["server_errors"], 1.0);
  Ask("GET", Path(0), "", 503);
  Ask("POST", "/sim/faults", R"({"no_such": 1})", 400);
}

TEST_F(SimServiceTest, InstancesAndSetsCanBeChanged) {
  const std::string id = fmt::format("{}/virtualMachines/1", kSet);
  Ask("POST", "/sim/instances", fmt::format(R"({{"id": "{}", "action": "remove"}})", id));
  Ask("GET", Path(1), "", 404);
  Ask("POST", "/sim/instances", fmt::format(R"({{"id": "{}", "action": "remove"}})", id), 404);
  Ask("POST", "/sim/scale", fmt::format(R"({{"id": "{}", "add": 3}})", kSet));
  Ask("GET", Path(4));
  Ask("POST", "/sim/scale", R"({"id": "x"})", 404);
  const std::string zero = fmt::format("{}/virtualMachines/0", kSet);
  Ask("POST", "/sim/instances", fmt::format(R"({{"id": "{}", "action": "explode"}})", zero), 400);
  Ask("POST", "/sim/nothing", "{}", 404);
  Ask("POST", "/sim/events", R"({"type": "Freeze", "resources": ["pool_0"]})");
  const Answer events =
      service_->HandleImds({"GET",
                            "http://x/metadata/scheduledevents?api-version=2020-07-01",
                            {{"Metadata", "true"}},
                            ""},
                           zero);
  EXPECT_THAT(events.response.body, HasSubstr("Freeze"));
  EXPECT_FALSE(service_->CheckInstance("/no").ok());
}

TEST_F(SimServiceTest, TheDirectoryExchangesSecretsForTokens) {
  const std::string form =
      "grant_type=client_credentials&client_id=me&client_secret=s&scope=x%2F.default";
  const Json token = Ask("POST", "/tenant/oauth2/v2.0/token", form);
  EXPECT_EQ(token["token_type"], "Bearer");
  Ask("POST", "/sim/faults", R"({"require_token": true})");
  Ask("GET", Path(0), "", 401);
  const Answer answer =
      service_->Handle({"GET",
                        "http://localhost" + Path(0),
                        {{"Authorization", "Bearer " + token["access_token"].get<std::string>()}},
                        ""});
  EXPECT_EQ(answer.response.status, 200);
  Ask("POST", "/tenant/oauth2/v2.0/token", "grant_type=client_credentials&client_id=me", 400);
  Ask("POST", "/sim/faults", R"({"identity_missing": true})");
  Ask("POST", "/tenant/oauth2/v2.0/token", form, 401);
}

TEST_F(SimServiceTest, LocalServicesAreThereForTestsWithoutNamespaces) {
  const Answer imds =
      service_->Handle({"GET", "http://localhost/metadata/versions", {{"Metadata", "true"}}, ""});
  EXPECT_EQ(imds.response.status, 200);
  const Answer wire =
      service_->Handle({"GET",
                        "http://localhost/machine/plugins?comp=nmagent&type=getinterfaceinfov1",
                        {{"X-Sim-Instance", fmt::format("{}/virtualMachines/1", kSet)}},
                        ""});
  EXPECT_THAT(wire.response.body, HasSubstr("10.0.0.5"));
}

// -- Over a socket.

class HttpServerTest : public SimServiceTest {
 protected:
  void SetUp() override {
    SimServiceTest::SetUp();
    ListenOptions options;
    options.threads = 4;
    auto server = HttpServer::Open(
        options, [this](const http::Request& request) { return service_->Handle(request); });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_ = std::make_unique<httplib::Client>("127.0.0.1", server_->port());
    client_->set_keep_alive(false);
  }
  void Break(const std::string& how) {
    Ask("POST", "/sim/transport", R"({"method": "GET", "path": "virtualmachines/0", )" + how + "}");
  }

  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<httplib::Client> client_;
};

TEST_F(HttpServerTest, CarriesRequestsAndAnswersWhole) {
  const auto got = client_->Get(Path(0));
  ASSERT_TRUE(got) << httplib::to_string(got.error());
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->get_header_value("Content-Type"), "application/json; charset=utf-8");
  EXPECT_TRUE(got->has_header("ETag"));
  const auto put = client_->Put(Path(0), R"({"tags": {}})", "application/json");
  ASSERT_TRUE(put);
  EXPECT_EQ(put->status, 200);
  // The operation is found under the URL that the client was given.
  const std::string url = put->get_header_value("Azure-AsyncOperation");
  const std::string base = fmt::format("http://127.0.0.1:{}", server_->port());
  ASSERT_EQ(url.substr(0, base.size()), base);
  const auto operation = client_->Get(url.substr(base.size()));
  ASSERT_TRUE(operation);
  EXPECT_EQ(operation->status, 200) << operation->body;
}

TEST_F(HttpServerTest, BreaksAnswersAsOftenAsItWasTold) {
  for (const char* fault : {"truncate", "reset", "drop"}) {
    Break(fmt::format(R"("fault": "{}", "count": 1)", fault));
    EXPECT_FALSE(client_->Get(Path(0))) << fault;
    EXPECT_TRUE(client_->Get(Path(0))) << fault;
  }
  Break(R"("fault": "malformed")");
  const auto malformed = client_->Get(Path(0));
  ASSERT_TRUE(malformed);
  EXPECT_EQ(malformed->status, 200);
  EXPECT_TRUE(Json::parse(malformed->body, nullptr, false).is_discarded());
  Break(R"("fault": "html", "count": 2)");
  EXPECT_EQ(client_->Get(Path(0))->get_header_value("Content-Type"), "text/html");
  EXPECT_EQ(client_->Get(Path(1))->get_header_value("Content-Type"),
            "application/json; charset=utf-8");
  EXPECT_EQ(client_->Get(Path(0))->get_header_value("Content-Type"), "text/html");
  Break(R"("fault": "redirect", "location": "http://127.0.0.1:1/")");
  EXPECT_EQ(client_->Get(Path(0))->status, 307);
  Break(R"("fault": "stall", "seconds": 0.05)");
  EXPECT_EQ(client_->Get(Path(0))->status, 200);
  Ask("POST", "/sim/transport", R"({"fault": "explode"})", 400);
}

TEST_F(HttpServerTest, ALostResponseIsAConnectionThatEnds) {
  Ask("POST", "/sim/faults", R"({"lost_responses": 1})");
  EXPECT_FALSE(client_->Put(Path(0), R"({"tags": {}})", "application/json"));
  EXPECT_EQ(Ask("GET", "/sim/counters")["calls"]["instance.put"]["0"], 1);
}

TEST(HttpServer, SaysWhyItCannotListen) {
  ListenOptions options;
  options.tls_cert = "/nonexistent";
  options.tls_key = "/nonexistent";
  EXPECT_EQ(HttpServer::Open(options, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  options = {};
  options.host = "192.0.2.1";  // The address is nobody's.
  EXPECT_EQ(HttpServer::Open(options, nullptr).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace spoke::azure_sim
