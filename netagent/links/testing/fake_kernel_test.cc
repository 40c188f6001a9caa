#include "netagent/links/testing/fake_kernel.h"

#include <fcntl.h>

#include <algorithm>

#include "fmt/core.h"
#include "netagent/links/testing/links_contract.h"

namespace spoke::netagent {
namespace {

class FakeWorld final : public LinksWorld {
 public:
  FakeWorld() { kernel_.SetNic(ExistingNic()); }

  Links& links() override { return kernel_; }
  os::UniqueFd NewPodNetns() override { return kernel_.NewPodNetns(); }
  os::UniqueFd NodeNetns() override { return kernel_.NodeNetns(); }
  void AddPodLink(int pod_netns, const std::string& name) override {
    kernel_.AddPodLink(pod_netns, name);
  }
  absl::Status FinishDetaching() override { return kernel_.FinishDetaching(); }
  void Remove(const AttachSpec& spec) override { kernel_.Remove(spec.host_link); }
  void Break(const AttachSpec& spec, int, Part part, const ip::Address& address) override;
  void AddForeignRoute(const AttachSpec&, const ip::Address& address) override {
    kernel_.AddForeignRoute(address);
  }
  std::vector<std::string> Snapshot(int pod_netns) override;
  Nic ExistingNic() override {
    return {"eth0", {{2, 0, 0, 0, 0, 1}}, 1500, {ip::Address::V4(0x0A000004)}};
  }
  std::vector<ip::Address> Unreachable() override { return kernel_.Unreachable(); }
  std::map<ip::Address, uint32_t> SourceTables() override { return kernel_.SourceTables(); }

