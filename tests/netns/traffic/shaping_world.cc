#include "tests/netns/traffic/shaping_world.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/os/unique_fd.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {

int ShellStatus(const netns::Netns& netns, const std::string& command) {
  int result = -1;
  const absl::Status status = netns.Run([&] {
    // A child has the namespace of the thread that forks it.
    result = std::system(command.c_str());  // NOLINT(cert-env33-c): fixed commands.
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

Child::Child(const netns::Netns& netns, const std::string& command) {
  const absl::Status status = netns.Run([&] {
    pipe_ = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c): fixed commands.
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok() && pipe_ != nullptr) << status;
}

Child::~Child() {
  if (pipe_ != nullptr) ::pclose(pipe_);
}

void Child::Await(const std::string& text) {
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), pipe_) != nullptr) {
    if (std::string(line.data()).find(text) != std::string::npos) return;
  }
  ADD_FAILURE() << "a child ended without saying: " << text;
}

std::string Child::Read() {
  std::string all;
  std::array<char, 4096> part{};
  while (std::fgets(part.data(), part.size(), pipe_) != nullptr) all += part.data();
  return all;
}

Stream::Stream(const netns::Netns& fabric, const ShapedPod& pod, const ip::Address& far, Way way,
               uint16_t port) {
  server_ = std::make_unique<Child>(
      fabric, fmt::format("exec timeout 20 iperf3 -s -1 --forceflush -B {} -p {} 2>&1",
                          far.ToString(), port));
  server_->Await("listening");
  client_ = std::make_unique<Child>(
      pod.netns.netns(), fmt::format("exec timeout 20 iperf3 -c {} -B {} -p {} -O 1 -t 2 -J{} 2>&1",
                                     far.ToString(), (far.is_v4() ? pod.v4 : pod.v6).ToString(),
                                     port, way == Way::kDownload ? " -R" : ""));
}

double Stream::Mbit() {
  const std::string text = client_->Read();
  const auto report = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer rate("/end/sum_received/bits_per_second");
  if (report.is_discarded() || !report.contains(rate)) {
    ADD_FAILURE() << "iperf3 says: " << text.substr(0, 500);
    return 0;
  }
  return report.at(rate).get<double>() / 1e6;
}

