#include "netagent/node/findings_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using node_checks::Finding;
using node_checks::Severity;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

Finding Blocking(const std::string& id, const std::string& what = "is 0") {
  return {.id = id,
          .severity = Severity::kBlocking,
          .object = "net.ipv4.ip_forward",
          .what = what,
          .why = "packets are not forwarded",
          .remedy = "sysctl -w net.ipv4.ip_forward=1"};
}
Finding Warning(const std::string& id) {
  return {.id = id, .severity = Severity::kWarning, .object = "o", .what = "w", .remedy = "r"};
}

class FindingsReportTest : public testing::Test {
 protected:
  void Look() {
    clock_.Advance(FindingsReport::kLook);
    report_.Tick();
  }

  // Looks as often as it takes for what is found to be told.
  void Settle() {
    for (absl::Duration passed; passed <= FindingsReport::kSettle;
         passed += FindingsReport::kLook) {
      Look();
    }
  }

  os::SimClock clock_;
  std::vector<Finding> found_;
  std::vector<node_api::NodeFindings> told_;
  FindingsReport report_{{.clock = clock_,
                          .read = [this] { return found_; },
                          .tell = [this](const auto& findings) { told_.push_back(findings); }}};
};

TEST_F(FindingsReportTest, BlockingOnesAreSaidFirst) {
  const node_api::NodeFindings said = SaidOf({Warning("mtu"), Blocking("forwarding")});
  EXPECT_THAT(said.findings,
              ElementsAre(node_api::NodeFinding{.check = "forwarding",
                                                .blocking = true,
                                                .object = "net.ipv4.ip_forward",
                                                .what = "is 0",
                                                .remedy = "sysctl -w net.ipv4.ip_forward=1"},
                          Field(&node_api::NodeFinding::check, "mtu")));
}

TEST_F(FindingsReportTest, WhatIsFoundAndWhatIsOverIsSaidOnce) {
  Look();
  EXPECT_THAT(told_, IsEmpty()) << "nothing is wrong";
  found_ = {Blocking("forwarding")};
  Settle();
  Look();
  ASSERT_EQ(told_.size(), 1U);
  node_api::NodeFindings said = SaidOf(found_);
  said.findings[0].age = FindingsReport::kSettle;
  EXPECT_EQ(told_[0], said);
  found_ = {Blocking("forwarding", "is 2")};
  Settle();
  EXPECT_EQ(told_.size(), 1U) << "it is the same finding in other words";
  found_ = {};
  Look();
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_THAT(told_[1].findings, IsEmpty());
}

TEST_F(FindingsReportTest, WhatPassesByItselfIsNotSaid) {
  found_ = {Blocking("network-config"), Blocking("forwarding")};
  Look();
  clock_.Advance(FindingsReport::kSettle - FindingsReport::kLook);
  found_ = {Blocking("forwarding")};
  report_.Tick();
  EXPECT_THAT(told_, IsEmpty());
  found_ = {Blocking("network-config"), Blocking("forwarding")};
  Look();
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_THAT(told_[0].findings, ElementsAre(Field(&node_api::NodeFinding::check, "forwarding")))
      << "the other one has come again";
}

TEST_F(FindingsReportTest, ANextSessionHearsOfItAtOnce) {
  found_ = {Blocking("forwarding")};
  Settle();
  ASSERT_EQ(told_.size(), 1U);
  clock_.Advance(absl::Hours(1));
  report_.OnSession();
  report_.Tick();
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_EQ(told_[1].findings[0].age - told_[0].findings[0].age, absl::Hours(1))
      << "for how long it has been found does not begin anew with a server";
  found_ = {};
  report_.OnSession();
  report_.Tick();
  EXPECT_EQ(told_.size(), 2U) << "a server that knows nothing of the node thinks no ill of it";
}

TEST_F(FindingsReportTest, LooksNowAndThen) {
  Look();
  EXPECT_EQ(report_.NextWake(), clock_.Now() + FindingsReport::kLook);
  EXPECT_EQ(FindingsReport({.clock = clock_, .read = {}, .tell = {}}).NextWake(),
            absl::InfiniteFuture());
}

}  // namespace
}  // namespace spoke::netagent
