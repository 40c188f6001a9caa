#include "netagent/iptables/nft_iptables.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"
#include "lib/nft/connection.h"
#include "netagent/iptables/nft_rule_text.h"

namespace spoke::netagent {
namespace {

constexpr int32_t kManglePriority = -150;  // NF_IP_PRI_MANGLE
constexpr uint8_t kSourceOffset = 12;      // The offset in the IPv4 header (RFC 791).
constexpr uint8_t kDestinationOffset = 16;

uint16_t MessageType(uint16_t message) { return NFNL_SUBSYS_NFTABLES << 8U | message; }

// Returns a dump of all rules (or chains) of one family's table; none where there is no such table.
netlink::Request DumpOf(std::string what, uint16_t message, ip::Family family,
                        const std::string& table) {
  nfgenmsg fixed{};
  fixed.nfgen_family = netlink::FamilyNumber(family);
  fixed.version = NFNETLINK_V0;
  netlink::Request request(std::move(what), MessageType(message), 0, fixed);
  // Chains have no filter by table: their reader passes over the others.
  if (message == NFT_MSG_GETRULE) request.PutText(NFTA_RULE_TABLE, table);
  request.Tolerate(ENOENT);
  return request;
}

absl::Status ReadChains(netlink::Socket& socket, ip::Family family,
                        std::vector<IptablesTable>& tables) {
  return netlink::Dump(
      socket, DumpOf("list chains", NFT_MSG_GETCHAIN, family, ""),
      [&] {
        for (IptablesTable& table : tables) table.chains.clear();
      },
      [&](const netlink::Message& message) -> absl::Status {
        if (message.type != MessageType(NFT_MSG_NEWCHAIN)) return absl::OkStatus();
        ASSIGN_OR_RETURN(NftChainMessage read, ReadNftChain(message.payload));
        const auto table = std::find_if(tables.begin(), tables.end(), [&](const IptablesTable& t) {
          return t.name == read.table;
        });
        if (table != tables.end()) table->chains.push_back(std::move(read.chain));
        return absl::OkStatus();
      });
}

// Reads the rules; `handles`, where it is given, gets those of table.rules, in the same order.
absl::Status ReadRules(netlink::Socket& socket, ip::Family family, IptablesTable& table,
                       std::vector<uint64_t>* handles = nullptr) {
  return netlink::Dump(
      socket,
      DumpOf(fmt::format("list rules of {}", table.name), NFT_MSG_GETRULE, family, table.name),
      [&] {
        table.rules.clear();
        if (handles != nullptr) handles->clear();
      },
      [&](const netlink::Message& message) -> absl::Status {
        if (message.type != MessageType(NFT_MSG_NEWRULE)) return absl::OkStatus();
        ASSIGN_OR_RETURN(NftRuleMessage read, ReadNftRule(message.payload));
        if (read.table != table.name) return absl::OkStatus();
        table.rules.push_back(std::move(read.rule));
        if (handles != nullptr) handles->push_back(read.handle);
        return absl::OkStatus();
      });
}

// Returns the chain as iptables has it in the mangle table.
nft::Chain BuiltIn(const std::string& chain) {
  nft::BaseHook base{.priority = kManglePriority};
  if (chain == "INPUT") base.hook = nft::Hook::kInput;
  if (chain == "FORWARD") base.hook = nft::Hook::kForward;
  if (chain == "OUTPUT") {
    base.hook = nft::Hook::kOutput;
    base.type = nft::ChainType::kRoute;
  }
  return {.name = chain, .base = base};
}

// Returns whether Append() could have made it. An empty chain does nothing, and iptables makes it
// anew when it needs it.
bool IsAsAppended(const IptablesChain& chain) {
  return chain.policy == "ACCEPT" &&
         (chain.name == "INPUT" || chain.name == "FORWARD" || chain.name == "OUTPUT");
}

nft::Rule RuleFor(const PublishedRule& published) {
  const int length = published.cluster.length();
  const auto whole = static_cast<uint8_t>((length + 7) / 8);
  const nft::Bytes address = nft::NetworkOrder(published.cluster.base());
  nft::Rule rule{.chain = published.chain, .comment = published.comment};
  // iptables compares a block of whole bytes in that many bytes, and masks any other.
  const bool masked = length % 8 != 0;
  const auto bytes = masked ? static_cast<uint8_t>(address.size()) : whole;
  rule.expressions.push_back(nft::LoadPayload{
      .header = nft::Header::kNetwork,
      .offset = published.by_source ? kSourceOffset : kDestinationOffset,
      .length = bytes,
  });
  if (masked) {
    nft::Bytes mask(bytes, 0);
    for (int bit = 0; bit < length; ++bit) {
      mask[static_cast<size_t>(bit / 8)] |=
          static_cast<uint8_t>(0x80U >> static_cast<unsigned>(bit % 8));
    }
    rule.expressions.push_back(nft::MaskBits{.mask = mask, .toggle = nft::Bytes(bytes, 0)});
  }
  rule.expressions.push_back(nft::Compare{.comparison = nft::Comparison::kNotEqual,
                                          .value = {address.begin(), address.begin() + bytes}});
  rule.expressions.push_back(nft::CountHere{});
  return rule;
}

}  // namespace

nft::Transaction PlanErase(const std::vector<PublishedRule>& rules, IptablesTable table,
                           std::vector<uint64_t> handles) {
  const nft::TableKey key{nft::Family::kIp, std::string(kPublishedTable)};
  nft::Transaction transaction;
  std::set<std::string> emptied;
  for (const PublishedRule& rule : rules) {
    for (size_t i = 0; i < table.rules.size(); ++i) {
      const IptablesRule& held = table.rules[i];
      if (held.abridged || held.chain != rule.chain || held.text != rule.Text()) continue;
      transaction.Add(key, nft::DeleteRule{held.chain, handles[i]});
      emptied.insert(held.chain);
      table.rules.erase(table.rules.begin() + static_cast<ptrdiff_t>(i));
      handles.erase(handles.begin() + static_cast<ptrdiff_t>(i));
      break;
    }
  }
  if (transaction.empty()) return transaction;
  for (const IptablesRule& rule : table.rules) emptied.erase(rule.chain);
  if (table.rules.empty() && std::all_of(table.chains.begin(), table.chains.end(), &IsAsAppended)) {
    transaction.Add(key, nft::DeleteTable{});
    return transaction;
  }
  for (const IptablesChain& chain : table.chains) {
    if (emptied.contains(chain.name) && IsAsAppended(chain)) {
      transaction.Add(key, nft::DeleteChain{chain.name});
    }
  }
  return transaction;
}

nft::Transaction PlanAppend(const std::vector<PublishedRule>& rules,
                            const std::vector<IptablesTable>& now) {
  const nft::TableKey key{nft::Family::kIp, std::string(kPublishedTable)};
  nft::Transaction transaction;
  if (rules.empty()) return transaction;
  const IptablesTable* table = FindTable(now, kPublishedTable);
  if (table == nullptr) transaction.Add(key, nft::AddTable{});
  std::vector<std::string> known;
  if (table != nullptr) {
    for (const IptablesChain& chain : table->chains) known.push_back(chain.name);
  }
  for (const PublishedRule& rule : rules) {
    // A chain that is there is not touched: it may have another policy.
    if (std::find(known.begin(), known.end(), rule.chain) == known.end()) {
      transaction.Add(key, nft::AddChain{BuiltIn(rule.chain)});
      known.push_back(rule.chain);
    }
    transaction.Add(key, nft::AddRule{RuleFor(rule)});
  }
  return transaction;
}

absl::StatusOr<std::vector<IptablesTable>> NftIptables::Read(
    ip::Family family, const std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open(netlink::Protocol::kNetfilter));
  std::vector<IptablesTable> tables;
  for (const std::string& name : names) tables.push_back({.name = name});
  RETURN_IF_ERROR(ReadChains(socket, family, tables));
  // A table of iptables' without a chain has no rule either.
  std::erase_if(tables, [](const IptablesTable& table) { return table.chains.empty(); });
  for (IptablesTable& table : tables) RETURN_IF_ERROR(ReadRules(socket, family, table));
  return tables;
}

