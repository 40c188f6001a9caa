#include "netagent/cleanup/node_cleaner.h"

#include <linux/rtnetlink.h>

#include <map>
#include <span>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "lib/netlink/queueing/filter.h"
#include "lib/netlink/socket.h"
#include "netagent/claims.h"
#include "netagent/classes/traffic_pod.h"

namespace spoke::netagent {
namespace {

constexpr ip::Family kFamilies[] = {ip::Family::kV4, ip::Family::kV6};

// Returns whether the kernel lacks something: then nothing of ours is there either.
bool IsLacking(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsNotFound(status) ||
         absl::IsInvalidArgument(status);
}

std::string TextOf(const netlink::Rule& rule) {
  std::string text = fmt::format(
      "{} from {}", rule.priority,
      rule.from ? rule.from->ToString() : (rule.family == ip::Family::kV4 ? "all" : "all IPv6"));
  if (rule.mark) text += fmt::format(" mark {:#x}/{:#x}", rule.mark->value, rule.mark->mask);
  return text + fmt::format(" table {}", rule.table);
}

std::string TextOf(const netlink::Route& route, const std::string& device) {
  std::string text = route.type == RTN_UNREACHABLE ? "unreachable " : "";
  text += route.destination.ToString();
  if (route.gateway) text += fmt::format(" via {}", route.gateway->ToString());
  if (!device.empty() && route.type == RTN_UNICAST) text += fmt::format(" dev {}", device);
  if (route.table != RT_TABLE_MAIN) text += fmt::format(" table {}", route.table);
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeCleaner>> NodeCleaner::Open(Settings settings, Iptables& nft,
                                                               Iptables& legacy) {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  ASSIGN_OR_RETURN(nft::Connection tables, nft::Connection::Open());
  std::unique_ptr<NodeCleaner> cleaner(
      new NodeCleaner(std::move(settings), std::move(socket), std::move(tables)));
  cleaner->nft_ = &nft;
  cleaner->legacy_ = &legacy;
  return cleaner;
}

absl::Status NodeCleaner::ReadLinks(NodeTraces& traces) {
  ASSIGN_OR_RETURN(const auto links, netlink::DumpLinks(socket_, ""));
  for (const netlink::Link& link : links) {
    traces.links.push_back(
        {.index = link.index, .name = link.name, .kind = link.kind, .group = link.group});
    for (const auto direction : {netlink::Direction::kIngress, netlink::Direction::kEgress}) {
      const auto filters = netlink::DumpFilters(socket_, link.index, netlink::HookOf(direction));
      // The link has gone meanwhile, or has no place for filters.
      if (IsLacking(filters.status())) continue;
      if (!filters.ok()) return filters.status();
      for (const netlink::BpfFilter& filter : *filters) {
        traces.filters.push_back({.link = link.index,
                                  .ingress = direction == netlink::Direction::kIngress,
                                  .priority = filter.priority,
                                  .program = filter.name});
      }
    }
  }
  return absl::OkStatus();
}

absl::Status NodeCleaner::ReadRules(NodeTraces& traces) {
  for (const ip::Family family : kFamilies) {
    auto rules = netlink::DumpRules(socket_, family, claims::kRouteProtocol);
    if (IsLacking(rules.status())) continue;
    if (!rules.ok()) return rules.status();
    for (const netlink::Rule& rule : *rules) {
      traces.rules.push_back(
          {.text = TextOf(rule), .priority = rule.priority, .protocol = rule.protocol});
      rules_.push_back(rule);
    }
  }
  return absl::OkStatus();
}

absl::Status NodeCleaner::ReadRoutes(NodeTraces& traces) {
  std::map<int32_t, std::string> names;
  for (const TraceLink& link : traces.links) names.emplace(link.index, link.name);
  for (const ip::Family family : kFamilies) {
    auto routes = netlink::DumpAllRoutes(socket_, family);
    if (IsLacking(routes.status())) continue;
    if (!routes.ok()) return routes.status();
    for (const netlink::Route& route : *routes) {
      if (route.protocol != claims::kRouteProtocol) continue;
      traces.routes.push_back({.text = TextOf(route, names[route.link]),
                               .protocol = route.protocol,
                               .link = route.link});
      routes_.push_back(route);
    }
  }
  return absl::OkStatus();
}

absl::Status NodeCleaner::ReadTables(NodeTraces& traces) {
  for (const std::string& name : {kSpokeTable.name, kNamesTable.name}) {
    for (const nft::Family family : {nft::Family::kInet, nft::Family::kNetdev}) {
      const nft::TableKey key{family, name};
      const absl::Status status = tables_.ReadCounters(key).status();
      if (IsLacking(status)) continue;
      RETURN_IF_ERROR(status);
      traces.tables.push_back(
          fmt::format("{} {}", family == nft::Family::kInet ? "inet" : "netdev", name));
      keys_.push_back(key);
    }
  }
  return absl::OkStatus();
}

absl::Status NodeCleaner::ReadPublished(Iptables& backend, std::string_view name,
                                        NodeTraces& traces) {
  if (settings_.published.empty()) return absl::OkStatus();
  const auto now = backend.Read(ip::Family::kV4, {std::string(kPublishedTable)});
  // Rules that nothing here can read, nothing here has laid down.
  if (IsLacking(now.status())) return absl::OkStatus();
  if (!now.ok()) return now.status();
  for (const PublishedRule& rule : settings_.published) {
    if (!MissingRules({rule}, *now).empty()) continue;
    traces.published.push_back(
        fmt::format("{} {} {} {}", name, kPublishedTable, rule.chain, rule.Text()));
    published_.push_back({.backend = &backend, .rule = rule});
  }
  return absl::OkStatus();
}

std::vector<absl::Status> NodeCleaner::Read(NodeTraces& traces) {
  traces = {};
  rules_.clear();
  routes_.clear();
  keys_.clear();
  published_.clear();
  std::vector<absl::Status> unread;
  const auto note = [&](const absl::Status& status, std::string_view what) {
    if (!status.ok()) unread.push_back(base::Annotate(status, what));
  };
  note(ReadLinks(traces), "list links and their filters");
  note(ReadRules(traces), "list rules");
  note(ReadRoutes(traces), "list routes");
  note(ReadTables(traces), "list tables");
  note(ReadPublished(*nft_, NameOf(IptablesBackend::kNft), traces), "list rules of iptables-nft");
  note(ReadPublished(*legacy_, NameOf(IptablesBackend::kLegacy), traces),
       "list rules of iptables-legacy");
  traces.files = FindFiles(settings_.paths);
  traces_ = traces;
  return unread;
}

absl::Status NodeCleaner::Send(const netlink::Request& request) {
  return netlink::SendBatch(socket_, std::span(&request, 1)).status;
}

absl::StatusOr<bool> NodeCleaner::Remove(const Removal& removal) {
  const size_t at = removal.object;
  switch (removal.kind) {
    case RemovalKind::kFile:
      return RemoveFile(traces_.files.at(at));
    case RemovalKind::kFilter: {
      const TraceFilter& filter = traces_.filters.at(at);
      RETURN_IF_ERROR(Send(netlink::DeleteBpfFilter(
          filter.link, filter.priority,
          filter.ingress ? netlink::Direction::kIngress : netlink::Direction::kEgress)));
      return true;
    }
    case RemovalKind::kHook:
      RETURN_IF_ERROR(Send(netlink::DeleteClsact(traces_.links.at(at).index)));
      return true;
    case RemovalKind::kLink:
      RETURN_IF_ERROR(Send(netlink::DeleteLink(traces_.links.at(at).index)));
      return true;
    case RemovalKind::kRule:
      RETURN_IF_ERROR(Send(netlink::DeleteRule(rules_.at(at))));
      return true;
    case RemovalKind::kRoute: {
      netlink::Route route = routes_.at(at);
      // The kernel names a device for one that leads nowhere, and does not want to hear of it.
      if (route.type != RTN_UNICAST) route.link = 0;
      RETURN_IF_ERROR(Send(netlink::DeleteRoute(route)));
      return true;
    }
    case RemovalKind::kTable: {
      nft::Transaction transaction;
      transaction.Add(keys_.at(at), nft::DeleteTable{});
      RETURN_IF_ERROR(tables_.Apply(transaction));
      return true;
    }
    case RemovalKind::kPublishedRule: {
      const Published& published = published_.at(at);
      ASSIGN_OR_RETURN(const size_t erased, published.backend->Erase({published.rule}));
      return erased > 0;
    }
  }
  return absl::InternalError("unknown removal");
}

}  // namespace spoke::netagent
