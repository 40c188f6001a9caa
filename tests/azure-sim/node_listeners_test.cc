// Tests that each node has a metadata service and a wireserver of its own, in its own namespace.
#include "tests/azure-sim/node_listeners.h"

#include "gmock/gmock.h"
#include "lib/netns/netns.h"
#include "lib/os/unique_fd.h"
#include "tests/azure-sim/model_for_test.h"
#include "tests/support/netns_fixture.h"

// This header comes behind the others: its macros are many.
#include <httplib.h>

namespace spoke::azure_sim {
namespace {

using testing::HasSubstr;

class NodeListenersTest : public testing_support::NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto arm = ArmModel::Build(SmallSpec(2), clock_.Now());
    ASSERT_TRUE(arm.ok()) << arm.status();
    service_ = std::make_unique<SimService>(*std::move(arm), clock_, "");
  }
  static std::string Id(int number) { return fmt::format("{}/virtualMachines/{}", kSet, number); }
  static std::string PathOf(const os::UniqueFd& netns) {
    return fmt::format("/proc/self/fd/{}", netns.get());
  }
  // Asks from inside the namespace.
  static std::string Ask(const os::UniqueFd& netns, const char* address, const std::string& path) {
    std::string body;
    const auto entered = netns::Netns::FromDescriptor(netns.get());
    EXPECT_TRUE(entered.ok());
    const absl::Status status = entered->Run([&]() -> absl::Status {
      httplib::Client client(address, 80);
      const auto got = client.Get(path, {{"Metadata", "true"}});
      body = got ? got->body : httplib::to_string(got.error());
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return body;
  }

  os::RealClock clock_;
  std::unique_ptr<SimService> service_;
};

TEST_F(NodeListenersTest, EachNodeSeesItself) {
  const os::UniqueFd first = testing_support::NewNetns();
  const os::UniqueFd second = testing_support::NewNetns();
  ASSERT_TRUE(first.valid() && second.valid());
  auto of_first = ListenOnNode(*service_, PathOf(first), Id(0));
  ASSERT_TRUE(of_first.ok()) << of_first.status();
  auto of_second = ListenOnNode(*service_, PathOf(second), Id(1));
  ASSERT_TRUE(of_second.ok()) << of_second.status();

  const std::string name = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";
  EXPECT_EQ(Ask(first, kImdsAddress, name), "pool_0");
  EXPECT_EQ(Ask(second, kImdsAddress, name), "pool_1");
  EXPECT_THAT(
      Ask(second, kWireserverAddress, "/machine/plugins?comp=nmagent&type=getinterfaceinfov1"),
      HasSubstr("10.0.0.5"));

  // Started again, it finds its addresses there.
  of_first->clear();
  EXPECT_TRUE(ListenOnNode(*service_, PathOf(first), Id(0)).ok());
}

TEST_F(NodeListenersTest, SaysWhatIsNotThere) {
  const os::UniqueFd netns = testing_support::NewNetns();
  ASSERT_TRUE(netns.valid());
  EXPECT_EQ(ListenOnNode(*service_, PathOf(netns), "/no/such").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(ListenOnNode(*service_, "/nonexistent", Id(0)).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace spoke::azure_sim
