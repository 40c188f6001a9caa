#include "netagent/links/testing/fake_kernel.h"

#include "netagent/links/testing/router_contract.h"

namespace spoke::netagent {
namespace {

class FakeWorld final : public RouterWorld {
 public:
  FakeWorld() { kernel_.SetNic(ExistingNic()); }

  Router& router() override { return kernel_; }
  os::UniqueFd NewPodNetns() override { return kernel_.NewPodNetns(); }
  os::UniqueFd NodeNetns() override { return kernel_.NodeNetns(); }
  void AddPodLink(int pod_netns, const std::string& name) override {
    kernel_.AddPodLink(pod_netns, name);
  }
  Nic ExistingNic() override {
    return {"eth0", {{2, 0, 0, 0, 0, 1}}, 1500, {ip::Address::V4(0x0A000004)}};
  }
  std::vector<ip::Address> Unreachable() override { return kernel_.Unreachable(); }
  std::map<ip::Address, uint32_t> SourceTables() override { return kernel_.SourceTables(); }

 private:
  FakeKernel kernel_;
};

INSTANTIATE_TEST_SUITE_P(Routers, RouterContract,
                         testing::Values(RouterWorldFactory{
                             "Fake", [] { return std::make_unique<FakeWorld>(); }}),
                         [](const auto& test) { return test.param.name; });

AttachSpec PodSpec() {
  return PlanAttach({"pod", "eth0"}, {ip::Address::V4(0x0A000107)}, 1500).value();
}

TEST(FakeKernel, TheNthCallFailsAndChangesNothing) {
  FakeKernel kernel;
  const os::UniqueFd pod = kernel.NewPodNetns();
  kernel.FailCall(2, absl::InternalError("injected"));
  EXPECT_TRUE(kernel.ListAttached().ok());
  EXPECT_EQ(kernel.Attach(PodSpec(), pod.get()), absl::InternalError("injected"));
  EXPECT_FALSE(kernel.Attached(PodSpec().host_link).has_value());
  EXPECT_TRUE(kernel.Attach(PodSpec(), pod.get()).ok());
  EXPECT_EQ(kernel.Attached(PodSpec().host_link), PodSpec());
  EXPECT_EQ(kernel.calls(), 3);
}

TEST(FakeKernel, OneLinkIsRefusedUntilTheFaultIsTakenBack) {
  FakeKernel kernel;
  const os::UniqueFd pod = kernel.NewPodNetns();
  kernel.FailAttach(PodSpec().host_link, absl::ResourceExhaustedError("injected"));
  EXPECT_TRUE(absl::IsResourceExhausted(kernel.Attach(PodSpec(), pod.get())));
  EXPECT_TRUE(absl::IsResourceExhausted(kernel.Attach(PodSpec(), pod.get())));
  const auto other = PlanAttach({"pod", "net1"}, {ip::Address::V6(1, 1)}, 1500).value();
  EXPECT_TRUE(kernel.Attach(other, pod.get()).ok());
  kernel.FailAttach(PodSpec().host_link, absl::OkStatus());
  EXPECT_TRUE(kernel.Attach(PodSpec(), pod.get()).ok());
}

TEST(FakeKernel, ALinkGoesWithItsPod) {
  FakeKernel kernel;
  const os::UniqueFd pod = kernel.NewPodNetns();
  ASSERT_TRUE(kernel.Attach(PodSpec(), pod.get()).ok());
  kernel.DestroyPodNetns(pod.get());
  EXPECT_TRUE(kernel.ListAttached()->empty());
  EXPECT_TRUE(absl::IsFailedPrecondition(kernel.Attach(PodSpec(), pod.get())));
}

TEST(FakeKernel, WhatIsHeldStaysDeferredAndInTheWay) {
  FakeKernel kernel;
  const os::UniqueFd pod = kernel.NewPodNetns();
  ASSERT_TRUE(kernel.Attach(PodSpec(), pod.get()).ok());
  kernel.HoldDeferred(true);
  EXPECT_TRUE(kernel.Detach(PodSpec().host_link).ok());
  EXPECT_EQ(kernel.Deferred(), std::vector<std::string>{PodSpec().host_link});
  EXPECT_TRUE(absl::IsUnavailable(kernel.FinishDetaching()));
  EXPECT_TRUE(absl::IsUnavailable(kernel.Attach(PodSpec(), pod.get())));
  kernel.HoldDeferred(false);
  EXPECT_TRUE(kernel.Attach(PodSpec(), pod.get()).ok());
  EXPECT_TRUE(kernel.Deferred().empty());
}

TEST(FakeKernel, ACopyOfADescriptorIsTheSameNamespace) {
  FakeKernel kernel;
  const os::UniqueFd pod = kernel.NewPodNetns();
  const os::UniqueFd copy(::fcntl(pod.get(), F_DUPFD_CLOEXEC, 0));
  ASSERT_TRUE(kernel.Attach(PodSpec(), copy.get()).ok());
  kernel.DestroyPodNetns(pod.get());
  EXPECT_TRUE(kernel.ListAttached()->empty());
}

}  // namespace
}  // namespace spoke::netagent
