#include "netagent/classes/packet_match.h"

#include <algorithm>

namespace spoke::netagent {
namespace {

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

nft::Expression LoadAddress(const PacketLayout& layout, uint8_t offset, nft::Register to) {
  return nft::LoadPayload{
      .header = nft::Header::kNetwork, .offset = offset, .length = layout.length, .to = to};
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

Expressions Concat(std::initializer_list<Expressions> parts) {
  Expressions all;
  for (const Expressions& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

nft::Expression Jump(nft::VerdictKind kind, const std::string& chain) {
  return nft::Verdict{.kind = kind, .chain = chain};
}
nft::Expression Accept() { return nft::Verdict{.kind = nft::VerdictKind::kAccept}; }
nft::Expression Drop() { return nft::Verdict{.kind = nft::VerdictKind::kDrop}; }

}  // namespace spoke::netagent