 private:
  FakeKernel kernel_;
};

void FakeWorld::Break(const AttachSpec& spec, int, Part part, const ip::Address& address) {
  HostSide& host = kernel_.host(spec.host_link);
  PodSide& pod = kernel_.pod(spec.host_link);
  const auto is_family = [&](const PermanentNeighbour& entry) {
    return entry.address.family() == address.family();
  };
  switch (part) {
    case Part::kHostUp:
      host.up = false;
      host.neighbours.clear();
      host.routes.clear();
      break;
    case Part::kHostMac:
      host.mac.octets[5] ^= 1U;
      host.neighbours.clear();
      break;
    case Part::kHostMtu:
      host.mtu = 1400;
      break;
    case Part::kHostSetting:
      host.settings[8] = 0;
      break;
    case Part::kHostRouters:
      host.accept_ra = 2;
      host.disable_ipv6 = 0;
      break;
    case Part::kHostNeighbour:
      std::erase_if(host.neighbours, is_family);
      break;
    case Part::kHostRoute:
      std::erase(host.routes, address);
      break;
    case Part::kPodUp:
      pod.up = false;
      pod.neighbours.clear();
      pod.routes.clear();
      break;
    case Part::kPodAddress:
      std::erase(pod.addresses, address);
      break;
    case Part::kPodNeighbour:
      std::erase_if(pod.neighbours, is_family);
      break;
    case Part::kPodRoute:
      std::erase_if(pod.routes, [&](const PodRoute& route) {
        return route.destination.family() == address.family();
      });
      break;
    default:
      ADD_FAILURE() << "no way to break " << NameOf(part);
  }
}

std::vector<std::string> FakeWorld::Snapshot(int pod_netns) {
  const std::string link = kernel_.HostLinkIn(FakeKernel::IdOf(pod_netns));
  const HostSide& host = kernel_.host(link);
  const PodSide& pod = kernel_.pod(link);
  std::vector<std::string> lines = {
      fmt::format("host {} {} {}", host.up, host.mac.ToString(), host.mtu),
      fmt::format("pod {} {} {} {}", pod.name, pod.up, pod.mac.ToString(), pod.mtu)};
  lines.push_back(fmt::format("accept_ra {} disable_ipv6 {}", host.accept_ra.value_or(9),
                              host.disable_ipv6.value_or(9)));
  for (const uint32_t setting : host.settings) lines.push_back(fmt::format("setting {}", setting));
  for (const auto& entry : host.neighbours) {
    lines.push_back(
        fmt::format("host neighbour {} {}", entry.address.ToString(), entry.mac.ToString()));
  }
  for (const auto& address : host.routes) lines.push_back("host route " + address.ToString());
  for (const auto& address : pod.addresses) lines.push_back("pod address " + address.ToString());
  for (const auto& entry : pod.neighbours) {
    lines.push_back(
        fmt::format("pod neighbour {} {}", entry.address.ToString(), entry.mac.ToString()));
  }
  for (const auto& route : pod.routes) {
    lines.push_back(fmt::format("pod route {} by {} in {}", route.destination.ToString(),
                                route.gateway ? route.gateway->ToString() : "link", route.table));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

INSTANTIATE_TEST_SUITE_P(Fakes, LinksContract,
                         testing::Values(LinksWorldFactory{
                             "Fake", [] { return std::make_unique<FakeWorld>(); }}),
                         [](const auto& test) { return test.param.name; });

AttachSpec PodSpec() {
  return PlanAttach({"pod", "eth0"}, {ip::Address::V4(0x0A000107)}, 1500).value();
}

TEST(FakeKernel, TheNthCallFailsAndChangesNothing) {
  FakeKernel kernel;
  const os::UniqueFd pod = kernel.NewPodNetns();
  kernel.FailCall(2, absl::InternalError("injected"));
  EXPECT_TRUE(ListAttached(kernel).ok());
  EXPECT_EQ(Attach(kernel, PodSpec(), pod.get()), absl::InternalError("injected"));
  EXPECT_FALSE(kernel.Attached(PodSpec().host_link).has_value());
  EXPECT_TRUE(Attach(kernel, PodSpec(), pod.get()).ok());
  EXPECT_EQ(kernel.Attached(PodSpec().host_link), PodSpec());
  EXPECT_EQ(kernel.calls(), 3);
}

TEST(FakeKernel, OneLinkIsRefusedUntilTheFaultIsTakenBack) {
  FakeKernel kernel;
  const os::UniqueFd pod = kernel.NewPodNetns();
  kernel.FailAttach(PodSpec().host_link, absl::ResourceExhaustedError("injected"));
  EXPECT_TRUE(absl::IsResourceExhausted(Attach(kernel, PodSpec(), pod.get())));
  EXPECT_TRUE(absl::IsResourceExhausted(Attach(kernel, PodSpec(), pod.get())));
  const auto other = PlanAttach({"pod", "net1"}, {ip::Address::V6(1, 1)}, 1500).value();
  EXPECT_TRUE(Attach(kernel, other, pod.get()).ok());
  kernel.FailAttach(PodSpec().host_link, absl::OkStatus());
  EXPECT_TRUE(Attach(kernel, PodSpec(), pod.get()).ok());
}

TEST(FakeKernel, ALinkGoesWithItsPod) {
  FakeKernel kernel;
  const os::UniqueFd pod = kernel.NewPodNetns();
  ASSERT_TRUE(Attach(kernel, PodSpec(), pod.get()).ok());
  kernel.DestroyPodNetns(pod.get());
  EXPECT_TRUE(ListAttached(kernel)->empty());
  EXPECT_TRUE(absl::IsFailedPrecondition(Attach(kernel, PodSpec(), pod.get())));
}

TEST(FakeKernel, WhatIsHeldStaysDeferredAndInTheWay) {
  FakeKernel kernel;
  const os::UniqueFd pod = kernel.NewPodNetns();
  ASSERT_TRUE(Attach(kernel, PodSpec(), pod.get()).ok());
  kernel.HoldDeferred(true);
  EXPECT_TRUE(Detach(kernel, PodSpec().host_link).ok());
  EXPECT_EQ(kernel.Deferred(), std::vector<std::string>{PodSpec().host_link});
  EXPECT_TRUE(absl::IsUnavailable(kernel.FinishDetaching()));
  EXPECT_TRUE(absl::IsUnavailable(Attach(kernel, PodSpec(), pod.get())));
  kernel.HoldDeferred(false);
  EXPECT_TRUE(Attach(kernel, PodSpec(), pod.get()).ok());
  EXPECT_TRUE(kernel.Deferred().empty());
}

TEST(FakeKernel, ACopyOfADescriptorIsTheSameNamespace) {
  FakeKernel kernel;
  const os::UniqueFd pod = kernel.NewPodNetns();
  const os::UniqueFd copy(::fcntl(pod.get(), F_DUPFD_CLOEXEC, 0));
  ASSERT_TRUE(Attach(kernel, PodSpec(), copy.get()).ok());
  kernel.DestroyPodNetns(pod.get());
  EXPECT_TRUE(ListAttached(kernel)->empty());
}

TEST(FakeKernel, FailsToReadAndToMendAsTold) {
  FakeKernel kernel;
  const os::UniqueFd pod = kernel.NewPodNetns();
  ASSERT_TRUE(Attach(kernel, PodSpec(), pod.get()).ok());
  kernel.FailReads(absl::UnavailableError("changing"));
  EXPECT_TRUE(absl::IsUnavailable(kernel.Read().status()));
  kernel.FailReads(absl::OkStatus());
  EXPECT_TRUE(kernel.Read().ok());
  kernel.FailMending(Part::kHostUp, absl::InternalError("no"));
  EXPECT_TRUE(absl::IsInternal(kernel.Apply(PodSpec(), {{.part = Part::kHostUp}}, std::nullopt)));
  EXPECT_EQ(kernel.mends(), 1);
}

TEST(FakeKernelNumbers, StandForNamespacesWithoutADescriptor) {
  FakeKernel kernel(FakeKernel::Identity::kNumber);
  const os::UniqueFd one = kernel.NewPodNetns();
  const os::UniqueFd other = kernel.NewPodNetns();
  EXPECT_NE(FakeKernel::IdOf(one.get()), FakeKernel::IdOf(other.get()));
  EXPECT_NE(FakeKernel::IdOf(one.get()), FakeKernel::IdOf(kernel.NodeNetns().get()));
  EXPECT_EQ(FakeKernel::IdOf(FakeKernel::Copy(one.get()).get()), FakeKernel::IdOf(one.get()));
  EXPECT_EQ(::fcntl(one.get(), F_GETFD), -1) << "it is no descriptor";
}

}  // namespace
}  // namespace spoke::netagent