namespace {

// A TCP socket of the namespace that does not block.
os::UniqueFd TcpIn(const netns::Netns& netns, ip::Family family) {
  os::UniqueFd fd;
  const absl::Status status = netns.Run([&] {
    fd = os::UniqueFd(::socket(family == ip::Family::kV4 ? AF_INET : AF_INET6,
                               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok() && fd.valid()) << status;
  return fd;
}

// A socket address of either family.
struct Endpoint {
  Endpoint(const ip::Address& address, uint16_t port) {
    v6.sin6_family = address.is_v4() ? AF_INET : AF_INET6;
    v6.sin6_port = htons(port);
    if (address.is_v4()) {
      v4.sin_addr.s_addr = htonl(static_cast<uint32_t>(address.low()));
      size = sizeof(v4);
    } else {
      ::inet_pton(AF_INET6, address.ToString().c_str(), &v6.sin6_addr);
    }
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&v6); }

  union {
    sockaddr_in v4;
    sockaddr_in6 v6 = {};
  };
  socklen_t size = sizeof(sockaddr_in6);
};

}  // namespace

double BulkMbit(const Bulk& bulk) {
  constexpr uint16_t kPort = 5300;
  constexpr absl::Duration kPatience = absl::Seconds(3);
  const int one = 1;
  const os::UniqueFd listener = TcpIn(bulk.fabric, bulk.listen.family());
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  const Endpoint here(bulk.listen, kPort);
  EXPECT_EQ(::bind(listener.get(), here.get(), here.size), 0) << std::strerror(errno);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  const os::UniqueFd client = TcpIn(bulk.pod, bulk.target.family());
  const Endpoint there(bulk.target, kPort);
  EXPECT_TRUE(::connect(client.get(), there.get(), there.size) == 0 || errno == EINPROGRESS)
      << std::strerror(errno);
  os::UniqueFd server;
  for (const absl::Time end = absl::Now() + kPatience; !server.valid() && absl::Now() < end;) {
    server =
        os::UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }
  EXPECT_TRUE(server.valid()) << "nobody connects to " << bulk.target.ToString();
  if (!server.valid()) return 0;
  const bool up = bulk.way == Way::kUpload;
  const int from = up ? client.get() : server.get();
  const int to = up ? server.get() : client.get();
  std::vector<char> buffer(1U << 18);
  double bytes = 0;
  const absl::Time begin = absl::Now();
  while (absl::Now() < begin + bulk.window) {
    static_cast<void>(::send(from, buffer.data(), buffer.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    const ssize_t got = ::recv(to, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) bytes += static_cast<double>(got);
  }
  // What waits goes with the connection, so that it is not in the way of the next one.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  for (const int fd : {from, to}) {
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  return bytes * 8 / 1e6 / absl::ToDoubleSeconds(absl::Now() - begin);
}

void ShapingWorldTest::SetUp() {
  NodeLinksTest::SetUp();
  if (node_ == nullptr) return;
  const std::string mac = node_->nic().mac.ToString();
  ASSERT_EQ(
      ShellStatus(node_->fabric(),
                  fmt::format("ip link set fabric up && "
                              "ip neigh replace {0} lladdr {2} dev fabric nud permanent && "
                              "ip -6 neigh replace {1} lladdr {2} dev fabric nud permanent && "
                              "ip route replace 10.0.1.0/24 via {0} dev fabric onlink && "
                              "ip -6 route replace fd00:0:0:1::/64 via {1} dev fabric onlink",
                              kNodeV4.ToString(), kNodeV6.ToString(), mac)),
      0);
  for (const ip::Address& address : {kInternetV4, kInternetV6, kClusterV4, kClusterV6}) {
    ASSERT_EQ(ShellStatus(node_->fabric(),
                          fmt::format("ip address add {}/{} dev lo{}", address.ToString(),
                                      address.bits(), address.is_v4() ? "" : " nodad")),
              0);
    if (!address.is_v4()) AwaitLocal(node_->fabric(), address);
  }
  Begin();
}

void ShapingWorldTest::Begin() {
  shaper_.reset();
  shaper_ = TcShaper::Create().value();
}

std::unique_ptr<ShapedPod> ShapingWorldTest::Attach(uint8_t number, const AttachOptions& options) {
  auto pod = std::make_unique<ShapedPod>();
  pod->v4 = ip::Address::V4(0x0A000100 + uint32_t{number});
  pod->v6 = ip::Address::V6(0xFD00'0000'0000'0001, number);
  const AttachSpec spec =
      PlanAttach({fmt::format("pod{}", number), "eth0"}, {pod->v4, pod->v6}, 1500, options).value();
  const absl::Status status = netagent::Attach(*links_, spec, pod->netns.fd());
  EXPECT_TRUE(status.ok()) << status;
  pod->host_link = spec.host_link;
  pod->host_index = ::if_nametoindex(spec.host_link.c_str());
  AwaitLocal(pod->netns.socket(), pod->v6);
  return pod;
}

double ShapingWorldTest::Mbit(const ShapedPod& pod, const ip::Address& far, Way way) {
  return Stream(node_->fabric(), pod, far, way).Mbit();
}

void ShapingWorldTest::MustApply(const ShapingTables& tables) {
  const absl::Status status = shaper_->Apply(tables);
  ASSERT_TRUE(status.ok()) << status;
}

ShapeClass ShapingWorldTest::Inner(ShapeClassId id, ShapeClassId parent, uint64_t mbit) {
  const units::ByteRate rate(mbit * 125'000 * 1514 / 1448);
  return {.id = id,
          .parent = parent,
          .rate = rate,
          .ceil = rate,
          .burst = units::ByteCount(65'536),
          .quantum = units::ByteCount(65'536)};
}

ShapeClass ShapingWorldTest::Leaf(ShapeClassId id, ShapeClassId parent, uint64_t mbit) {
  ShapeClass leaf = Inner(id, parent, mbit);
  leaf.queue = units::ByteCount(leaf.rate.count() / 20);
  return leaf;
}

ShapingTables ShapingWorldTest::Scopes(uint64_t total_mbit) {
  ShapingTables tables;
  const auto v6 = [](uint64_t high) { return ip::Address::V6(high, ~uint64_t{0}); };
  tables.scopes = {
      {ip::Address::V4(0x01000000), ip::Address::V4(0x09FFFFFF), kInternet},
      {ip::Address::V6(0x2000'0000'0000'0000, 0), v6(0x3FFF'FFFF'FFFF'FFFF), kInternet}};
  for (auto& tree : tables.trees) tree = {Inner(kTop, 0, total_mbit)};
  return tables;
}

void ShapingWorldTest::AddFlows(const ShapedPod& pod, ShapeClassId id, ShapingTables& tables) {
  for (const TrafficDirection direction : kBothDirections) {
    tables.flows.push_back(
        {.host_index = pod.host_index, .scope = kInternet, .direction = direction, .class_id = id});
  }
}

ShapingTables ShapingWorldTest::Limit(const ShapedPod& pod, uint64_t mbit) {
  ShapingTables tables = Scopes(10'000);
  for (auto& tree : tables.trees) tree.push_back(Leaf(0x10, kTop, mbit));
  AddFlows(pod, 0x10, tables);
  return tables;
}

ShapeClassReading ShapingWorldTest::ClassRead(TrafficDirection direction, ShapeClassId id) {
  const auto reading = shaper_->Read();
  EXPECT_TRUE(reading.ok()) << reading.status();
  if (!reading.ok()) return {};
  for (const ShapeClassReading& one : reading->classes) {
    if (one.direction == direction && one.id == id) return one;
  }
  ADD_FAILURE() << "class " << id << " is not read";
  return {};
}

ShapedFlowReading ShapingWorldTest::FlowRead(const ShapedPod& pod, TrafficDirection direction) {
  const auto reading = shaper_->Read();
  EXPECT_TRUE(reading.ok()) << reading.status();
  if (!reading.ok()) return {};
  for (const ShapedFlowReading& one : reading->flows) {
    if (one.direction == direction && one.host_index == pod.host_index) return one;
  }
  ADD_FAILURE() << "the flow of " << pod.host_link << " is not read";
  return {};
}

}  // namespace spoke::netagent