absl::StatusOr<size_t> NftIptables::Erase(const std::vector<PublishedRule>& rules) {
  ASSIGN_OR_RETURN(std::vector<IptablesTable> now,
                   Read(ip::Family::kV4, {std::string(kPublishedTable)}));
  if (now.empty()) return 0;
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open(netlink::Protocol::kNetfilter));
  std::vector<uint64_t> handles;
  RETURN_IF_ERROR(ReadRules(socket, ip::Family::kV4, now[0], &handles));
  const nft::Transaction transaction = PlanErase(rules, now[0], handles);
  ASSIGN_OR_RETURN(nft::Connection kernel, nft::Connection::Open());
  RETURN_IF_ERROR(base::Annotate(kernel.Apply(transaction), "take rules out of the mangle table"));
  return static_cast<size_t>(
      std::count_if(rules.begin(), rules.end(),
                    [&](const PublishedRule& rule) { return MissingRules({rule}, now).empty(); }));
}

absl::Status NftIptables::Append(const std::vector<PublishedRule>& rules) {
  ASSIGN_OR_RETURN(const std::vector<IptablesTable> now,
                   Read(ip::Family::kV4, {std::string(kPublishedTable)}));
  ASSIGN_OR_RETURN(nft::Connection kernel, nft::Connection::Open());
  return base::Annotate(kernel.Apply(PlanAppend(rules, now)), "add rules to the mangle table");
}

}  // namespace spoke::netagent
