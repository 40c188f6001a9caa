#include "ipam-server/audit/audit_job.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "gtest/gtest.h"
#include "ipam-server/cloud/testing/fake_cloud.h"
#include "ipam-server/ledger/testing/hello_for_test.h"
#include "ipam-server/store/testing/memory_store.h"
#include "ipam-server/telemetry/server_metrics.h"
#include "tests/support/recording_log.h"

namespace spoke::ipam {
namespace {

const NodeKey kNode{"node1", "vm-1"};
constexpr SessionId kSession = 1;

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

// An agent that answers what it is asked for, and says more right after.
class Agent final : public AgentLink {
 public:
  void Send(SessionId /*session*/, ToAgent message) override {
    if (std::holds_alternative<node_api::InventoryRequest>(message)) on_inventory_request();
  }
  void ReadNext(SessionId /*session*/) override {}
  void Close(SessionId /*session*/, absl::Status /*why*/) override {}

  std::function<void()> on_inventory_request;
};

class AuditJobTest : public testing::Test {
 protected:
  AuditJobTest() {
    loop_ = std::make_unique<FleetLoop>(
        settings_, LoadState(store_, settings_, clock_.Now()).value(),
        FleetLoop::Edges{store_, agent_, cloud_, mailbox_, clock_, log_});
    audit_ =
        std::make_unique<AuditJob>(AuditJob::Settings{.policy = {.grace = absl::ZeroDuration()}},
                                   AuditJob::Edges{*loop_, cloud_, clock_, log_, &server_metrics_});
    loop_->PostHello(kSession, {.node = IdentityOf(kNode)});
    for (int i = 0; i < 3; ++i) loop_->RunOnce(absl::ZeroDuration());
    clock_.Advance(absl::Minutes(1));
  }
  ~AuditJobTest() override {
    loop_->Stop();
    if (thread_.joinable()) thread_.join();
  }

  node_api::Assignment Assign(uint64_t generation, std::string container) const {
    return {.address = address_,
            .generation = generation,
            .since = clock_.Now() - absl::Seconds(30),
            .lessee = {.container_id = std::move(container), .ifname = "eth0"}};
  }
  void Report(node_api::AssignmentReport report) {
    loop_->PostFromAgent(ReportEvent{kSession, std::move(report)});
  }
  // The agent says what it assigns as the audit asks, and reports `then` before the audit repairs.
  AuditReport RunWith(std::vector<node_api::Assignment> in_use, node_api::AssignmentReport then) {
    agent_.on_inventory_request = [this, in_use = std::move(in_use), then = std::move(then)] {
      loop_->PostFromAgent(InventoryEvent{
          kSession, {.id = 1, .held = {A("10.1.0.4"), A("10.1.0.5")}, .in_use = in_use}});
      Report(then);
    };
    thread_ = std::thread([this] { loop_->Run(); });
    auto report = audit_->Run(/*repair=*/true, [](uint64_t, uint64_t) {});
    EXPECT_TRUE(report.ok()) << report.status();
    return report.value_or(AuditReport());
  }
  Slot SlotNow() {
    Slot slot;
    EXPECT_TRUE(AskLoop(*loop_, absl::Seconds(10), [&](const FleetView& view) {
                  slot = view.fleet.ledger.Find(kNode)->Holding(address_)->At(address_);
                }).ok());
    return slot;
  }

  const ip::Address address_ = A("10.1.0.4");
  const ServerSettings settings_{
      .pools = {{.name = "default", .cidr = ip::Prefix::Parse("10.1.0.0/24").value()}},
      .fleet = {.target = {.min = 2, .batch = 2, .spare = 0.5, .max = 8}}};
  MemoryStore store_;
  Agent agent_;
  Mailbox mailbox_;
  FakeCloud cloud_{AnswersTo(mailbox_)};
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  telemetry::Metrics metrics_{ServerMetricSpecs()};
  ServerMetrics server_metrics_{metrics_, "1.2.3"};
  std::unique_ptr<FleetLoop> loop_;
  std::unique_ptr<AuditJob> audit_;
  std::thread thread_;
};

TEST_F(AuditJobTest, RepairsWhatIsAsItWasCompared) {
  Report({.sequence = 1, .in_use = {Assign(1, "gone")}});
  loop_->RunOnce(absl::ZeroDuration());
  const AuditReport report = RunWith({}, {});
  ASSERT_EQ(report.differences.size(), 1U);
  EXPECT_EQ(report.differences[0].kind, AuditKind::kRecordedNotInUse);
  EXPECT_TRUE(report.repaired[0]);
  EXPECT_EQ(SlotNow().use, Use::kCooldown);
}

TEST_F(AuditJobTest, ComparesTheOtherTwoWhereTheCloudCannotBeListed) {
  cloud_.Stop();
  Report({.sequence = 1, .in_use = {Assign(1, "gone")}});
  loop_->RunOnce(absl::ZeroDuration());
  const AuditReport report = RunWith({}, {});
  EXPECT_EQ(report.differences.size(), 1U);
  EXPECT_FALSE(report.cloud.ok()) << "who reads the report has to know";
  const std::string metrics = metrics_.Render();
  EXPECT_NE(metrics.find("spoke_ipam_audits_total{result=\"failed\"} 1\n"), std::string::npos);
  EXPECT_NE(metrics.find("spoke_ipam_last_audit_timestamp_seconds 0\n"), std::string::npos)
      << "an alert does not end because the cloud does not answer";
  EXPECT_EQ(log_.Count("cloud_list_failed"), 1);
}

TEST_F(AuditJobTest, DoesNotEndAnAssignmentThatBeganSinceItCompared) {
  Report({.sequence = 1, .in_use = {Assign(1, "gone")}});
  loop_->RunOnce(absl::ZeroDuration());
  const AuditReport report =
      RunWith({}, {.sequence = 2, .in_use = {Assign(2, "new")}, .released = {{A("10.1.0.4"), 1}}});
  ASSERT_EQ(report.differences.size(), 1U);
  EXPECT_FALSE(report.repaired[0]);
  EXPECT_EQ(SlotNow().use, Use::kInUse);
  EXPECT_EQ(SlotNow().lessee->container_id, "new");
}

TEST_F(AuditJobTest, DoesNotReviveAnAssignmentThatEndedSinceItCompared) {
  const AuditReport report =
      RunWith({Assign(1, "brief")}, {.sequence = 1, .released = {{A("10.1.0.4"), 1}}});
  ASSERT_EQ(report.differences.size(), 1U);
  EXPECT_EQ(report.differences[0].kind, AuditKind::kInUseNotRecorded);
  EXPECT_FALSE(report.repaired[0]);
  EXPECT_NE(SlotNow().use, Use::kInUse);
}

}  // namespace
}  // namespace spoke::ipam
