#include "netagent/cleanup/cleanup_plan.h"

#include <algorithm>
#include <set>

#include "fmt/core.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

// Returns whether the link is a pod's, whose name is what IsHostLinkName() of links/attach_plan.h
// wants: the prefix and twelve hex digits.
bool IsPodLink(const TraceLink& link) {
  constexpr size_t kDigits = 12;
  return link.kind == "veth" && link.name.size() == claims::kLinkPrefix.size() + kDigits &&
         link.name.starts_with(claims::kLinkPrefix) &&
         link.name.find_first_not_of("0123456789abcdef", claims::kLinkPrefix.size()) ==
             std::string::npos;
}

bool IsQueueDevice(const TraceLink& link) {
  return link.kind == "ifb" &&
         (link.name == claims::kIngressQueues || link.name == claims::kEgressQueues);
}

bool IsTunnel(const TraceLink& link) {
  return link.kind == "vxlan" && link.name == claims::kTunnelLink;
}

bool IsOurs(const TraceFilter& filter) {
  const bool priority = filter.priority == claims::kFastPathPriority ||
                        filter.priority == claims::kShapePriority ||
                        filter.priority == claims::kDivertPriority;
  return priority && filter.program.starts_with("spoke_");
}

bool IsOurs(const TraceRule& rule) {
  return rule.protocol == claims::kRouteProtocol &&
         (rule.priority == claims::kGatewayPriority ||
          rule.priority == claims::kMainFirstPriority || rule.priority == claims::kSourcePriority);
}

class Planner {
 public:
  explicit Planner(const NodeTraces& traces) : traces_(traces) {
    for (const TraceLink& link : traces_.links) {
      if (IsPodLink(link) || IsQueueDevice(link) || IsTunnel(link)) going_.insert(link.index);
    }
  }

  CleanupPlan Plan() {
    AddFiles(FileRole::kConflist);
    for (size_t i = 0; i < traces_.links.size(); ++i) AddFiltersOf(i);
    for (size_t i = 0; i < traces_.links.size(); ++i) AddPodLink(i);
    // These come after the links whose filters lead to them.
    for (size_t i = 0; i < traces_.links.size(); ++i) {
      if (IsQueueDevice(traces_.links[i])) Add(RemovalKind::kLink, i, traces_.links[i].name);
    }
    for (size_t i = 0; i < traces_.rules.size(); ++i) {
      if (IsOurs(traces_.rules[i])) Add(RemovalKind::kRule, i, traces_.rules[i].text);
    }
    // These come after the rules that lead into them: what they lead nowhere goes past them.
    for (size_t i = 0; i < traces_.links.size(); ++i) {
      if (IsTunnel(traces_.links[i])) Add(RemovalKind::kLink, i, traces_.links[i].name);
    }
    AddRoutes();
    for (size_t i = 0; i < traces_.tables.size(); ++i) {
      Add(RemovalKind::kTable, i, traces_.tables[i]);
    }
    for (size_t i = 0; i < traces_.published.size(); ++i) {
      Add(RemovalKind::kPublishedRule, i, traces_.published[i]);
    }
    for (const FileRole role :
         {FileRole::kPlugin, FileRole::kState, FileRole::kLock, FileRole::kDirectory}) {
      AddFiles(role);
    }
    return std::move(plan_);
  }

 private:
  void Add(RemovalKind kind, size_t object, std::string what) {
    plan_.removals.push_back({.kind = kind, .object = object, .what = std::move(what)});
  }

  void AddFiles(FileRole role) {
    for (size_t i = 0; i < traces_.files.size(); ++i) {
      const TraceFile& file = traces_.files[i];
      if (file.role != role) continue;
      if (file.foreign_because.empty()) {
        Add(RemovalKind::kFile, i, file.path);
      } else {
        plan_.left.push_back({.what = file.path, .why = file.foreign_because});
      }
    }
  }

  // A filter is removed by device, direction and priority, so a filter of somebody else's with the
  // same would go too: then both stay.
  bool SharesItsPlace(const TraceFilter& filter) const {
    return std::any_of(traces_.filters.begin(), traces_.filters.end(), [&](const TraceFilter& f) {
      return f.link == filter.link && f.ingress == filter.ingress &&
             f.priority == filter.priority && !IsOurs(f);
    });
  }

  void AddFiltersOf(size_t link_at) {
    const TraceLink& link = traces_.links[link_at];
    if (going_.contains(link.index)) return;
    bool ours = false;
    bool others = false;
    for (size_t i = 0; i < traces_.filters.size(); ++i) {
      const TraceFilter& filter = traces_.filters[i];
      if (filter.link != link.index) continue;
      if (!IsOurs(filter)) {
        others = true;
        continue;
      }
      const std::string what =
          fmt::format("{} {} {}", link.name, filter.ingress ? "ingress" : "egress", filter.program);
      if (SharesItsPlace(filter)) {
        plan_.left.push_back({.what = fmt::format("filter {}", what),
                              .why = fmt::format("somebody else's filter has the same priority {}",
                                                 filter.priority)});
        continue;
      }
      ours = true;
      Add(RemovalKind::kFilter, i, what);
    }
    // The agent makes it where there is none, and nobody has anything there any more.
    if (ours && !others) Add(RemovalKind::kHook, link_at, fmt::format("clsact {}", link.name));
  }

  void AddPodLink(size_t at) {
    const TraceLink& link = traces_.links[at];
    if (!IsPodLink(link)) return;
    if (!claims::IsDeletionGroup(link.group)) plan_.pods_links.push_back(link.name);
    Add(RemovalKind::kLink, at, link.name);
  }

  void AddRoutes() {
    for (size_t i = 0; i < traces_.routes.size(); ++i) {
      const TraceRoute& route = traces_.routes[i];
      if (route.protocol != claims::kRouteProtocol || going_.contains(route.link)) continue;
      Add(RemovalKind::kRoute, i, route.text);
    }
  }

  const NodeTraces& traces_;
  std::set<int32_t> going_;  // The indexes of links that go.
  CleanupPlan plan_;
};

}  // namespace

std::string_view NameOf(RemovalKind kind) {
  switch (kind) {
    case RemovalKind::kFile:
      return "file";
    case RemovalKind::kFilter:
      return "filter";
    case RemovalKind::kHook:
      return "qdisc";
    case RemovalKind::kLink:
      return "link";
    case RemovalKind::kRule:
      return "rule";
    case RemovalKind::kRoute:
      return "route";
    case RemovalKind::kTable:
      return "table";
    case RemovalKind::kPublishedRule:
      return "iptables rule";
  }
  return "unknown";
}

CleanupPlan PlanCleanup(const NodeTraces& traces) { return Planner(traces).Plan(); }

}  // namespace spoke::netagent
