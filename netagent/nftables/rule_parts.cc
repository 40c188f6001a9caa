#include "netagent/nftables/rule_parts.h"

#include <algorithm>

#include "netagent/claims.h"

namespace spoke::netagent::rules {
namespace {

using nft::Compare;
using nft::Comparison;
using nft::CtKey;
using nft::LoadCt;
using nft::LoadMeta;
using nft::MaskBits;
using nft::MetaKey;
using nft::Register;

constexpr Register kScratch = 15;
// The first of the registers for a device's name, which takes four.
constexpr Register kNameScratch = 12;
// The kernel's state bit of a packet without a connection (NF_CT_STATE_UNTRACKED_BIT).
constexpr uint32_t kCtUntracked = 64;
constexpr uint8_t kIpv4 = 2;   // AF_INET
constexpr uint8_t kIpv6 = 10;  // AF_INET6

Expressions HasBits(LoadCt load, uint32_t bits, bool has) {
  load.to = kScratch;
  return {load, MaskBits{kScratch, kScratch, nft::HostOrder(bits), nft::HostOrder(0)},
          Compare{has ? Comparison::kNotEqual : Comparison::kEqual, kScratch, nft::HostOrder(0)}};
}

// Inserts the mark; the other bits stay.
MaskBits InsertMark(uint32_t mark) {
  return {kScratch, kScratch, nft::HostOrder(~claims::kFlowMarkMask), nft::HostOrder(mark)};
}

constexpr PacketLayout kV4Layout;
constexpr PacketLayout kV6Layout{.family = ip::Family::kV6,
                                 .suffix = "6",
                                 .source = 8,
                                 .destination = 24,
                                 .length = 16,
                                 .registers = 4,
                                 .field = nft::Field::kIpv6};

}  // namespace

const PacketLayout& LayoutOf(ip::Family family) {
  return family == ip::Family::kV4 ? kV4Layout : kV6Layout;
}

nft::Expression LoadAddress(const PacketLayout& layout, uint8_t offset, Register to) {
  return nft::LoadPayload{nft::Header::kNetwork, offset, layout.length, to};
}

Expressions MatchBlock(uint8_t offset, const ip::Prefix& block, nft::Register scratch) {
  const int bits = block.length();
  if (bits == 0) return {};
  nft::Bytes base = nft::NetworkOrder(block.base());
  const auto load = [&](size_t bytes) -> nft::Expression {
    return nft::LoadPayload{.header = nft::Header::kNetwork,
                            .offset = offset,
                            .length = static_cast<uint8_t>(bytes),
                            .to = scratch};
  };
  const size_t whole = static_cast<size_t>(bits) / 8;
  if (bits == 8 || bits == 16 || bits % 32 == 0) {
    base.resize(whole);
    return {load(whole), nft::Compare{nft::Comparison::kEqual, scratch, base}};
  }
  const size_t length = (static_cast<size_t>(bits) + 31) / 32 * 4;
  base.resize(length);
  nft::Bytes mask(length, 0);
  std::fill_n(mask.begin(), whole, uint8_t{0xFF});
  if (bits % 8 != 0) mask[whole] = static_cast<uint8_t>(0xFF00U >> static_cast<unsigned>(bits % 8));
  return {load(length), nft::MaskBits{scratch, scratch, mask, nft::Bytes(length, 0)},
          nft::Compare{nft::Comparison::kEqual, scratch, base}};
}

Expressions All(std::initializer_list<Expressions> parts) {
  Expressions all;
  for (const Expressions& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Expressions IsFamily(ip::Family family) {
  return {LoadMeta{MetaKey::kFamily, kScratch},
          Compare{Comparison::kEqual, kScratch, {family == ip::Family::kV4 ? kIpv4 : kIpv6}}};
}

Expressions InterfaceIs(MetaKey key, std::string_view name, bool equal) {
  return {LoadMeta{key, kNameScratch}, Compare{equal ? Comparison::kEqual : Comparison::kNotEqual,
                                               kNameScratch, nft::DeviceName(name)}};
}

Expressions IsPodLink(MetaKey key, bool is) {
  return {LoadMeta{key, kNameScratch},
          Compare{is ? Comparison::kEqual : Comparison::kNotEqual,
                  kNameScratch,
                  {claims::kLinkPrefix.begin(), claims::kLinkPrefix.end()}}};
}

Expressions FlowMarkIs(uint32_t mark) {
  return {
      LoadCt{CtKey::kMark, kScratch},
      MaskBits{kScratch, kScratch, nft::HostOrder(claims::kFlowMarkMask), nft::HostOrder(0)},
      Compare{Comparison::kEqual, kScratch, nft::HostOrder(mark)},
  };
}

Expressions FlowMarkIsSet() { return HasBits({CtKey::kMark}, claims::kFlowMarkMask, true); }

Expressions CtStateHas(uint32_t bits) { return HasBits({CtKey::kState}, bits, true); }

Expressions CtStatusHas(uint32_t bits, bool has) { return HasBits({CtKey::kStatus}, bits, has); }

Expressions IsReply(bool is) {
  return {LoadCt{CtKey::kDirection, kScratch},
          Compare{is ? Comparison::kEqual : Comparison::kNotEqual, kScratch, {1}}};
}

Expressions DestinationPortIs(uint8_t protocol, uint16_t port) {
  return {LoadMeta{MetaKey::kTransport, kScratch},
          Compare{Comparison::kEqual, kScratch, {protocol}},
          nft::LoadPayload{nft::Header::kTransport, 2, 2, kScratch},
          Compare{Comparison::kEqual, kScratch, nft::NetworkOrder(port)}};
}

Expressions IsUntracked() { return CtStateHas(nft::kCtInvalid | kCtUntracked); }

Expressions SetFlowMark(uint32_t mark) {
  return {LoadCt{CtKey::kMark, kScratch}, InsertMark(mark), nft::SetCtMark{kScratch}};
}

Expressions SetPacketMark(uint32_t mark) {
  return {LoadMeta{MetaKey::kMark, kScratch}, InsertMark(mark),
          nft::SetMeta{MetaKey::kMark, kScratch}};
}

Expressions SetPriority(uint32_t priority, Register scratch) {
  return {nft::LoadImmediate{scratch, nft::HostOrder(priority)},
          nft::SetMeta{MetaKey::kPriority, scratch}};
}

Expressions LoadSource(ip::Family family, Register to) {
  return {LoadAddress(LayoutOf(family), LayoutOf(family).source, to)};
}

Expressions LoadDestination(ip::Family family, Register to) {
  return {LoadAddress(LayoutOf(family), LayoutOf(family).destination, to)};
}

Expressions Number(uint32_t value, Register to) {
  return {nft::LoadImmediate{to, nft::HostOrder(value)}};
}

Expressions Accept() { return {nft::Verdict{nft::VerdictKind::kAccept}}; }

Expressions Drop(const std::string& counter) {
  return {nft::CountIn{counter}, nft::Verdict{nft::VerdictKind::kDrop}};
}

Expressions Goto(const std::string& chain) {
  return {nft::Verdict{nft::VerdictKind::kGoto, chain}};
}

std::string Suffix(ip::Family family) { return LayoutOf(family).suffix; }

nft::Field AddressField(ip::Family family) { return LayoutOf(family).field; }

nft::Register Width(ip::Family family) { return LayoutOf(family).registers; }

nft::Element RangeElement(const ip::Address& first, const ip::Address& last) {
  return {.key = nft::NetworkOrder(first), .last = nft::NetworkOrder(last)};
}

}  // namespace spoke::netagent::rules
