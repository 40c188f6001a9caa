// Two pods, a node, a host far away, and rules between them: for tests of what rules do with
// packets.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "lib/netlink/link.h"
#include "lib/nft/connection.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/links/kernel_links.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {

inline constexpr ip::Address kFirstV4 = ip::Address::V4(0x0A000107);   // 10.0.1.7
inline constexpr ip::Address kSecondV4 = ip::Address::V4(0x0A000108);  // 10.0.1.8
inline constexpr ip::Address kFirstV6 = ip::Address::V6(0xFD00'0000'0000'0001, 7);
inline constexpr ip::Address kSecondV6 = ip::Address::V6(0xFD00'0000'0000'0001, 8);
inline constexpr ip::Address kFarV4 = ip::Address::V4(0xCB007105);  // 203.0.113.5

inline nft::LoadPayload SourceV4(nft::Register to) { return {nft::Header::kNetwork, 12, 4, to}; }
inline nft::LoadPayload DestinationV4(nft::Register to) {
  return {nft::Header::kNetwork, 16, 4, to};
}
inline nft::LoadPayload SourcePort(nft::Register to) { return {nft::Header::kTransport, 0, 2, to}; }

inline std::string Output(const std::string& command) {
  std::string output;
  FILE* const pipe = ::popen(command.c_str(), "re");  // NOLINT(cert-env33-c): fixed text.
  if (pipe == nullptr) return output;
  std::array<char, 4096> part{};
  size_t got = 0;
  while ((got = std::fread(part.data(), 1, part.size(), pipe)) > 0) output.append(part.data(), got);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return output;
}

inline void OutputIn(const netns::Netns& netns, const std::string& command) {
  EXPECT_TRUE(netns
                  .Run([&] {
                    Output(command);
                    return absl::OkStatus();
                  })
                  .ok());
}

class NftTest : public testing::Test {
 protected:
  void SetUp() override {
    node_ = NodeWorld::Make();
    if (node_ == nullptr) {
      // A skip must not pass for a success.
      ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
      GTEST_SKIP() << "cannot make network namespaces";
    }
    links_ = KernelLinks::Create().value();
    tables_.emplace(nft::Connection::Open().value());
    first_ = std::make_unique<PodNetns>();
    second_ = std::make_unique<PodNetns>();
    first_link_ = Attach("first", {kFirstV4, kFirstV6}, *first_);
    second_link_ = Attach("second", {kSecondV4, kSecondV6}, *second_);
    // A host behind the fabric, which sends everything to the node.
    OutputIn(node_->fabric(),
             fmt::format("ip addr add {0}/32 dev lo && ip route add {1} dev fabric && "
                         "ip neigh add {1} lladdr {2} dev fabric nud permanent && "
                         "ip route add default via {1} dev fabric onlink",
                         kFarV4.ToString(), kNodeV4.ToString(), node_->nic().mac.ToString()));
    Do(nft::AddTable{});
    Do(nft::AddChain{{.name = "forward", .base = nft::BaseHook{.priority = -150}}});
  }

  std::string Attach(const std::string& container, std::vector<ip::Address> addresses,
                     PodNetns& pod) {
    const AttachSpec spec = PlanAttach({container, "eth0"}, std::move(addresses), 1500).value();
    EXPECT_TRUE(netagent::Attach(*links_, spec, pod.fd()).ok());
    return spec.host_link;
  }

  // Collects, and applies.
  void Do(nft::Change change) { Do(kSpokeTable, std::move(change)); }
  void Do(const nft::TableKey& table, nft::Change change) { steps_.Add(table, std::move(change)); }
  void Commit() {
    const absl::Status status = tables_->Apply(std::exchange(steps_, {}));
    ASSERT_TRUE(status.ok()) << status;
  }
  void Rule(std::vector<nft::Expression> expressions, const std::string& comment = "") {
    Do(nft::AddRule{
        {.chain = "forward", .expressions = std::move(expressions), .comment = comment}});
  }

  uint64_t PacketsOf(const std::string& comment, const nft::TableKey& table = kSpokeTable) {
    const auto rules = tables_->ReadRules(table).value();
    for (const nft::RuleReading& rule : rules) {
      if (rule.comment == comment) return rule.packets;
    }
    ADD_FAILURE() << "no rule " << comment;
    return 0;
  }

  // Returns "key packets/bytes", sorted; the key as hex.
  std::vector<std::string> Counted(const std::string& set,
                                   const nft::TableKey& table = kSpokeTable) {
    std::vector<std::string> counted;
    const auto elements = tables_->ReadSet(table, set).value();
    for (const nft::ElementReading& reading : elements) {
      std::string key;
      for (const uint8_t byte : reading.element.key) key += fmt::format("{:02x}", byte);
      counted.push_back(fmt::format("{} {}/{}", key, reading.packets, reading.bytes));
    }
    std::sort(counted.begin(), counted.end());
    return counted;
  }

  // Sends one packet; returns whether it arrives.
  static bool Arrives(UdpSocket& from, UdpSocket& to, const ip::Address& address) {
    from.Connect(address, to.port());
    EXPECT_EQ(from.Send("hello"), 0);
    return to.Receive() == "hello";
  }

  uint32_t IndexOf(const std::string& link) {
    return static_cast<uint32_t>(netlink::GetLink(node_->socket(), link).value().index);
  }

  std::unique_ptr<NodeWorld> node_;
  std::unique_ptr<KernelLinks> links_;
  std::optional<nft::Connection> tables_;
  std::unique_ptr<PodNetns> first_;
  std::unique_ptr<PodNetns> second_;
  std::string first_link_;
  std::string second_link_;
  nft::Transaction steps_;
};

}  // namespace spoke::netagent
