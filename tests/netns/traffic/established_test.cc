// Tests of what becomes of open connections when their far end becomes a peer spoke, in a real
// kernel.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <utility>

#include "lib/os/unique_fd.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/connections/netlink_conntrack_table.h"
#include "tests/netns/traffic/traffic_world.h"

namespace spoke::netagent {
namespace {

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }

// The patience, which may be needed when all tests run at once.
constexpr int kPatienceMs = 5'000;

os::UniqueFd TcpSocket(const netns::Netns& netns, const ip::Address& own) {
  os::UniqueFd fd;
  const absl::Status status = netns.Run([&] {
    fd = os::UniqueFd(::socket(own.is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return fd;
}

sockaddr_storage AddressOf(const ip::Address& address, uint16_t port, socklen_t& length) {
  sockaddr_storage out{};
  const std::string text = address.ToString();
  if (address.is_v4()) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(out);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    EXPECT_EQ(::inet_pton(AF_INET, text.c_str(), &v4.sin_addr), 1);
    length = sizeof(v4);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1);
    length = sizeof(v6);
  }
  return out;
}

// An open TCP connection: which end began it makes a difference to connection tracking.
class TcpConnection {
 public:
  static constexpr uint16_t kPort = 8080;

  TcpConnection(const netns::Netns& client, const ip::Address& from, const netns::Netns& server,
                const ip::Address& to, int patience_ms = kPatienceMs) {
    const os::UniqueFd listener = TcpSocket(server, to);
    socklen_t length = 0;
    sockaddr_storage address = AddressOf(to, kPort, length);
    const int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    client_ = TcpSocket(client, from);
    const timeval patience{.tv_sec = patience_ms / 1000, .tv_usec = patience_ms % 1000 * 1000};
    ::setsockopt(client_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    sockaddr_storage own = AddressOf(from, 0, length);
    EXPECT_EQ(::bind(client_.get(), reinterpret_cast<sockaddr*>(&own), length), 0);
    open_ = ::connect(client_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0;
    if (open_) server_ = os::UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  bool open() const { return open_; }
  void SendFromClient() const { EXPECT_EQ(::send(client_.get(), "x", 1, MSG_NOSIGNAL), 1); }
  void SendFromServer() const { EXPECT_EQ(::send(server_.get(), "x", 1, MSG_NOSIGNAL), 1); }
  // Returns whether something has come, or comes within the patience.
  bool ClientHas(int patience_ms = kPatienceMs) const { return Has(client_, patience_ms); }
  bool ServerHas(int patience_ms = kPatienceMs) const { return Has(server_, patience_ms); }
  bool Talks() const {
    SendFromClient();
    SendFromServer();
    return ClientHas() && ServerHas();
  }

 private:
  static bool Has(const os::UniqueFd& fd, int patience_ms) {
    pollfd wait{.fd = fd.get(), .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, patience_ms) != 1) return false;
    char byte = 0;
    return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 1;
  }

  os::UniqueFd client_;
  os::UniqueFd server_;
  bool open_ = false;
};

struct Family {
  const char* pod;
  const char* peer;     // The peer that becomes a peer spoke's.
  const char* allowed;  // The address that does not.
};
constexpr Family kFamilies[] = {{"10.0.1.7", "10.9.0.5", "8.8.8.8"},
                                {"fd00:0:0:1::7", "fd00:9::5", "2001:db8::8"}};

// The node tracks connections, as it does with any egress policy.
Policy Before() {
  Policy policy{.version = 1};
  policy.entries["ClusterNetwork/main"] = {
      .key = "ClusterNetwork/main",
      .bytes = {},
      .value = policy::ClusterNetwork{.cluster = policy::Blocks({"10.0.0.0/16", "fd00::/32"})}};
  policy.entries["EgressPolicy/routed"] = {
      .key = "EgressPolicy/routed",
      .bytes = {},
      .value = policy::EgressPolicy{.destination_cidrs = policy::Blocks({"203.0.113.0/24"}),
                                    .mode = policy::EgressMode::kRouted}};
  return policy;
}

Policy Isolated(bool keep) {
  Policy policy = Before();
  policy.version = 2;
  policy.entries["ClusterNetwork/main"].value = policy::ClusterNetwork{
      .cluster = policy::Blocks({"10.0.0.0/16", "fd00::/32"}),
      .peer_spoke = policy::Blocks({"10.9.0.0/16", "fd00:9::/32"}),
      .established = keep ? policy::Established::kKeep : policy::Established::kUnspecified};
  return policy;
}

class EstablishedTest : public TrafficWorldTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    TrafficWorldTest::SetUp();
    if (node_ == nullptr) return;
    auto table = NetlinkConntrackTable::Open();
    ASSERT_TRUE(table.ok()) << table.status();
    table_ = *std::move(table);
    Begin(GetParam(), Before());
    AddPod(pod_, "a", {A(kFamilies[0].pod), A(kFamilies[1].pod)});
    for (const Family& family : kFamilies) {
      AddRemote(A(family.peer));
      AddRemote(A(family.allowed));
    }
  }
  // Puts a policy in force as the agent does it: rules first, then what they leave.
  ConntrackTable::CutOutcome PutInForce(const Policy& policy) {
    const absl::Status status = traffic_->OnPolicy(policy);
    EXPECT_TRUE(status.ok()) << status;
    return table_->Cut(traffic_->Cuts(), ConntrackTable::Act::kCut);
  }
  TcpConnection FromPod(const Family& family, const char* to, int patience_ms = kPatienceMs) {
    return {pod_.netns(), A(family.pod), node_->fabric(), A(to), patience_ms};
  }
  TcpConnection ToPod(const Family& family, const char* from, int patience_ms = kPatienceMs) {
    return {node_->fabric(), A(from), pod_.netns(), A(family.pod), patience_ms};
  }
  uint64_t Dropped() {
    TrafficTotals totals = Read();
    return totals.drops["peer-spoke-sent"].packets + totals.drops["peer-spoke-received"].packets;
  }
  // Sends by `send` until a packet of it has been dropped: TCP sends again what gets no answer.
  template <typename Send>
  void ExpectDropped(const Send& send) {
    const uint64_t before = Dropped();
    send();
    for (int i = 0; i < kPatienceMs / 10 && Dropped() == before; ++i) ::poll(nullptr, 0, 10);
    EXPECT_GT(Dropped(), before);
  }

  PodNetns pod_;
  std::unique_ptr<NetlinkConntrackTable> table_;
};

TEST_P(EstablishedTest, EndsWhenThePolicyForbidsItAndGoesOnWhereItDoesNot) {
  for (const Family& family : kFamilies) {
    SCOPED_TRACE(family.pod);
    PutInForce(Before());
    const TcpConnection forbidden = FromPod(family, family.peer);
    const TcpConnection inbound = ToPod(family, family.peer);
    const TcpConnection allowed = FromPod(family, family.allowed);
    ASSERT_TRUE(forbidden.Talks());
    ASSERT_TRUE(inbound.Talks());
    ASSERT_TRUE(allowed.Talks());

    const CutsByRule would =
        table_->Cut(traffic_->CutsOf(Isolated(false)).value(), ConntrackTable::Act::kCount).found;
    EXPECT_EQ(would.peer_spoke, 2U);
    EXPECT_GE(would.connections, 3U);
    ASSERT_TRUE(forbidden.Talks()) << "counting ends nothing";

    const auto outcome = PutInForce(Isolated(false));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.ended, 2U);
    for (const TcpConnection* connection : {&forbidden, &inbound}) {
      ExpectDropped([&] { connection->SendFromClient(); });
      ExpectDropped([&] { connection->SendFromServer(); });
      EXPECT_FALSE(connection->ClientHas(0));
      EXPECT_FALSE(connection->ServerHas(0));
    }
    EXPECT_EQ(table_->Cut(traffic_->Cuts(), ConntrackTable::Act::kCount).found.peer_spoke, 0U)
        << "nor does a packet that is sent again bring the entry back";
    EXPECT_TRUE(allowed.Talks());
  }
}

TEST_P(EstablishedTest, GoesOnWhereThePolicySaysSoAndNothingNewBegins) {
  for (const Family& family : kFamilies) {
    SCOPED_TRACE(family.pod);
    PutInForce(Before());
    const TcpConnection outbound = FromPod(family, family.peer);
    const TcpConnection inbound = ToPod(family, family.peer);
    ASSERT_TRUE(outbound.Talks());
    ASSERT_TRUE(inbound.Talks());
    EXPECT_EQ(PutInForce(Isolated(true)).ended, 0U);
    EXPECT_TRUE(outbound.Talks());
    EXPECT_TRUE(inbound.Talks());
    // The time for a packet that must not come; that its first packet is dropped says more than
    // that time passes.
    constexpr int kAMomentMs = 50;
    ExpectDropped([&] { EXPECT_FALSE(FromPod(family, family.peer, kAMomentMs).open()); });
    ExpectDropped([&] { EXPECT_FALSE(ToPod(family, family.peer, kAMomentMs).open()); });
    EXPECT_TRUE(outbound.Talks());
    // This is so until a policy comes that does not.
    EXPECT_EQ(PutInForce(Isolated(false)).ended, 2U);
    ExpectDropped([&] { outbound.SendFromClient(); });
    EXPECT_FALSE(outbound.ServerHas(0));
  }
}

INSTANTIATE_TEST_SUITE_P(Path, EstablishedTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Fast" : "Slow"; });

}  // namespace
}  // namespace spoke::netagent
