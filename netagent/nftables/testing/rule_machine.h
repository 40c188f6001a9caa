// Does what nf_tables would do with a packet: takes transactions, and runs packets through the
// chains of a hook. It is for tests of rules as values, and knows only what ours use. References
// are checked as the kernel checks them: a transaction that names what is not there fails the test.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "lib/ip/address.h"
#include "lib/nft/ruleset.h"
#include "netagent/nftables/rule_parts.h"

namespace spoke::netagent {

// The address that masquerading translates to.
inline constexpr ip::Address kNodeAddressV4 = ip::Address::V4(0xC0000201);  // 192.0.2.1
inline constexpr ip::Address kNodeAddressV6 = ip::Address::V6(0x2001'0DB8'0000'0000, 1);

// A connection as the tracking knows it.
struct TestFlow {
  uint32_t mark = 0;
  uint32_t status = 0;
};

struct TestPacket {
  std::string in;
  std::string out;
  ip::Address source;
  ip::Address destination;
  uint8_t protocol = 6;
  uint16_t source_port = 40'000;
  uint16_t destination_port = 443;
  TestFlow* flow = nullptr;  // The flow; null: not tracked.
  uint32_t state = nft::kCtNew;
  bool reply = false;
  uint32_t in_index = 0;
  uint32_t out_index = 0;

  uint32_t mark = 0;
  uint32_t priority = 0;
  // The fate of the packet.
  bool dropped = false;
  bool rejected = false;
  bool masqueraded = false;
  std::optional<ip::Address> source_to;
  std::optional<ip::Address> destination_to;
  std::optional<uint16_t> port_to;
};

class RuleMachine {
 public:
  void Apply(const nft::Transaction& transaction) {
    for (const nft::Step& step : transaction.steps) {
      std::visit([this](const auto& change) { Do(change); }, step.change);
    }
  }

  // Runs the packet through all chains of the hook, by priority.
  void Run(nft::Hook hook, TestPacket& packet) {
    std::vector<std::pair<int32_t, std::string>> bases;
    for (const auto& [name, chain] : chains_) {
      if (!chain.base || chain.base->hook != hook) continue;
      // Translation is decided with a flow's first packet.
      const bool asked = chain.base->type != nft::ChainType::kNat ||
                         (packet.flow != nullptr && packet.state == nft::kCtNew);
      if (asked) bases.emplace_back(chain.base->priority, name);
    }
    std::sort(bases.begin(), bases.end());
    for (const auto& [priority, name] : bases) {
      registers_.fill(0xEE);
      if (!packet.dropped && !packet.rejected) RunChain(name, packet);
    }
  }

  uint64_t Counted(const std::string& counter) const {
    const auto found = counters_.find(counter);
    return found == counters_.end() ? 0 : found->second;
  }
  bool HasChain(const std::string& name) const { return chains_.contains(name); }
  bool HasSet(const std::string& name) const { return sets_.contains(name); }
  // Returns how often each key has been counted, in all sets that count.
  std::map<std::pair<std::string, nft::Bytes>, uint64_t> Seen() const {
    std::map<std::pair<std::string, nft::Bytes>, uint64_t> all;
    for (const auto& [name, held] : sets_) {
      for (const auto& [key, times] : held.seen) all[{name, key}] = times;
    }
    return all;
  }
  const std::map<std::string, uint64_t>& counters() const { return counters_; }
  size_t SizeOf(const std::string& set) const { return sets_.at(set).elements.size(); }
  std::vector<nft::RuleReading> Rules() const {
    std::vector<nft::RuleReading> all;
    for (const auto& [name, rules] : rules_) {
      for (const nft::Rule& rule : rules) all.push_back({.chain = name, .comment = rule.comment});
    }
    return all;
  }

 private:
  struct Held {
    nft::Set set;
    std::map<nft::Bytes, nft::Element> elements;
    std::map<nft::Bytes, uint64_t> seen;  // How often each element that counts has been counted.
  };
  enum class Outcome { kNextRule, kEndOfRule, kEndOfChain, kEnd };

  void Do(const nft::AddTable&) {}
  void Do(const nft::DeleteTable&) { ASSERT_TRUE(false) << "the table has more in it than this"; }
  void Do(const nft::AddChain& change) {
    const auto [at, fresh] = chains_.emplace(change.chain.name, change.chain);
    EXPECT_TRUE(fresh || at->second == change.chain) << change.chain.name;
  }
  void Do(const nft::FlushChain& change) {
    EXPECT_TRUE(chains_.contains(change.chain)) << change.chain;
    rules_.erase(change.chain);
  }
  void Do(const nft::DeleteChain& change) {
    EXPECT_TRUE(chains_.contains(change.chain)) << change.chain;
    EXPECT_FALSE(rules_.contains(change.chain)) << change.chain;
    EXPECT_FALSE(IsNamed(change.chain)) << change.chain << " is in use";
    chains_.erase(change.chain);
  }
  void Do(const nft::AddRule& change) {
    EXPECT_TRUE(chains_.contains(change.rule.chain)) << change.rule.chain;
    for (const nft::Expression& expression : change.rule.expressions) Check(expression);
    CheckKeys(change.rule);
    rules_[change.rule.chain].push_back(change.rule);
  }
  void Do(const nft::DeleteRule& change) { ADD_FAILURE() << "rules of " << change.chain; }
  void Do(const nft::AddSet& change) {
    const auto [at, fresh] = sets_.emplace(change.set.name, Held{.set = change.set});
    EXPECT_TRUE(fresh || at->second.set == change.set) << change.set.name;
  }
  void Do(const nft::DeleteSet& change) {
    EXPECT_FALSE(IsLookedInto(change.set)) << change.set << " is in use";
    EXPECT_EQ(sets_.erase(change.set), 1U) << change.set;
  }
  void Do(const nft::AddElements& change) {
    ASSERT_TRUE(sets_.contains(change.set)) << change.set;
    for (const nft::Element& element : change.elements) {
      if (element.verdict && !element.verdict->chain.empty()) {
        EXPECT_TRUE(chains_.contains(element.verdict->chain)) << element.verdict->chain;
      }
      const auto [at, fresh] = sets_.at(change.set).elements.emplace(element.key, element);
      EXPECT_TRUE(fresh || at->second == element) << "another value in " << change.set;
    }
  }
  void Do(const nft::DeleteElements& change) {
    for (const nft::Element& element : change.elements) {
      EXPECT_EQ(sets_.at(change.set).elements.erase(element.key), 1U) << change.set;
    }
  }
  void Do(const nft::FlushSet& change) {
    ASSERT_TRUE(sets_.contains(change.set)) << change.set;
    sets_.at(change.set).elements.clear();
  }
  void Do(const nft::AddCounter& change) { counters_.emplace(change.name, 0); }
  void Do(const nft::DeleteCounter& change) { counters_.erase(change.name); }

  void Check(const nft::Expression& expression) const {
    if (const auto* look = std::get_if<nft::LookUp>(&expression)) {
      ASSERT_TRUE(sets_.contains(look->set)) << look->set;
      const nft::Set& set = sets_.at(look->set).set;
      EXPECT_EQ(set.value.has_value(), look->to.has_value()) << look->set;
      EXPECT_EQ(set.verdicts, look->verdict) << look->set;
    }
    if (const auto* put = std::get_if<nft::PutInSet>(&expression)) {
      ASSERT_TRUE(sets_.contains(put->set)) << put->set;
      EXPECT_TRUE(sets_.at(put->set).set.dynamic) << put->set;
    }
    if (const auto* count = std::get_if<nft::CountIn>(&expression)) {
      EXPECT_TRUE(counters_.contains(count->counter)) << count->counter;
    }
    if (const auto* verdict = std::get_if<nft::Verdict>(&expression)) {
      EXPECT_TRUE(verdict->chain.empty() || chains_.contains(verdict->chain)) << verdict->chain;
    }
  }

  // Checks that what a map has given is in no key: nft up to 1.0.6 ends with an assertion where it
  // lists a rule that has that.
  void CheckKeys(const nft::Rule& rule) const {
    std::set<size_t> given;
    const auto check_key = [&](const std::string& set, nft::Register from) {
      for (size_t i = 0; i < KeyBytes(sets_.at(set).set) / 4; ++i) {
        EXPECT_FALSE(given.contains(from + i))
            << rule.chain << ": what a map has given is looked up in " << set;
      }
    };
    for (const nft::Expression& expression : rule.expressions) {
      if (const auto* put = std::get_if<nft::PutInSet>(&expression)) check_key(put->set, put->from);
      if (const auto* load = std::get_if<nft::LoadPayload>(&expression)) {
        for (size_t i = 0; i < (load->length + 3U) / 4; ++i) given.erase(load->to + i);
      }
      if (const auto* load = std::get_if<nft::LoadImmediate>(&expression)) given.erase(load->to);
      if (const auto* load = std::get_if<nft::LoadMeta>(&expression)) given.erase(load->to);
      if (const auto* load = std::get_if<nft::LoadCt>(&expression)) given.erase(load->to);
      if (const auto* hash = std::get_if<nft::HashOf>(&expression)) given.erase(hash->to);
      const auto* look = std::get_if<nft::LookUp>(&expression);
      if (look == nullptr) continue;
      check_key(look->set, look->from);
      if (!look->to) continue;
      const bool v6 = sets_.at(look->set).set.value == nft::Field::kIpv6;
      for (size_t i = 0; i < (v6 ? 4 : 1); ++i) given.insert(*look->to + i);
    }
  }

  bool IsNamed(const std::string& chain) const {
    for (const auto& [name, held] : sets_) {
      for (const auto& [key, element] : held.elements) {
        if (element.verdict && element.verdict->chain == chain) return true;
      }
    }
    return std::any_of(rules_.begin(), rules_.end(), [&](const auto& rules) {
      return std::any_of(rules.second.begin(), rules.second.end(), [&](const nft::Rule& rule) {
        return std::any_of(rule.expressions.begin(), rule.expressions.end(), [&](const auto& e) {
          const auto* verdict = std::get_if<nft::Verdict>(&e);
          return verdict != nullptr && verdict->chain == chain;
        });
      });
    });
  }
  bool IsLookedInto(const std::string& set) const {
    return std::any_of(rules_.begin(), rules_.end(), [&](const auto& rules) {
      return std::any_of(rules.second.begin(), rules.second.end(), [&](const nft::Rule& rule) {
        return std::any_of(rule.expressions.begin(), rule.expressions.end(), [&](const auto& e) {
          const auto* look = std::get_if<nft::LookUp>(&e);
          const auto* put = std::get_if<nft::PutInSet>(&e);
          return (look != nullptr && look->set == set) || (put != nullptr && put->set == set);
        });
      });
    });
  }

  // Runs the chain; returns false when the packet's way through this base chain is over.
  bool RunChain(const std::string& name, TestPacket& packet) {
    const auto rules = rules_.find(name);
    if (rules == rules_.end()) return true;
    for (const nft::Rule& rule : rules->second) {
      Outcome outcome = Outcome::kNextRule;
      for (const nft::Expression& expression : rule.expressions) {
        outcome = std::visit([&](const auto& e) { return Step(e, packet); }, expression);
        if (outcome != Outcome::kNextRule) break;
      }
      if (outcome == Outcome::kEnd) return false;
      if (outcome == Outcome::kEndOfChain) return true;
    }
    return true;
  }

  nft::Bytes Load(nft::Register from, size_t bytes) const {
    EXPECT_LE(from * 4U + bytes, registers_.size());
    return {registers_.begin() + from * 4,
            registers_.begin() + from * 4 + static_cast<long>(bytes)};
  }
  void Store(nft::Register to, nft::Bytes bytes) {
    bytes.resize((bytes.size() + 3) / 4 * 4, 0);
    ASSERT_LE(to * 4U + bytes.size(), registers_.size());
    std::copy(bytes.begin(), bytes.end(), registers_.begin() + to * 4);
  }
  static uint32_t AsNumber(const nft::Bytes& bytes) {
    uint32_t number = 0;
    std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof(number)));
    return number;
  }

