#include "lib/nft/expressions.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <sys/socket.h>

#include <string>

#include "lib/base/check.h"

// These are newer than the headers of Debian 12's kernel, or missing from them.
#ifndef NFT_CONNLIMIT_F_INV
#define NFT_CONNLIMIT_F_INV (1 << 0)
#endif

namespace spoke::nft {
namespace {

// The code for port unreachable, of linux/icmp.h and linux/icmpv6.h.
constexpr uint8_t kIcmpPortUnreachable = 3;
constexpr uint8_t kIcmpv6PortUnreachable = 4;

uint32_t Number(Register reg) { return NFT_REG32_00 + static_cast<uint32_t>(reg); }

uint32_t Number(MetaKey key) {
  switch (key) {
    case MetaKey::kMark:
      return NFT_META_MARK;
    case MetaKey::kInterface:
      return NFT_META_IIF;
    case MetaKey::kOutInterface:
      return NFT_META_OIF;
    case MetaKey::kInterfaceName:
      return NFT_META_IIFNAME;
    case MetaKey::kOutInterfaceName:
      return NFT_META_OIFNAME;
    case MetaKey::kFamily:
      return NFT_META_NFPROTO;
    case MetaKey::kTransport:
      return NFT_META_L4PROTO;
    case MetaKey::kLength:
      return NFT_META_LEN;
    case MetaKey::kPriority:
      return NFT_META_PRIORITY;
  }
  return NFT_META_MARK;
}

uint32_t Number(CtKey key) {
  switch (key) {
    case CtKey::kState:
      return NFT_CT_STATE;
    case CtKey::kStatus:
      return NFT_CT_STATUS;
    case CtKey::kMark:
      return NFT_CT_MARK;
    case CtKey::kDirection:
      return NFT_CT_DIRECTION;
  }
  return NFT_CT_STATE;
}

uint32_t Number(Header header) {
  switch (header) {
    case Header::kLink:
      return NFT_PAYLOAD_LL_HEADER;
    case Header::kNetwork:
      return NFT_PAYLOAD_NETWORK_HEADER;
    case Header::kTransport:
      return NFT_PAYLOAD_TRANSPORT_HEADER;
  }
  return NFT_PAYLOAD_NETWORK_HEADER;
}

uint32_t Number(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEqual:
      return NFT_CMP_EQ;
    case Comparison::kNotEqual:
      return NFT_CMP_NEQ;
  }
  return NFT_CMP_EQ;
}

OwnedExpression New(const char* kind) {
  OwnedExpression made(nftnl_expr_alloc(kind));
  CHECK(made != nullptr, "libnftnl knows the expression, and there is memory for it");
  return made;
}

// Fills one of libnftnl's objects: Builder("cmp").Set(NFTNL_EXPR_CMP_OP, ...).Done().
class Builder {
 public:
  explicit Builder(const char* kind) : made_(New(kind)) {}

  Builder& Set(uint16_t attribute, uint32_t value) {
    nftnl_expr_set_u32(made_.get(), attribute, value);
    return *this;
  }
  Builder& SetWide(uint16_t attribute, uint64_t value) {
    nftnl_expr_set_u64(made_.get(), attribute, value);
    return *this;
  }
  Builder& SetBytes(uint16_t attribute, const Bytes& bytes) {
    nftnl_expr_set(made_.get(), attribute, bytes.data(), static_cast<uint32_t>(bytes.size()));
    return *this;
  }
  Builder& SetText(uint16_t attribute, const std::string& text) {
    nftnl_expr_set_str(made_.get(), attribute, text.c_str());
    return *this;
  }
  nftnl_expr* get() { return made_.get(); }
  OwnedExpression Done() { return std::move(made_); }

 private:
  OwnedExpression made_;
};

uint32_t AddressFamily(bool ipv6) { return ipv6 ? AF_INET6 : AF_INET; }

struct Translator {
  Family family;

  OwnedExpression operator()(const LoadMeta& e) const {
    return Builder("meta")
        .Set(NFTNL_EXPR_META_KEY, Number(e.key))
        .Set(NFTNL_EXPR_META_DREG, Number(e.to))
        .Done();
  }

  OwnedExpression operator()(const SetMeta& e) const {
    return Builder("meta")
        .Set(NFTNL_EXPR_META_KEY, Number(e.key))
        .Set(NFTNL_EXPR_META_SREG, Number(e.from))
        .Done();
  }

  OwnedExpression operator()(const LoadPayload& e) const {
    return Builder("payload")
        .Set(NFTNL_EXPR_PAYLOAD_BASE, Number(e.header))
        .Set(NFTNL_EXPR_PAYLOAD_OFFSET, e.offset)
        .Set(NFTNL_EXPR_PAYLOAD_LEN, e.length)
        .Set(NFTNL_EXPR_PAYLOAD_DREG, Number(e.to))
        .Done();
  }

