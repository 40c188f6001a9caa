// Tests what the roles nat-host and egress-gateway say to those who ask for their health.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "netagent/egress/endpoint_text.h"
#include "netagent/egress/gateway_role.h"
#include "netagent/egress/nat_host_role.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;

constexpr char kFile[] = R"({"generated": "2026-01-31T12:00:00Z", "by": {"x": 1},
 "services": [{"address": "10.96.0.10", "port": 80, "protocol": "TCP",
               "endpoints": [{"address": "10.1.0.5", "port": 8080}]},
              {"address": "10.96.0.10", "port": 53, "protocol": "UDP"}]})";

TEST(EndpointText, TakesAFile) {
  const auto table = ParseEndpoints(kFile);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->services.size(), 2U);
  EXPECT_EQ(table->services[0].endpoints.size(), 1U);
  EXPECT_EQ(table->services[1].protocol, 17);
  EXPECT_EQ(absl::FormatTime(absl::RFC3339_full, table->generated, absl::UTCTimeZone()),
            "2026-01-31T12:00:00+00:00");
}

TEST(EndpointText, TakesTheExampleOfTheDocumentation) {
  const std::string page = os::ReadFile(SPOKE_SOURCE_DIR "/docs/EGRESS.md").value();
  const size_t begin = page.find("```json\n");
  ASSERT_NE(begin, std::string::npos);
  const size_t text = begin + 8;
  const auto table = ParseEndpoints(page.substr(text, page.find("```", text) - text));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->services.size(), 1U);
}

TEST(EndpointText, SaysWhatIsWrong) {
  const auto error = [](const std::string& services) {
    return std::string(
        ParseEndpoints(R"({"generated": "2026-01-31T12:00:00Z", "services": )" + services + "}")
            .status()
            .message());
  };
  EXPECT_THAT(error(R"([{"address": "x", "port": 1}])"), HasSubstr("services[0]"));
  EXPECT_THAT(error(R"([{"address": "10.0.0.1", "port": 0}])"), HasSubstr("port"));
  EXPECT_THAT(error(R"([{"address": "10.0.0.1", "port": 1, "protocol": "SCTP"}])"),
              HasSubstr("protocol"));
  EXPECT_THAT(error(R"([{"address": "10.0.0.1", "port": 1, "endpoints": [{"port": 1}]}])"),
              HasSubstr("endpoints"));
  EXPECT_THAT(error("{}"), HasSubstr("services"));
  EXPECT_FALSE(ParseEndpoints("[]").ok());
  EXPECT_FALSE(ParseEndpoints(R"({"generated": "today", "services": []})").ok());
}

// Tables that take what they are given.
class Tables final : public nft::Tables {
 public:
  absl::Status Apply(const nft::Transaction&) override {
    if (answer.ok()) ++applied;
    return answer;
  }
  absl::StatusOr<std::vector<nft::ElementReading>> ReadSet(const nft::TableKey&,
                                                           const std::string&) override {
    return absl::NotFoundError("none");
  }
  absl::StatusOr<std::vector<nft::CounterReading>> ReadCounters(const nft::TableKey&) override {
    return absl::NotFoundError("none");
  }
  absl::StatusOr<std::vector<nft::RuleReading>> ReadRules(const nft::TableKey&) override {
    return absl::NotFoundError("none");
  }
  absl::StatusOr<uint32_t> Generation() override { return 1; }

  absl::Status answer;
  int applied = 0;
};

class NatHostRoleTest : public testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(directory_.File("e.json")) << text; }
  void Tick(NatHostRole& role) {
    now_ += absl::Seconds(1);
    role.Tick(now_);
  }
  std::string HealthOf(const NatHostRole& role) const {
    return std::string(role.Health(now_).message());
  }

  testing_support::TempDir directory_;
  testing_support::RecordingLog log_;
  Tables tables_;
  // The time is a few seconds after the file was generated.
  absl::Time now_ = absl::FromCivil(absl::CivilSecond(2026, 1, 31, 12, 0, 5), absl::UTCTimeZone());
};

