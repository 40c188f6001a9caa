// Tests of an agent on the simulated Azure: what its Scheduled Events say of a machine.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "lib/http/testing/fake_transport.h"
#include "netagent/maintenance/azure_events.h"
#include "tests/azure-sim/imds_model.h"
#include "tests/azure-sim/model_for_test.h"

namespace spoke::netagent {
namespace {

using azure_sim::ScheduledEvent;
using node_api::MaintenanceKind;
using testing::ElementsAre;
using testing::IsEmpty;

class MaintenanceTest : public azure_sim::ModelTest {
 protected:
  void SetUp() override {
    Make(azure_sim::SmallSpec(3, "10.0.0.0/24"));
    imds_ = std::make_unique<azure_sim::ImdsModel>(model_->backend());
    for (int i = 0; i < 2; ++i) {
      events_.push_back(std::make_unique<AzureEvents>(
          "http://169.254.169.254", "pool_" + std::to_string(i),
          std::make_unique<http::FakeTransport>(
              [this, i](const http::Request& request) -> absl::StatusOr<http::Response> {
                return imds_->Handle(
                    request, fmt::format("{}/virtualMachines/{}", azure_sim::kSet, i), now_);
              })));
    }
  }
  std::vector<node_api::MaintenanceEvent> Of(size_t machine) {
    now_ += absl::Seconds(1);
    auto said = events_[machine]->Read();
    EXPECT_TRUE(said.ok()) << said.status();
    return said.ok() ? std::move(said->events) : std::vector<node_api::MaintenanceEvent>();
  }

  std::unique_ptr<azure_sim::ImdsModel> imds_;
  std::vector<std::unique_ptr<AzureEvents>> events_;
};

TEST_F(MaintenanceTest, EachMachineHearsOfItsOwn) {
  EXPECT_THAT(Of(0), IsEmpty());
  ScheduledEvent reboot{.id = "R", .type = "Reboot", .resources = {"pool_0", "pool_2"}};
  reboot.not_before = now_ + absl::Minutes(15);
  imds_->Schedule(reboot);
  EXPECT_THAT(Of(1), IsEmpty()) << "the document has it, and it is for others";
  const auto announced = Of(0);
  ASSERT_EQ(announced.size(), 1U);
  EXPECT_EQ(announced[0].kind, MaintenanceKind::kReboot);
  EXPECT_FALSE(announced[0].started);
  EXPECT_EQ(announced[0].not_before, absl::FromUnixSeconds(absl::ToUnixSeconds(reboot.not_before)));
  EXPECT_EQ(announced[0].duration, absl::ZeroDuration()) << "it is unknown";
  EXPECT_THAT(announced[0].others, ElementsAre("pool_2"));
  EXPECT_EQ(announced[0].origin, "Platform");
}

TEST_F(MaintenanceTest, BeginsWhenOneAgreesForAllAndIsOverInTime) {
  ScheduledEvent freeze{.id = "F", .type = "Freeze", .resources = {"pool_0", "pool_1"}};
  freeze.not_before = now_ + absl::Minutes(15);
  freeze.duration_seconds = 9;
  imds_->Schedule(freeze);
  EXPECT_FALSE(Of(1).at(0).started);
  ASSERT_TRUE(events_[0]->Begin({"F"}).ok());
  const auto begun = Of(1);
  ASSERT_EQ(begun.size(), 1U);
  EXPECT_TRUE(begun[0].started);
  EXPECT_EQ(begun[0].not_before, absl::InfinitePast());
  EXPECT_EQ(begun[0].duration, absl::Seconds(9));
  now_ += absl::Minutes(10);
  EXPECT_THAT(Of(0), IsEmpty());
  EXPECT_TRUE(absl::IsFailedPrecondition(events_[0]->Begin({"F"}))) << "it is over";
}

TEST_F(MaintenanceTest, WithoutANoticeItBeginsByItself) {
  ScheduledEvent preempt{.id = "P", .type = "Preempt", .resources = {"pool_1"}};
  preempt.not_before = now_ + absl::Seconds(30);
  imds_->Schedule(preempt);
  EXPECT_FALSE(Of(1).at(0).started);
  now_ += absl::Seconds(30);
  EXPECT_TRUE(Of(1).at(0).started);
}

TEST_F(MaintenanceTest, AServiceThatIsBusyIsAskedAgain) {
  model_->backend().knobs().imds_gone = true;
  EXPECT_TRUE(absl::IsUnavailable(events_[0]->Read().status()));
  model_->backend().knobs().imds_gone = false;
  EXPECT_TRUE(events_[0]->Read().ok());
}

}  // namespace
}  // namespace spoke::netagent