  static size_t KeyBytes(const nft::Set& set) {
    size_t bytes = 0;
    for (const nft::Field field : set.key) bytes += field == nft::Field::kIpv6 ? 16 : 4;
    return bytes;
  }

  Outcome Take(const nft::Verdict& verdict, TestPacket& packet) {
    switch (verdict.kind) {
      case nft::VerdictKind::kAccept:
        return Outcome::kEnd;
      case nft::VerdictKind::kDrop:
        packet.dropped = true;
        return Outcome::kEnd;
      case nft::VerdictKind::kReturn:
        return Outcome::kEndOfChain;
      case nft::VerdictKind::kJump:
        return RunChain(verdict.chain, packet) ? Outcome::kNextRule : Outcome::kEnd;
      case nft::VerdictKind::kGoto:
        return RunChain(verdict.chain, packet) ? Outcome::kEndOfChain : Outcome::kEnd;
    }
    return Outcome::kEnd;
  }

  Outcome Step(const nft::LoadMeta& e, TestPacket& packet) {
    switch (e.key) {
      case nft::MetaKey::kMark:
        Store(e.to, nft::HostOrder(packet.mark));
        break;
      case nft::MetaKey::kPriority:
        Store(e.to, nft::HostOrder(packet.priority));
        break;
      case nft::MetaKey::kInterfaceName:
        Store(e.to, nft::DeviceName(packet.in));
        break;
      case nft::MetaKey::kOutInterfaceName:
        Store(e.to, nft::DeviceName(packet.out));
        break;
      case nft::MetaKey::kInterface:
        Store(e.to, nft::HostOrder(packet.in_index));
        break;
      case nft::MetaKey::kOutInterface:
        Store(e.to, nft::HostOrder(packet.out_index));
        break;
      case nft::MetaKey::kFamily:
        Store(e.to, {static_cast<uint8_t>(packet.source.is_v4() ? 2 : 10)});
        break;
      case nft::MetaKey::kTransport:
        Store(e.to, {packet.protocol});
        break;
      default:
        ADD_FAILURE() << "a meta key that this machine does not know";
    }
    return Outcome::kNextRule;
  }
  Outcome Step(const nft::SetMeta& e, TestPacket& packet) {
    const bool mark = e.key == nft::MetaKey::kMark;
    EXPECT_TRUE(mark || e.key == nft::MetaKey::kPriority);
    (mark ? packet.mark : packet.priority) = AsNumber(Load(e.from, 4));
    return Outcome::kNextRule;
  }
  Outcome Step(const nft::LoadPayload& e, TestPacket& packet) {
    if (e.header == nft::Header::kTransport) {
      nft::Bytes ports = nft::NetworkOrder(packet.source_port);
      for (const uint8_t byte : nft::NetworkOrder(packet.destination_port)) ports.push_back(byte);
      Store(e.to, {ports.begin() + e.offset, ports.begin() + e.offset + e.length});
      return Outcome::kNextRule;
    }
    const bool v4 = packet.source.is_v4();
    const bool source = e.offset == (v4 ? 12 : 8);
    EXPECT_TRUE(source || e.offset == (v4 ? 16 : 24)) << int{e.offset};
    nft::Bytes bytes = nft::NetworkOrder(source ? packet.source : packet.destination);
    if (e.length > bytes.size()) {  // The load is of both addresses.
      for (const uint8_t byte : nft::NetworkOrder(packet.destination)) bytes.push_back(byte);
    }
    EXPECT_LE(e.length, bytes.size());
    bytes.resize(e.length);  // A block that ends with a byte has only these.
    Store(e.to, bytes);
    return Outcome::kNextRule;
  }
  Outcome Step(const nft::MaskBits& e, TestPacket&) {
    nft::Bytes bytes = Load(e.from, e.mask.size());
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = (bytes[i] & e.mask[i]) ^ e.toggle[i];
    Store(e.to, bytes);
    return Outcome::kNextRule;
  }
  Outcome Step(const nft::Compare& e, TestPacket&) {
    const bool equal = Load(e.from, e.value.size()) == e.value;
    EXPECT_TRUE(e.comparison == nft::Comparison::kEqual ||
                e.comparison == nft::Comparison::kNotEqual);
    return equal == (e.comparison == nft::Comparison::kEqual) ? Outcome::kNextRule
                                                              : Outcome::kEndOfRule;
  }
  const nft::Element* Find(const Held& held, const nft::Bytes& key) const {
    if (!held.set.intervals) {
      const auto found = held.elements.find(key);
      return found == held.elements.end() ? nullptr : &found->second;
    }
    auto after = held.elements.upper_bound(key);
    if (after == held.elements.begin()) return nullptr;
    const nft::Element& element = std::prev(after)->second;
    return key <= (element.last.empty() ? element.key : element.last) ? &element : nullptr;
  }
  Outcome Step(const nft::LookUp& e, TestPacket& packet) {
    Held& held = sets_.at(e.set);
    const nft::Bytes key = Load(e.from, KeyBytes(held.set));
    const nft::Element* element = Find(held, key);
    if ((element == nullptr) != e.inverted) return Outcome::kEndOfRule;
    if (element == nullptr) return Outcome::kNextRule;
    if (held.set.counts) ++held.seen[key];
    if (e.to) Store(*e.to, element->value);
    return e.verdict ? Take(*element->verdict, packet) : Outcome::kNextRule;
  }
  Outcome Step(const nft::CountIn& e, TestPacket&) {
    ++counters_[e.counter];
    return Outcome::kNextRule;
  }
  // Counts as if all came at one moment, and no connection ever ended.
  Outcome Step(const nft::PutInSet& e, TestPacket&) {
    Held& held = sets_.at(e.set);
    const uint64_t seen = ++held.seen[Load(e.from, KeyBytes(held.set))];
    for (const auto& each : e.each) {
      if (const auto* rate = std::get_if<nft::LimitRate>(&each)) {
        if ((seen > rate->burst) != rate->over) return Outcome::kEndOfRule;
      }
      if (const auto* connections = std::get_if<nft::LimitConnections>(&each)) {
        if ((seen > connections->count) != connections->over) return Outcome::kEndOfRule;
      }
    }
    return Outcome::kNextRule;
  }
  Outcome Step(const nft::LoadImmediate& e, TestPacket&) {
    Store(e.to, e.value);
    return Outcome::kNextRule;
  }
  Outcome Step(const nft::Verdict& e, TestPacket& packet) { return Take(e, packet); }
  Outcome Step(const nft::LoadCt& e, TestPacket& packet) {
    if (e.key == nft::CtKey::kState) {
      Store(e.to, nft::HostOrder(packet.flow == nullptr ? nft::kCtInvalid : packet.state));
      return Outcome::kNextRule;
    }
    if (packet.flow == nullptr) return Outcome::kEndOfRule;
    if (e.key == nft::CtKey::kMark) Store(e.to, nft::HostOrder(packet.flow->mark));
    if (e.key == nft::CtKey::kStatus) Store(e.to, nft::HostOrder(packet.flow->status));
    if (e.key == nft::CtKey::kDirection) Store(e.to, {static_cast<uint8_t>(packet.reply ? 1 : 0)});
    return Outcome::kNextRule;
  }
  Outcome Step(const nft::SetCtMark& e, TestPacket& packet) {
    if (packet.flow != nullptr) packet.flow->mark = AsNumber(Load(e.from, 4));
    return Outcome::kNextRule;
  }
  // Hashes differently from jhash, but as constantly.
  Outcome Step(const nft::HashOf& e, TestPacket&) {
    uint32_t hash = 0x811C'9DC5;
    for (const uint8_t byte : Load(e.from, e.length)) hash = (hash ^ byte) * 0x0100'0193;
    Store(e.to, nft::HostOrder((hash ^ (hash >> 15U)) % e.modulus + e.offset));
    return Outcome::kNextRule;
  }
  Outcome Step(const nft::NoTrack&, TestPacket& packet) {
    packet.flow = nullptr;
    return Outcome::kNextRule;
  }
  Outcome Step(const nft::Masquerade& e, TestPacket& packet) {
    EXPECT_TRUE(e.fully_random);
    packet.masqueraded = true;
    if (packet.flow != nullptr) packet.flow->status |= rules::kSourceNat;
    packet.source = packet.source.is_v4() ? kNodeAddressV4 : kNodeAddressV6;
    return Outcome::kEnd;
  }
  Outcome Step(const nft::TranslateSource& e, TestPacket& packet) {
    const nft::Bytes bytes = Load(e.address_from, e.ipv6 ? 16 : 4);
    packet.source_to = ip::Address::FromBytes(std::span<const uint8_t>(bytes)).value();
    if (packet.flow != nullptr) packet.flow->status |= rules::kSourceNat;
    return Outcome::kEnd;
  }
  Outcome Step(const nft::TranslateDestination& e, TestPacket& packet) {
    const nft::Bytes bytes = Load(e.address, e.ipv6 ? 16 : 4);
    packet.destination_to = ip::Address::FromBytes(std::span<const uint8_t>(bytes)).value();
    if (e.port) {
      const nft::Bytes port = Load(*e.port, 2);
      packet.port_to = static_cast<uint16_t>(port[0] * 256 + port[1]);
    }
    return Outcome::kEnd;
  }
  Outcome Step(const nft::Reject&, TestPacket& packet) {
    packet.rejected = true;
    return Outcome::kEnd;
  }
  template <typename Other>
  Outcome Step(const Other&, TestPacket&) {
    ADD_FAILURE() << "an expression that this machine does not know";
    return Outcome::kEnd;
  }

  std::map<std::string, nft::Chain> chains_;
  std::map<std::string, std::vector<nft::Rule>> rules_;
  std::map<std::string, Held> sets_;
  std::map<std::string, uint64_t> counters_;
  std::array<uint8_t, 64> registers_{};
};

}  // namespace spoke::netagent
