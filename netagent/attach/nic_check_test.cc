#include "netagent/attach/nic_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/journal/fake_journal.h"
#include "netagent/links/testing/fake_kernel.h"
#include "netagent/session/testing/fake_server_link.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::Contains;
using testing::HasSubstr;

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

class NicCheckTest : public testing::Test {
 protected:
  NicCheckTest() {
    Configure({"10.1.0.4"});
    EXPECT_TRUE(attachments_.Start({}).ok());
    node_api::DesiredState desired{.version = 1, .full = true};
    for (const char* address : {"10.1.0.5", "10.1.0.6"}) {
      desired.added.push_back({.range = ip::Prefix::Host(A(address)), .pool = "default"});
    }
    EXPECT_TRUE(attachments_.OnDesired(desired).ok());
  }
  // Puts `addresses` on the device, as somebody else might.
  void Configure(const std::vector<std::string>& addresses) {
    Nic nic{.name = "eth0", .mtu = 1500};
    for (const std::string& address : addresses) nic.addresses.push_back(A(address));
    kernel_.SetNic(nic);
  }
  uint32_t Available() const {
    return attachments_.assignments().CountByPool()["default"].available;
  }

  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeKernel kernel_;
  FakeServerLink server_;
  FakeTmpfs tmpfs_;
  Attachments attachments_{{.node_name = "node1", .nic = "eth0"},
                           {kernel_, server_, clock_, log_},
                           std::make_unique<FakeJournal>(tmpfs_)};
  NicCheck check_{"eth0", {A("10.1.0.9")}, {kernel_, clock_, log_}, attachments_};
};

TEST_F(NicCheckTest, AnAddressOnTheDeviceIsNotAssignedAndIsSaidOnce) {
  check_.Look();
  EXPECT_EQ(Available(), 2U);
  EXPECT_EQ(log_.Count("address_on_nic"), 0);
  Configure({"10.1.0.4", "10.1.0.5"});
  check_.Look();
  check_.Look();
  EXPECT_EQ(Available(), 1U);
  EXPECT_EQ(log_.Count("address_on_nic"), 1);
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("address=10.1.0.5 device=eth0 remedy=")));
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("apply_network_config_for_secondary_ips: false")));
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("ip address delete 10.1.0.5/PREFIX dev eth0")));
}

TEST_F(NicCheckTest, AnAddressThatWasTakenOffIsAssignedAgain) {
  Configure({"10.1.0.5"});
  check_.Look();
  Configure({});
  check_.Look();
  EXPECT_EQ(Available(), 2U);
  EXPECT_EQ(log_.Count("address_off_nic"), 1);
  Configure({"10.1.0.5"});
  check_.Look();
  EXPECT_EQ(log_.Count("address_on_nic"), 2);
}

TEST_F(NicCheckTest, ASecondaryOfTheCloudIsReportedBeforeTheServerListsIt) {
  Configure({"10.1.0.4", "10.1.0.9", "192.168.0.1"});
  check_.Look();
  EXPECT_EQ(log_.Count("address_on_nic"), 1);
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("address=10.1.0.9")));
  // The address is also not assigned once it is listed, without another look.
  node_api::DesiredState desired{.version = 2};
  desired.added.push_back({.range = ip::Prefix::Host(A("10.1.0.9")), .pool = "default"});
  ASSERT_TRUE(attachments_.OnDesired(desired).ok());
  EXPECT_EQ(Available(), 2U);
}

TEST_F(NicCheckTest, ADeviceThatCannotBeReadIsSaidOnceAndChangesNothing) {
  Configure({"10.1.0.5"});
  check_.Look();
  kernel_.RemoveNic("eth0");
  check_.Look();
  check_.Look();
  EXPECT_EQ(log_.Count("nic_unreadable"), 1);
  EXPECT_EQ(Available(), 1U);
}

TEST_F(NicCheckTest, ItLooksEveryHalfMinute) {
  check_.Tick();
  const int calls = kernel_.calls();
  clock_.Advance(kNicLook - absl::Milliseconds(1));
  check_.Tick();
  EXPECT_EQ(kernel_.calls(), calls);
  EXPECT_EQ(check_.NextWake(), clock_.Now() + absl::Milliseconds(1));
  clock_.Advance(absl::Milliseconds(1));
  check_.Tick();
  EXPECT_EQ(kernel_.calls(), calls + 1);
}

}  // namespace
}  // namespace spoke::netagent
