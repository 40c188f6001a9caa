#include "lib/nft/set_types.h"

#include <libnftnl/expr.h>
#include <libnftnl/udata.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "lib/base/check.h"
#include "lib/nft/expressions.h"
#include "lib/nft/validity.h"

namespace spoke::nft {
namespace {

// nft's own numbers of data types (its include/datatype.h, stable since it writes them into sets);
// the kernel only stores them. In a key of several parts each part has six bits.
constexpr uint32_t kIntegerType = 4;
constexpr uint32_t kIpv4Type = 7;
constexpr uint32_t kIpv6Type = 8;
constexpr uint32_t kProtocolType = 12;
constexpr uint32_t kPortType = 13;
constexpr uint32_t kMarkType = 19;
constexpr uint32_t kInterfaceIndexType = 20;
constexpr uint32_t kInterfaceNameType = 41;
constexpr uint32_t kTypeBits = 6;

uint32_t TypeOf(Field field) {
  switch (field) {
    case Field::kIpv4:
      return kIpv4Type;
    case Field::kIpv6:
      return kIpv6Type;
    case Field::kMark:
      return kMarkType;
    case Field::kInterfaceIndex:
      return kInterfaceIndexType;
    case Field::kInterfaceName:
      return kInterfaceNameType;
    case Field::kPort:
      return kPortType;
    case Field::kProtocol:
      return kProtocolType;
  }
  return kIntegerType;
}

// nft's numbers of byte orders.
constexpr uint32_t kHostOrder = 1;
constexpr uint32_t kNetworkOrder = 2;

uint32_t OrderOf(Field field) {
  return field == Field::kMark || field == Field::kInterfaceIndex || field == Field::kInterfaceName
             ? kHostOrder
             : kNetworkOrder;
}

}  // namespace

uint8_t FamilyNumber(Family family) {
  switch (family) {
    case Family::kInet:
      return NFPROTO_INET;
    case Family::kNetdev:
      return NFPROTO_NETDEV;
    case Family::kIp:
      return NFPROTO_IPV4;
    case Family::kIp6:
      return NFPROTO_IPV6;
  }
  return NFPROTO_INET;
}

void Describe(const Set& set, nftnl_set& out) {
  uint32_t flags = 0;
  if (set.intervals) flags |= NFT_SET_INTERVAL;
  if (set.dynamic) flags |= NFT_SET_EVAL;
  if (set.value || set.verdicts) flags |= NFT_SET_MAP;
  if (set.timeout > absl::ZeroDuration()) flags |= NFT_SET_TIMEOUT;
  nftnl_set_set_u32(&out, NFTNL_SET_FLAGS, flags);

  uint32_t type = 0;
  for (const Field field : set.key) type = type << kTypeBits | TypeOf(field);
  nftnl_set_set_u32(&out, NFTNL_SET_KEY_TYPE, type);
  nftnl_set_set_u32(&out, NFTNL_SET_KEY_LEN, static_cast<uint32_t>(BytesOf(set.key)));
  if (set.value) {
    nftnl_set_set_u32(&out, NFTNL_SET_DATA_TYPE, TypeOf(*set.value));
    nftnl_set_set_u32(&out, NFTNL_SET_DATA_LEN, static_cast<uint32_t>(BytesOf(*set.value)));
  }
  if (set.verdicts) nftnl_set_set_u32(&out, NFTNL_SET_DATA_TYPE, NFT_DATA_VERDICT);
  if (set.size != 0) nftnl_set_set_u32(&out, NFTNL_SET_DESC_SIZE, set.size);
  if (set.timeout > absl::ZeroDuration()) {
    nftnl_set_set_u64(&out, NFTNL_SET_TIMEOUT,
                      static_cast<uint64_t>(absl::ToInt64Milliseconds(set.timeout)));
  }
  // Without these nft takes numbers for the other way round.
  nftnl_udata_buf* const orders = nftnl_udata_buf_alloc(NFT_USERDATA_MAXLEN);
  CHECK(orders != nullptr, "there is memory");
  if (set.key.size() == 1) {
    nftnl_udata_put_u32(orders, NFTNL_UDATA_SET_KEYBYTEORDER, OrderOf(set.key.front()));
  }
  if (set.value) nftnl_udata_put_u32(orders, NFTNL_UDATA_SET_DATABYTEORDER, OrderOf(*set.value));
  if (nftnl_udata_buf_len(orders) != 0) {
    nftnl_set_set_data(&out, NFTNL_SET_USERDATA, nftnl_udata_buf_data(orders),
                       nftnl_udata_buf_len(orders));
  }
  nftnl_udata_buf_free(orders);
  // Every element gets one, including those that packets make.
  if (set.counts) nftnl_set_add_expr(&out, NewCounter({}).release());
}

}  // namespace spoke::nft