  OwnedExpression operator()(const MaskBits& e) const {
    return Builder("bitwise")
        .Set(NFTNL_EXPR_BITWISE_SREG, Number(e.from))
        .Set(NFTNL_EXPR_BITWISE_DREG, Number(e.to))
        .Set(NFTNL_EXPR_BITWISE_LEN, static_cast<uint32_t>(e.mask.size()))
        .SetBytes(NFTNL_EXPR_BITWISE_MASK, e.mask)
        .SetBytes(NFTNL_EXPR_BITWISE_XOR, e.toggle)
        .Done();
  }

  OwnedExpression operator()(const Compare& e) const {
    return Builder("cmp")
        .Set(NFTNL_EXPR_CMP_SREG, Number(e.from))
        .Set(NFTNL_EXPR_CMP_OP, Number(e.comparison))
        .SetBytes(NFTNL_EXPR_CMP_DATA, e.value)
        .Done();
  }

  OwnedExpression operator()(const LookUp& e) const {
    Builder made("lookup");
    made.SetText(NFTNL_EXPR_LOOKUP_SET, e.set).Set(NFTNL_EXPR_LOOKUP_SREG, Number(e.from));
    if (e.to) made.Set(NFTNL_EXPR_LOOKUP_DREG, Number(*e.to));
    if (e.verdict) made.Set(NFTNL_EXPR_LOOKUP_DREG, NFT_REG_VERDICT);
    if (e.inverted) made.Set(NFTNL_EXPR_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
    return made.Done();
  }

  OwnedExpression operator()(const CountHere& e) const { return NewCounter(e); }

  OwnedExpression operator()(const CountIn& e) const {
    return Builder("objref")
        .Set(NFTNL_EXPR_OBJREF_IMM_TYPE, NFT_OBJECT_COUNTER)
        .SetText(NFTNL_EXPR_OBJREF_IMM_NAME, e.counter)
        .Done();
  }

  OwnedExpression operator()(const LimitRate& e) const {
    return Builder("limit")
        .SetWide(NFTNL_EXPR_LIMIT_RATE, e.per_second)
        .SetWide(NFTNL_EXPR_LIMIT_UNIT, 1)  // The unit is seconds.
        .Set(NFTNL_EXPR_LIMIT_BURST, e.burst)
        .Set(NFTNL_EXPR_LIMIT_TYPE, NFT_LIMIT_PKTS)
        .Set(NFTNL_EXPR_LIMIT_FLAGS, e.over ? NFT_LIMIT_F_INV : 0)
        .Done();
  }

  OwnedExpression operator()(const LimitConnections& e) const {
    return Builder("connlimit")
        .Set(NFTNL_EXPR_CONNLIMIT_COUNT, e.count)
        .Set(NFTNL_EXPR_CONNLIMIT_FLAGS, e.over ? NFT_CONNLIMIT_F_INV : 0)
        .Done();
  }

  OwnedExpression operator()(const PutInSet& e) const {
    Builder made("dynset");
    made.SetText(NFTNL_EXPR_DYNSET_SET_NAME, e.set)
        .Set(NFTNL_EXPR_DYNSET_SREG_KEY, Number(e.from))
        .Set(NFTNL_EXPR_DYNSET_OP, e.refresh ? NFT_DYNSET_OP_UPDATE : NFT_DYNSET_OP_ADD);
    if (e.timeout > absl::ZeroDuration()) {
      made.SetWide(NFTNL_EXPR_DYNSET_TIMEOUT,
                   static_cast<uint64_t>(absl::ToInt64Milliseconds(e.timeout)));
    }
    for (const auto& each : e.each) {
      // The dynset owns it from here on.
      nftnl_expr* const inner = std::visit(*this, each).release();
      nftnl_expr_add_expr(made.get(), NFTNL_EXPR_DYNSET_EXPRESSIONS, inner);
    }
    // Several expressions stand in a list of their own, which Linux 5.11 brought; the flag says so.
    if (e.each.size() > 1) made.Set(NFTNL_EXPR_DYNSET_FLAGS, NFT_DYNSET_F_EXPR);
    return made.Done();
  }

  OwnedExpression operator()(const LoadImmediate& e) const {
    return Builder("immediate")
        .Set(NFTNL_EXPR_IMM_DREG, Number(e.to))
        .SetBytes(NFTNL_EXPR_IMM_DATA, e.value)
        .Done();
  }

  OwnedExpression operator()(const Verdict& e) const {
    Builder made("immediate");
    made.Set(NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT)
        .Set(NFTNL_EXPR_IMM_VERDICT, static_cast<uint32_t>(VerdictNumber(e.kind)));
    if (!e.chain.empty()) made.SetText(NFTNL_EXPR_IMM_CHAIN, e.chain);
    return made.Done();
  }

  OwnedExpression operator()(const LoadCt& e) const {
    return Builder("ct")
        .Set(NFTNL_EXPR_CT_KEY, Number(e.key))
        .Set(NFTNL_EXPR_CT_DREG, Number(e.to))
        .Done();
  }

  OwnedExpression operator()(const SetCtMark& e) const {
    return Builder("ct")
        .Set(NFTNL_EXPR_CT_KEY, NFT_CT_MARK)
        .Set(NFTNL_EXPR_CT_SREG, Number(e.from))
        .Done();
  }

  OwnedExpression operator()(const NoTrack& /*none*/) const { return New("notrack"); }

  OwnedExpression operator()(const HashOf& e) const {
    return Builder("hash")
        .Set(NFTNL_EXPR_HASH_TYPE, NFT_HASH_JENKINS)
        .Set(NFTNL_EXPR_HASH_SREG, Number(e.from))
        .Set(NFTNL_EXPR_HASH_DREG, Number(e.to))
        .Set(NFTNL_EXPR_HASH_LEN, e.length)
        .Set(NFTNL_EXPR_HASH_MODULUS, e.modulus)
        .Set(NFTNL_EXPR_HASH_SEED, e.seed)
        .Set(NFTNL_EXPR_HASH_OFFSET, e.offset)
        .Done();
  }

  OwnedExpression operator()(const Masquerade& e) const {
    Builder made("masq");
    if (e.fully_random) made.Set(NFTNL_EXPR_MASQ_FLAGS, NF_NAT_RANGE_PROTO_RANDOM_FULLY);
    return made.Done();
  }

  OwnedExpression operator()(const TranslateSource& e) const {
    Builder made("nat");
    made.Set(NFTNL_EXPR_NAT_TYPE, NFT_NAT_SNAT)
        .Set(NFTNL_EXPR_NAT_FAMILY, AddressFamily(e.ipv6))
        .Set(NFTNL_EXPR_NAT_REG_ADDR_MIN, Number(e.address_from))
        .Set(NFTNL_EXPR_NAT_REG_ADDR_MAX, Number(e.address_to));
    if (e.ports) {
      made.Set(NFTNL_EXPR_NAT_REG_PROTO_MIN, Number(e.ports->first))
          .Set(NFTNL_EXPR_NAT_REG_PROTO_MAX, Number(e.ports->second));
    }
    if (e.fully_random) made.Set(NFTNL_EXPR_NAT_FLAGS, NF_NAT_RANGE_PROTO_RANDOM_FULLY);
    return made.Done();
  }

  OwnedExpression operator()(const TranslateDestination& e) const {
    Builder made("nat");
    made.Set(NFTNL_EXPR_NAT_TYPE, NFT_NAT_DNAT)
        .Set(NFTNL_EXPR_NAT_FAMILY, AddressFamily(e.ipv6))
        .Set(NFTNL_EXPR_NAT_REG_ADDR_MIN, Number(e.address));
    if (e.port) made.Set(NFTNL_EXPR_NAT_REG_PROTO_MIN, Number(*e.port));
    return made.Done();
  }

  OwnedExpression operator()(const Reject& e) const {
    Builder made("reject");
    uint32_t type = NFT_REJECT_ICMPX_UNREACH;
    uint8_t code = NFT_REJECT_ICMPX_PORT_UNREACH;
    if (family == Family::kIp || family == Family::kIp6) {
      type = NFT_REJECT_ICMP_UNREACH;
      code = family == Family::kIp ? kIcmpPortUnreachable : kIcmpv6PortUnreachable;
    }
    if (e.tcp_reset) type = NFT_REJECT_TCP_RST;
    made.Set(NFTNL_EXPR_REJECT_TYPE, type);
    nftnl_expr_set_u8(made.get(), NFTNL_EXPR_REJECT_CODE, e.tcp_reset ? uint8_t{0} : code);
    return made.Done();
  }
};

}  // namespace

int32_t VerdictNumber(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kAccept:
      return NF_ACCEPT;
    case VerdictKind::kDrop:
      return NF_DROP;
    case VerdictKind::kReturn:
      return NFT_RETURN;
    case VerdictKind::kJump:
      return NFT_JUMP;
    case VerdictKind::kGoto:
      return NFT_GOTO;
  }
  return NF_DROP;
}

OwnedExpression NewCounter(const CountHere& seed) {
  Builder made("counter");
  // What is 0 need not be said.
  if (seed.packets != 0) made.SetWide(NFTNL_EXPR_CTR_PACKETS, seed.packets);
  if (seed.bytes != 0) made.SetWide(NFTNL_EXPR_CTR_BYTES, seed.bytes);
  return made.Done();
}

OwnedExpression Translate(const Expression& expression, Family family) {
  return std::visit(Translator{family}, expression);
}

}  // namespace spoke::nft
