#include "netagent/attach/attachment_check.h"

#include <functional>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/journal/fake_journal.h"
#include "netagent/links/testing/fake_inspector.h"
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

class AttachmentCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    const Assignment assignment{
        .key = kKey, .addresses = {A("10.1.0.5"), A("fd00::5")}, .generation = 1};
    ASSERT_TRUE(attachments_.Start({AssignmentBegun{assignment}, AssignmentBuilt{kKey}}).ok());
    spec_ = SpecOf(assignment).value();
    inspector_.Build(spec_, netns_.get());
    told_ = {spec_.host_link, spec_.pod_mac, 1500, spec_.addresses};
  }
  absl::Status Check() { return check_.Check(kKey, told_, netns_.get()); }

  FakeKernel kernel_;
  FakeInspector inspector_;
  FakeServerLink server_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeTmpfs tmpfs_;
  Attachments attachments_{{.node_name = "node1", .nic = "eth0"},
                           {kernel_, server_, clock_, log_},
                           std::make_unique<FakeJournal>(tmpfs_)};
  Repairer repairer_{{.spec_of = &SpecOf,
                      .open_netns = [](const std::string&) -> absl::StatusOr<os::UniqueFd> {
                        return absl::NotFoundError("no path");
                      },
                      .prepare_node = [] { return NodeSetupReport(); }},
                     {inspector_, kernel_, clock_, log_},
                     attachments_};
  AttachmentCheck check_{&SpecOf, inspector_, attachments_, repairer_};
  os::UniqueFd netns_ = FakeInspector::NewPodNetns();
  AttachSpec spec_;
  CheckExpectation told_;
};

TEST_F(AttachmentCheckTest, WhatIsAsItWasBuiltPassesWithMuchOrLittleToldOfIt) {
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

class AttachmentCheckFinds : public AttachmentCheckTest,
                             public testing::WithParamInterface<Case> {};

TEST_P(AttachmentCheckFinds, AndChangesNothing) {
  GetParam().damage(inspector_.host(spec_.host_link), inspector_.pod(spec_.host_link), told_);
  const HostSide host = inspector_.host(spec_.host_link);
  const PodSide pod = inspector_.pod(spec_.host_link);
  const absl::Status status = Check();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("eth0 of container pod: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().text));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr(";")));
  EXPECT_EQ(inspector_.host(spec_.host_link), host);
  EXPECT_EQ(inspector_.pod(spec_.host_link), pod);
  EXPECT_EQ(inspector_.mends(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, AttachmentCheckFinds,
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

TEST_F(AttachmentCheckTest, WhatALaterPluginChangedAndTheResultHasIsRight) {
  told_.pod_mac = ip::MacAddress{{0x0E, 9, 9, 9, 9, 9}};
  told_.mtu = 1400;
  PodSide& pod = inspector_.pod(spec_.host_link);
  HostSide& host = inspector_.host(spec_.host_link);
  pod.mac = *told_.pod_mac;
  pod.mtu = host.mtu = 1400;
  for (PermanentNeighbour& entry : host.neighbours) entry.mac = pod.mac;
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(AttachmentCheckTest, ThreeAreToldAndTheRestCounted) {
  inspector_.pod(spec_.host_link).neighbours.clear();
  inspector_.pod(spec_.host_link).routes.clear();
  const std::string text(Check().message());
  EXPECT_EQ(std::count(text.begin(), text.end(), ';'), 3) << text;
  EXPECT_THAT(text, HasSubstr("; and 2 more"));
}

TEST_F(AttachmentCheckTest, ALinkThatIsGoneAndAnotherNamespace) {
  const os::UniqueFd other = FakeInspector::NewPodNetns();
  const absl::Status elsewhere = check_.Check(kKey, told_, other.get());
  EXPECT_TRUE(absl::IsDataLoss(elsewhere)) << elsewhere;
  EXPECT_THAT(std::string(elsewhere.message()), HasSubstr("not in this network namespace"));
  inspector_.Remove(spec_.host_link);
  const absl::Status gone = Check();
  EXPECT_TRUE(absl::IsDataLoss(gone)) << gone;
  EXPECT_THAT(std::string(gone.message()), HasSubstr("is gone from the node"));
}

TEST_F(AttachmentCheckTest, WhatNobodyHasAssigned) {
  const absl::Status status = check_.Check({"pod", "net1"}, {}, netns_.get());
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("this node has assigned it no address"));
}

TEST_F(AttachmentCheckTest, AKernelThatCannotBeReadIsNoVerdict) {
  inspector_.FailReads(absl::UnavailableError("the list changed"));
  EXPECT_TRUE(absl::IsUnavailable(Check())) << Check();
}

TEST_F(AttachmentCheckTest, TheDataPathIsWhatTheRepairerSaysOfIt) {
  EXPECT_TRUE(check_.DataPath().ok());
  inspector_.FailReads(absl::UnavailableError("the list changed"));
  for (int round = 0; round < kUnhealthyUnreadRounds; ++round) {
    EXPECT_TRUE(check_.DataPath().ok());
    repairer_.LookNow();
    repairer_.Tick();
  }
  EXPECT_TRUE(absl::IsDataLoss(check_.DataPath()));
}

}  // namespace
}  // namespace spoke::netagent
