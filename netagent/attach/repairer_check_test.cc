#include <functional>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/repairer.h"
#include "netagent/journal/fake_journal.h"
#include "netagent/links/testing/fake_kernel.h"
#include "netagent/session/testing/fake_server_link.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;
using testing::Not;

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

const AttachmentKey kKey{"pod", "eth0"};

absl::StatusOr<AttachSpec> SpecOf(const Assignment& assignment) {
  return PlanAttach(assignment.key, assignment.addresses, 1500, assignment.options);
}

class RepairerCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    const Assignment assignment{
        .key = kKey, .addresses = {A("10.1.0.5"), A("fd00::5")}, .generation = 1};
    ASSERT_TRUE(attachments_.Start({AssignmentBegun{assignment}, AssignmentBuilt{kKey}}).ok());
    spec_ = SpecOf(assignment).value();
    ASSERT_TRUE(Attach(kernel_, spec_, netns_.get()).ok());
    told_ = {spec_.host_link, spec_.pod_mac, 1500, spec_.addresses};
  }
  absl::Status Check() { return repairer_.Check(kKey, told_, netns_.get()); }

  FakeKernel kernel_;
  FakeServerLink server_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeTmpfs tmpfs_;
  Attachments attachments_{{.node_name = "node1", .nic = "eth0"},
                           {kernel_, server_, clock_, log_},
                           std::make_unique<FakeJournal>(tmpfs_)};
  Repairer repairer_{{.open_netns = [](const std::string&) -> absl::StatusOr<os::UniqueFd> {
                        return absl::NotFoundError("no path");
                      },
                      .prepare_node = [] { return NodeSetupReport(); }},
                     {kernel_, clock_, log_},
                     attachments_};

  os::UniqueFd netns_ = kernel_.NewPodNetns();
  AttachSpec spec_;
  CheckExpectation told_;
};

TEST_F(RepairerCheckTest, WhatIsAsItWasBuiltPassesWithMuchOrLittleToldOfIt) {
  EXPECT_TRUE(Check().ok()) << Check();
  told_ = {};
  EXPECT_TRUE(Check().ok()) << Check();
}

// One thing that is wrong, and what has to be said of it.
struct Case {
  std::string name;
  std::function<void(HostSide&, PodSide&, CheckExpectation&)> damage;
  std::string text;
};

class RepairerCheckFinds : public RepairerCheckTest, public testing::WithParamInterface<Case> {};

TEST_P(RepairerCheckFinds, AndChangesNothing) {
  GetParam().damage(kernel_.host(spec_.host_link), kernel_.pod(spec_.host_link), told_);
  const HostSide host = kernel_.host(spec_.host_link);
  const PodSide pod = kernel_.pod(spec_.host_link);
  const absl::Status status = Check();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("eth0 of container pod: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().text));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr(";")));
  EXPECT_EQ(kernel_.host(spec_.host_link), host);
  EXPECT_EQ(kernel_.pod(spec_.host_link), pod);
  EXPECT_EQ(kernel_.mends(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RepairerCheckFinds,
    testing::Values(
        Case{"AddressGone", [](auto&, auto& pod, auto&) { pod.addresses.pop_back(); },
             "address fd00::5 is gone"},
        Case{"HostRouteGone", [](auto& host, auto&, auto&) { host.routes.pop_back(); },
             "route to fd00::5 by spk"},
        Case{"HostDown", [](auto& host, auto&, auto&) { host.up = false; }, "is down on the node"},
        Case{"MacOtherThanTold", [](auto&, auto&, auto& told) { told.pod_mac = ip::MacAddress(); },
             "not 00:00:00:00:00:00"},
        Case{"MtuOtherThanTold", [](auto&, auto&, auto& told) { told.mtu = 9000; }, "not 9000"},
        Case{"AddressNeverAssigned",
             [](auto&, auto&, auto& told) { told.addresses = {A("10.1.0.6")}; },
             "prevResult has 10.1.0.6, but 10.1.0.5 and fd00::5 is assigned"},
        Case{"OtherHostLink", [](auto&, auto&, auto& told) { told.host_link = "spk000000000000"; },
             "prevResult names host link spk000000000000, but it is spk"}),
    [](const auto& test) { return test.param.name; });

TEST_F(RepairerCheckTest, WhatALaterPluginChangedAndTheResultHasIsRight) {
  told_.pod_mac = ip::MacAddress{{0x0E, 9, 9, 9, 9, 9}};
  told_.mtu = 1400;
  PodSide& pod = kernel_.pod(spec_.host_link);
  HostSide& host = kernel_.host(spec_.host_link);
  pod.mac = *told_.pod_mac;
  pod.mtu = host.mtu = 1400;
  for (PermanentNeighbour& entry : host.neighbours) entry.mac = pod.mac;
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(RepairerCheckTest, ThreeAreToldAndTheRestCounted) {
  kernel_.pod(spec_.host_link).neighbours.clear();
  kernel_.pod(spec_.host_link).routes.clear();
  const std::string text(Check().message());
  EXPECT_EQ(std::count(text.begin(), text.end(), ';'), 3) << text;
  EXPECT_THAT(text, HasSubstr("; and 1 more"));
}

TEST_F(RepairerCheckTest, ALinkThatIsGoneAndAnotherNamespace) {
  const os::UniqueFd other = kernel_.NewPodNetns();
  const absl::Status elsewhere = repairer_.Check(kKey, told_, other.get());
  EXPECT_TRUE(absl::IsDataLoss(elsewhere)) << elsewhere;
  EXPECT_THAT(std::string(elsewhere.message()), HasSubstr("not in this network namespace"));
  kernel_.Remove(spec_.host_link);
  const absl::Status gone = Check();
  EXPECT_TRUE(absl::IsDataLoss(gone)) << gone;
  EXPECT_THAT(std::string(gone.message()), HasSubstr("is gone from the node"));
}

TEST_F(RepairerCheckTest, WhatNobodyHasAssigned) {
  const absl::Status status = repairer_.Check({"pod", "net1"}, {}, netns_.get());
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("this node has assigned it no address"));
}

TEST_F(RepairerCheckTest, AKernelThatCannotBeReadIsNoVerdict) {
  kernel_.FailReads(absl::UnavailableError("the list changed"));
  EXPECT_TRUE(absl::IsUnavailable(Check())) << Check();
}

TEST_F(RepairerCheckTest, TheDataPathIsWhatTheRepairerSaysOfIt) {
  EXPECT_TRUE(repairer_.DataPath().ok());
  kernel_.FailReads(absl::UnavailableError("the list changed"));
  for (int round = 0; round < kUnhealthyUnreadRounds; ++round) {
    EXPECT_TRUE(repairer_.DataPath().ok());
    repairer_.LookNow();
    repairer_.Tick();
  }
  EXPECT_TRUE(absl::IsDataLoss(repairer_.DataPath()));
}

}  // namespace
}  // namespace spoke::netagent
