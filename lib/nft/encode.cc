#include "lib/nft/encode.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <libnftnl/udata.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/nft/expressions.h"

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

// libnftnl writes without looking where its buffer ends. The longest message is a rule: 128
// expressions, the longest of which (a dynset with two inside) needs less than a kilobyte.
constexpr size_t kMessageBytes = 256UL << 10;

template <typename T, auto kFree>
struct Free {
  void operator()(T* object) const { kFree(object); }
};
template <typename T, auto kFree>
using Owned = std::unique_ptr<T, Free<T, kFree>>;

using OwnedTable = Owned<nftnl_table, nftnl_table_free>;
using OwnedChain = Owned<nftnl_chain, nftnl_chain_free>;
using OwnedRule = Owned<nftnl_rule, nftnl_rule_free>;
using OwnedSet = Owned<nftnl_set, nftnl_set_free>;
using OwnedElement = Owned<nftnl_set_elem, nftnl_set_elem_free>;
using OwnedObject = Owned<nftnl_obj, nftnl_obj_free>;
using OwnedUserData = Owned<nftnl_udata_buf, nftnl_udata_buf_free>;

uint32_t HookNumber(Hook hook) {
  switch (hook) {
    case Hook::kPrerouting:
      return NF_INET_PRE_ROUTING;
    case Hook::kInput:
      return NF_INET_LOCAL_IN;
    case Hook::kForward:
      return NF_INET_FORWARD;
    case Hook::kOutput:
      return NF_INET_LOCAL_OUT;
    case Hook::kPostrouting:
      return NF_INET_POST_ROUTING;
  }
  return NF_INET_FORWARD;
}

const char* TypeName(ChainType type) {
  switch (type) {
    case ChainType::kFilter:
      return "filter";
    case ChainType::kNat:
      return "nat";
    case ChainType::kRoute:
      return "route";
  }
  return "filter";
}

// Returns the first key behind an interval that ends with `last`; nullopt behind the very last key
// there is.
bool Increment(Bytes& last) {
  for (size_t i = last.size(); i > 0; --i) {
    if (++last[i - 1] != 0) return true;
  }
  return false;
}

class Encoder {
 public:
  explicit Encoder(uint32_t first_sequence)
      : sequence_(first_sequence), buffer_(std::make_unique_for_overwrite<char[]>(kMessageBytes)) {
    batch_.first_sequence = first_sequence;
    Append(nftnl_batch_begin(buffer_.get(), sequence_++));
  }

  absl::Status Add(size_t index, const Step& step) {
    index_ = index;
    table_ = &step.table;
    RETURN_IF_ERROR(CheckName(step.table.name));
    return std::visit([this](const auto& change) { return Encode(change); }, step.change);
  }

  Batch Finish() && {
    if (!batch_.steps.empty()) {
      auto* const last = reinterpret_cast<nlmsghdr*>(batch_.bytes.data() + last_offset_);
      last->nlmsg_flags |= NLM_F_ACK;
    }
    Append(nftnl_batch_end(buffer_.get(), sequence_++));
    return std::move(batch_);
  }

 private:
  absl::Status Encode(const AddTable& /*none*/) { return Table(NFT_MSG_NEWTABLE, NLM_F_CREATE); }

  absl::Status Encode(const DeleteTable& /*none*/) {
    // Linux deletes what may not be there (DESTROYTABLE) since 6.3 only; this does the same.
    RETURN_IF_ERROR(Table(NFT_MSG_NEWTABLE, NLM_F_CREATE));
    return Table(NFT_MSG_DELTABLE, 0);
  }