TEST_F(NatHostRoleTest, IsHealthyOnceTheEndpointsAreInForce) {
  NatHostRole role({.endpoints = directory_.File("e.json")}, tables_, log_);
  role.SetClasses(ClassMap());
  Tick(role);
  EXPECT_THAT(HealthOf(role), HasSubstr("e.json")) << "there is no file";
  Write(kFile);
  Tick(role);
  EXPECT_EQ(HealthOf(role), "");
  const int applied = tables_.applied;
  Tick(role);
  EXPECT_EQ(tables_.applied, applied) << "nothing has changed";
}

TEST_F(NatHostRoleTest, FailsWhenTheEndpointsAreStale) {
  Write(kFile);
  NatHostRole role({.endpoints = directory_.File("e.json")}, tables_, log_);
  role.SetClasses(ClassMap());
  Tick(role);
  EXPECT_EQ(HealthOf(role), "");
  now_ += absl::Seconds(61);
  EXPECT_THAT(HealthOf(role), HasSubstr("old"));
}

TEST_F(NatHostRoleTest, ABrokenFileKeepsTheLastEndpointsUntilTheyAreStale) {
  Write(kFile);
  NatHostRole role({.endpoints = directory_.File("e.json")}, tables_, log_);
  role.SetClasses(ClassMap());
  Tick(role);
  Write("{");
  Tick(role);
  Tick(role);
  EXPECT_EQ(HealthOf(role), "");
  EXPECT_EQ(log_.Count("endpoints_refused"), 1);
}

TEST_F(NatHostRoleTest, FailsWhileTheKernelRefuses) {
  tables_.answer = absl::UnavailableError("busy");
  NatHostRole role({}, tables_, log_);
  role.SetClasses(ClassMap());
  Tick(role);
  EXPECT_EQ(HealthOf(role), "busy");
  tables_.answer = absl::OkStatus();
  Tick(role);
  EXPECT_EQ(HealthOf(role), "") << "kube-proxy chooses, so there is no file";
}

// Returns what one who asks at the port gets; "" when nobody is there.
std::string AskPort(os::EventLoop& loop, uint16_t port) {
  const os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(port);
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&there), sizeof(there)) < 0) return "";
  EXPECT_EQ(::send(fd.get(), "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  // One round lets it in, one answers.
  for (int i = 0; i < 2; ++i) loop.RunOnce(absl::Seconds(5));
  char answer[512] = {};
  const ssize_t got = ::recv(fd.get(), answer, sizeof(answer) - 1, 0);
  return got > 0 ? std::string(answer, static_cast<size_t>(got)) : "closed";
}

TEST(HealthPort, SaysWhetherTheRoleWorks) {
  os::EventLoop loop = os::EventLoop::Create().value();
  absl::Status health;
  HealthPort port(loop, [&] { return health; });
  ASSERT_TRUE(port.Open(ip::Address::V4(0x7F000001), 0).ok());
  EXPECT_THAT(AskPort(loop, port.port()), HasSubstr("HTTP/1.1 200 OK"));
  health = absl::UnavailableError("endpoints are 2m old");
  EXPECT_THAT(AskPort(loop, port.port()),
              testing::AllOf(HasSubstr("HTTP/1.1 503"), HasSubstr("endpoints are 2m old")));
  port.Close();
  EXPECT_EQ(AskPort(loop, port.port()), "");
}

TEST(GatewayRole, ThePortIsClosedWhileItDrainsOrDoesNotWork) {
  os::EventLoop loop = os::EventLoop::Create().value();
  testing_support::TempDir directory;
  testing_support::RecordingLog log;
  bool works = false;
  GatewayRole role(
      {.health_port = 0, .drain_file = directory.File("drain")}, [&] { return works; }, loop, log);
  absl::Time now = absl::UnixEpoch();
  const auto open = [&] {
    now += GatewayRole::kLook;
    role.Tick(now);
    return role.open();
  };
  EXPECT_FALSE(open());
  works = true;
  EXPECT_TRUE(open());
  EXPECT_THAT(AskPort(loop, role.port()), HasSubstr("200 OK"));
  std::ofstream(directory.File("drain")) << "\n";
  EXPECT_FALSE(open());
  ::unlink(directory.File("drain").c_str());
  EXPECT_TRUE(open());
}

}  // namespace
}  // namespace spoke::netagent
