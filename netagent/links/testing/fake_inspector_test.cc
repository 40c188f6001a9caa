#include "netagent/links/testing/fake_inspector.h"

#include <algorithm>

#include "fmt/core.h"
#include "netagent/links/testing/inspector_contract.h"

namespace spoke::netagent {
namespace {

class FakeWorld final : public InspectorWorld {
 public:
  Inspector& inspector() override { return inspector_; }
  os::UniqueFd NewPodNetns() override { return FakeInspector::NewPodNetns(); }
  void Build(const AttachSpec& spec, int pod_netns) override {
    specs_[pod_netns] = spec;
    inspector_.Build(spec, pod_netns);
  }
  void Remove(const AttachSpec& spec) override { inspector_.Remove(spec.host_link); }
  void Break(const AttachSpec& spec, int, Part part, const ip::Address& address) override;
  void AddForeignRoute(const AttachSpec&, const ip::Address& address) override {
    inspector_.AddForeignRoute(address);
  }
  std::vector<std::string> Snapshot(int pod_netns) override;

 private:
  FakeInspector inspector_;
  std::map<int, AttachSpec> specs_;
};

void FakeWorld::Break(const AttachSpec& spec, int, Part part, const ip::Address& address) {
  HostSide& host = inspector_.host(spec.host_link);
  PodSide& pod = inspector_.pod(spec.host_link);
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
      break;
    case Part::kHostMtu:
      host.mtu = 1400;
      break;
    case Part::kHostSetting:
      host.settings[8] = 0;
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
  const std::string& link = specs_.at(pod_netns).host_link;
  const HostSide& host = inspector_.host(link);
  const PodSide& pod = inspector_.pod(link);
  std::vector<std::string> lines = {
      fmt::format("host {} {} {}", host.up, host.mac.ToString(), host.mtu),
      fmt::format("pod {} {} {} {}", pod.name, pod.up, pod.mac.ToString(), pod.mtu)};
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

INSTANTIATE_TEST_SUITE_P(Inspectors, InspectorContract,
                         testing::Values(InspectorWorldFactory{
                             "Fake", [] { return std::make_unique<FakeWorld>(); }}),
                         [](const auto& test) { return test.param.name; });

TEST(FakeInspector, FailsAsTold) {
  FakeInspector inspector;
  const os::UniqueFd netns = FakeInspector::NewPodNetns();
  const AttachSpec spec = PlanAttach({"pod", "eth0"}, {ip::Address::V4(0x0A000107)}, 1500).value();
  inspector.Build(spec, netns.get());
  inspector.FailReads(absl::UnavailableError("changing"));
  EXPECT_TRUE(absl::IsUnavailable(inspector.ReadHostSides().status()));
  inspector.FailReads(absl::OkStatus());
  EXPECT_TRUE(inspector.ReadHostSides().ok());
  inspector.FailMending(Part::kHostUp, absl::InternalError("no"));
  EXPECT_TRUE(
      absl::IsInternal(inspector.Mend(spec, {{Part::kHostUp, "", std::nullopt}}, std::nullopt)));
  EXPECT_EQ(inspector.mends(), 1);
}

}  // namespace
}  // namespace spoke::netagent