  absl::Status Encode(const AddChain& change) {
    RETURN_IF_ERROR(CheckName(change.chain.name));
    const OwnedChain chain = NewChain(change.chain.name);
    if (const std::optional<BaseHook>& base = change.chain.base) {
      nftnl_chain_set_u32(chain.get(), NFTNL_CHAIN_HOOKNUM, HookNumber(base->hook));
      nftnl_chain_set_s32(chain.get(), NFTNL_CHAIN_PRIO, base->priority);
      nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_TYPE, TypeName(base->type));
      nftnl_chain_set_u32(chain.get(), NFTNL_CHAIN_POLICY, NF_ACCEPT);
    }
    nftnl_chain_nlmsg_build_payload(Begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE), chain.get());
    return End();
  }

  absl::Status Encode(const FlushChain& change) {
    RETURN_IF_ERROR(CheckName(change.chain));
    const OwnedRule rule = NewRule(change.chain);
    nftnl_rule_nlmsg_build_payload(Begin(NFT_MSG_DELRULE, 0), rule.get());
    return End();
  }

  absl::Status Encode(const DeleteChain& change) {
    RETURN_IF_ERROR(CheckName(change.chain));
    const OwnedChain chain = NewChain(change.chain);
    nftnl_chain_nlmsg_build_payload(Begin(NFT_MSG_DELCHAIN, 0), chain.get());
    return End();
  }

  absl::Status Encode(const AddRule& change) {
    const Rule& rule = change.rule;
    RETURN_IF_ERROR(CheckRule(rule));
    const OwnedRule made = NewRule(rule.chain);
    for (const Expression& expression : rule.expressions) {
      // The rule owns it from here on.
      nftnl_rule_add_expr(made.get(), Translate(expression, table_->family).release());
    }
    if (!rule.comment.empty()) {
      const OwnedUserData data(nftnl_udata_buf_alloc(NFT_USERDATA_MAXLEN));
      CHECK(data != nullptr, "there is memory");
      CHECK(nftnl_udata_put_strz(data.get(), NFTNL_UDATA_RULE_COMMENT, rule.comment.c_str()),
            "a comment fits");
      nftnl_rule_set_data(made.get(), NFTNL_RULE_USERDATA, nftnl_udata_buf_data(data.get()),
                          nftnl_udata_buf_len(data.get()));
    }
    nftnl_rule_nlmsg_build_payload(Begin(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND), made.get());
    return End();
  }

  absl::Status Encode(const DeleteRule& change) {
    RETURN_IF_ERROR(CheckName(change.chain));
    // Without a handle the message would mean every rule of the chain.
    if (change.handle == 0) return absl::InvalidArgumentError("a rule has no handle 0");
    const OwnedRule doomed = NewRule(change.chain);
    nftnl_rule_set_u64(doomed.get(), NFTNL_RULE_HANDLE, change.handle);
    nftnl_rule_nlmsg_build_payload(Begin(NFT_MSG_DELRULE, 0), doomed.get());
    return End();
  }

  absl::Status Encode(const AddSet& change) {
    RETURN_IF_ERROR(CheckName(change.set.name));
    RETURN_IF_ERROR(CheckSet(change.set));
    sets_[{*table_, change.set.name}] = &change.set;
    const OwnedSet set = NewSet(change.set.name);
    Describe(change.set, *set);
    // The kernel wants a number that is no other set's of this batch.
    nftnl_set_set_u32(set.get(), NFTNL_SET_ID, static_cast<uint32_t>(index_ + 1));
    nftnl_set_nlmsg_build_payload(Begin(NFT_MSG_NEWSET, NLM_F_CREATE), set.get());
    return End();
  }

  absl::Status Encode(const DeleteSet& change) {
    RETURN_IF_ERROR(CheckName(change.set));
    const OwnedSet set = NewSet(change.set);
    nftnl_set_nlmsg_build_payload(Begin(NFT_MSG_DELSET, 0), set.get());
    return End();
  }

  absl::Status Encode(const AddElements& change) {
    return Elements(NFT_MSG_NEWSETELEM, NLM_F_CREATE, change.set, change.elements);
  }

  absl::Status Encode(const DeleteElements& change) {
    return Elements(NFT_MSG_DELSETELEM, 0, change.set, change.elements);
  }

  absl::Status Encode(const FlushSet& change) {
    RETURN_IF_ERROR(CheckName(change.set));
    // A message without elements deletes all of them.
    BeginElements(NFT_MSG_DELSETELEM, 0, change.set);
    return End();
  }

  absl::Status Encode(const AddCounter& change) {
    RETURN_IF_ERROR(CheckName(change.name));
    const OwnedObject counter = NewObject(change.name);
    nftnl_obj_set_u64(counter.get(), NFTNL_OBJ_CTR_PKTS, change.seed.packets);
    nftnl_obj_set_u64(counter.get(), NFTNL_OBJ_CTR_BYTES, change.seed.bytes);
    nftnl_obj_nlmsg_build_payload(Begin(NFT_MSG_NEWOBJ, NLM_F_CREATE), counter.get());
    return End();
  }

  absl::Status Encode(const DeleteCounter& change) {
    RETURN_IF_ERROR(CheckName(change.name));
    const OwnedObject counter = NewObject(change.name);
    nftnl_obj_nlmsg_build_payload(Begin(NFT_MSG_DELOBJ, 0), counter.get());
    return End();
  }

  absl::Status Table(uint16_t type, uint16_t flags) {
    const OwnedTable table(nftnl_table_alloc());
    CHECK(table != nullptr, "there is memory");
    nftnl_table_set_str(table.get(), NFTNL_TABLE_NAME, table_->name.c_str());
    nftnl_table_nlmsg_build_payload(Begin(type, flags), table.get());
    return End();
  }

  OwnedChain NewChain(const std::string& name) const {
    OwnedChain chain(nftnl_chain_alloc());
    CHECK(chain != nullptr, "there is memory");
    nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_TABLE, table_->name.c_str());
    nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_NAME, name.c_str());
    return chain;
  }

  absl::Status Elements(uint16_t type, uint16_t flags, const std::string& set,
                        const std::vector<Element>& elements) {
    RETURN_IF_ERROR(CheckName(set));
    const auto known = sets_.find({*table_, set});
    nlattr* list = nullptr;  // The list of the message under construction, if there is one.
    const auto put = [&](const OwnedElement& made) {
      if (list == nullptr) {
        BeginElements(type, flags, set);
        list = mnl_attr_nest_start(message_, NFTA_SET_ELEM_LIST_ELEMENTS);
      }
      nftnl_set_elem_nlmsg_build(message_, made.get(), NFTA_LIST_ELEM);
      if (message_->nlmsg_len < kElementBytesPerMessage) return;
      mnl_attr_nest_end(message_, list);
      static_cast<void>(End());
      list = nullptr;
    };
    for (const Element& element : elements) {
      RETURN_IF_ERROR(CheckElement(element));
      if (known != sets_.end()) RETURN_IF_ERROR(CheckFits(element, *known->second));
      put(NewElement(element));
      Bytes behind = element.last;
      if (behind.empty() || !Increment(behind)) continue;
      const OwnedElement end(nftnl_set_elem_alloc());
      CHECK(end != nullptr, "there is memory");
      nftnl_set_elem_set(end.get(), NFTNL_SET_ELEM_KEY, behind.data(),
                         static_cast<uint32_t>(behind.size()));
      nftnl_set_elem_set_u32(end.get(), NFTNL_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
      put(end);
    }
    if (list != nullptr) {
      mnl_attr_nest_end(message_, list);
      return End();
    }
    return absl::OkStatus();
  }

  OwnedElement NewElement(const Element& element) const {
    OwnedElement made(nftnl_set_elem_alloc());
    CHECK(made != nullptr, "there is memory");
    nftnl_set_elem_set(made.get(), NFTNL_SET_ELEM_KEY, element.key.data(),
                       static_cast<uint32_t>(element.key.size()));
    if (!element.value.empty()) {
      nftnl_set_elem_set(made.get(), NFTNL_SET_ELEM_DATA, element.value.data(),
                         static_cast<uint32_t>(element.value.size()));
    }
    if (element.verdict) {
      nftnl_set_elem_set_u32(made.get(), NFTNL_SET_ELEM_VERDICT,
                             static_cast<uint32_t>(VerdictNumber(element.verdict->kind)));
      if (!element.verdict->chain.empty()) {
        nftnl_set_elem_set_str(made.get(), NFTNL_SET_ELEM_CHAIN, element.verdict->chain.c_str());
      }
    }
    if (element.seed != CountHere{}) {
      nftnl_set_elem_add_expr(made.get(), NewCounter(element.seed).release());
    }
    return made;
  }

  OwnedRule NewRule(const std::string& chain) const {
    OwnedRule rule(nftnl_rule_alloc());
    CHECK(rule != nullptr, "there is memory");
    nftnl_rule_set_str(rule.get(), NFTNL_RULE_TABLE, table_->name.c_str());
    nftnl_rule_set_str(rule.get(), NFTNL_RULE_CHAIN, chain.c_str());
    return rule;
  }

  OwnedSet NewSet(const std::string& name) const {
    OwnedSet set(nftnl_set_alloc());
    CHECK(set != nullptr, "there is memory");
    nftnl_set_set_str(set.get(), NFTNL_SET_TABLE, table_->name.c_str());
    nftnl_set_set_str(set.get(), NFTNL_SET_NAME, name.c_str());
    return set;
  }

  OwnedObject NewObject(const std::string& name) const {
    OwnedObject object(nftnl_obj_alloc());
    CHECK(object != nullptr, "there is memory");
    nftnl_obj_set_str(object.get(), NFTNL_OBJ_TABLE, table_->name.c_str());
    nftnl_obj_set_str(object.get(), NFTNL_OBJ_NAME, name.c_str());
    nftnl_obj_set_u32(object.get(), NFTNL_OBJ_TYPE, NFT_OBJECT_COUNTER);
    return object;
  }

  nlmsghdr* Begin(uint16_t type, uint16_t flags) {
    message_ = nftnl_nlmsg_build_hdr(buffer_.get(), type, FamilyNumber(table_->family), flags,
                                     sequence_++);
    return message_;
  }

  void BeginElements(uint16_t type, uint16_t flags, const std::string& set) {
    Begin(type, flags);
    mnl_attr_put_strz(message_, NFTA_SET_ELEM_LIST_TABLE, table_->name.c_str());
    mnl_attr_put_strz(message_, NFTA_SET_ELEM_LIST_SET, set.c_str());
  }

  absl::Status End() {
    CHECK(message_->nlmsg_len <= kMessageBytes, "a message fits its buffer");
    last_offset_ = batch_.bytes.size();
    batch_.steps.push_back(index_);
    Append(message_);
    return absl::OkStatus();
  }

  void Append(const nlmsghdr* message) {
    const auto* const begin = reinterpret_cast<const uint8_t*>(message);
    batch_.bytes.insert(batch_.bytes.end(), begin, begin + MNL_ALIGN(message->nlmsg_len));
  }

  Batch batch_;
  uint32_t sequence_;
  std::unique_ptr<char[]> buffer_;
  size_t index_ = 0;  // The index of the step.
  const TableKey* table_ = nullptr;
  nlmsghdr* message_ = nullptr;  // The message under construction, in buffer_.
  size_t last_offset_ = 0;       // The place where the last step's last message begins.
  std::map<std::pair<TableKey, std::string>, const Set*> sets_;  // The sets declared so far.
};

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

absl::StatusOr<Batch> Encode(const Transaction& transaction, uint32_t first_sequence) {
  Encoder encoder(first_sequence);
  for (size_t i = 0; i < transaction.steps.size(); ++i) {
    const absl::Status status = encoder.Add(i, transaction.steps[i]);
    if (!status.ok()) return base::Annotate(status, TitleOf(transaction, i));
  }
  return std::move(encoder).Finish();
}

}  // namespace spoke::nft
