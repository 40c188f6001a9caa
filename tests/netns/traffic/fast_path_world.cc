#include "tests/netns/traffic/fast_path_world.h"

#include <net/if.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "lib/os/file.h"
#include "netagent/links/kernel_links.h"

namespace spoke::netagent {

uint64_t Forwarded() {
  uint64_t total = 0;
  const std::string v4 = os::ReadFile("/proc/thread-self/net/snmp").value();
  std::istringstream lines(v4);
  std::string names, values;
  std::getline(lines, names);
  std::getline(lines, values);
  std::istringstream name(names), value(values);
  for (std::string key, number; name >> key && value >> number;) {
    if (key == "ForwDatagrams") total += std::stoull(number);
  }
  std::istringstream v6(os::ReadFile("/proc/thread-self/net/snmp6").value());
  for (std::string key, number; v6 >> key >> number;) {
    if (key == "Ip6OutForwDatagrams") total += std::stoull(number);
  }
  return total;
}

void FastPathTest::SetUp() {
  NodeLinksTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  GiveTheFabricAddresses();
  Begin();
  one_ = Attach("one", {kFirstV4, kFirstV6});
  two_ = Attach("two", {kSecondV4, kSecondV6});
}

void FastPathTest::GiveTheFabricAddresses() {
  const absl::Status status = node_->fabric().Run([] {
    for (const char* command :
         {"ip address add 10.0.1.1/24 dev fabric",
          "ip address add fd00:0:0:1::1/64 dev fabric nodad", "ip route add 10.0.1.7 via 10.0.1.4",
          "ip route add fd00:0:0:1::7 via fd00:0:0:1::4"}) {
      EXPECT_EQ(std::system(command), 0) << command;  // NOLINT(cert-env33-c): fixed commands.
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
}

void FastPathTest::Begin() {
  fast_ = BpfFastPath::Create().value();
  const absl::Status status = fast_->Configure({.uplink = kNodeDevice, .hops = Hops()});
  ASSERT_TRUE(status.ok()) << status;
}

std::vector<FastHop> FastPathTest::Hops() {
  const auto v4 = [](uint32_t number) { return ip::Address::V4(number); };
  const ip::Address before = ip::Address::V6(kNodeV6.high(), kNodeV6.low() - 1);
  const ip::Address after = ip::Address::V6(kNodeV6.high(), kNodeV6.low() + 1);
  return {{v4(0x0A000000), v4(0x0A000103), std::nullopt},
          {v4(0x0A000105), v4(0x0A62FFFF), std::nullopt},
          {v4(0x0A640000), v4(0x0AFFFFFF), std::nullopt},
          {ip::Address::V6(0xFD00'0000'0000'0000, 0), before, std::nullopt},
          {after, ip::Address::V6(0xFDFF'FFFF'FFFF'FFFF, ~uint64_t{0}), std::nullopt}};
}

std::unique_ptr<Attached> FastPathTest::Attach(const std::string& name,
                                               std::vector<ip::Address> addresses) {
  auto attached = std::make_unique<Attached>(addresses);
  const AttachSpec spec = PlanAttach({name, "eth0"}, std::move(addresses), 1500).value();
  EXPECT_TRUE(netagent::Attach(*links_, spec, attached->netns.fd()).ok());
  attached->pod.host_link = spec.host_link;
  attached->pod.pod_mac = spec.pod_mac;
  attached->pod.host_index = ::if_nametoindex(spec.host_link.c_str());
  const auto id = fast_->AddPod(attached->pod, PodWay::kFast);
  EXPECT_TRUE(id.ok()) << id.status();
  attached->id = id.value_or(0);
  for (const ip::Address& address : attached->pod.addresses) {
    if (!address.is_v4()) AwaitLocal(attached->netns.socket(), address);
  }
  return attached;
}

FastCounts FastPathTest::CountsOf(uint64_t id) {
  const auto readings = fast_->Read().value();
  for (const FastPodReading& reading : readings) {
    if (reading.id == id) return reading.counts;
  }
  ADD_FAILURE() << "pod " << id << " is not read";
  return {};
}

std::vector<uint64_t> FastPathTest::OverShare() {
  std::vector<uint64_t> ids;
  const auto readings = fast_->Read().value();
  for (const FastPodReading& reading : readings) {
    if (reading.over_share) ids.push_back(reading.id);
  }
  return ids;
}

}  // namespace spoke::netagent
