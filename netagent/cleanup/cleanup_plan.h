// What of the agent's is on a node, and in which order it is taken off, so that the node is as if
// there had never been one. Pure.
//
// What is ours is what claims.h says; in doubt it is somebody else's and stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spoke::netagent {

struct TraceLink {
  int32_t index = 0;
  std::string name;
  std::string kind;  // "veth", "ifb", "vxlan".
  uint32_t group = 0;
};

// A filter of any kind at a device's clsact.
struct TraceFilter {
  int32_t link = 0;  // Index.
  bool ingress = false;
  uint16_t priority = 0;
  std::string program;  // Name; empty for a filter that runs none.
};

struct TraceRule {
  std::string text;
  uint32_t priority = 0;
  uint8_t protocol = 0;
};

struct TraceRoute {
  std::string text;
  uint8_t protocol = 0;
  int32_t link = 0;  // Index; 0: none.
};

enum class FileRole : uint8_t {
  kConflist,
  kPlugin,
  kState,      // What the agent keeps in its directories, and what it was writing.
  kDirectory,  // Goes when nothing of somebody else's is in it.
  kLock        // Of the journal; holds other agents off until the end.
};

struct TraceFile {
  std::string path;
  FileRole role = FileRole::kState;
  std::string foreign_because;  // Why it is not the agent's; empty: it is.
};

// All that was found, others' objects included.
struct NodeTraces {
  std::vector<TraceLink> links;
  std::vector<TraceFilter> filters;
  std::vector<TraceRule> rules;
  std::vector<TraceRoute> routes;
  std::vector<std::string> tables;     // Of nf_tables, those of ours: "inet spoke".
  std::vector<std::string> published;  // Published iptables rules, with back end and chain.
  std::vector<TraceFile> files;
};

enum class RemovalKind : uint8_t {
  kFile,
  kFilter,
  kHook,  // The clsact that no filter is at any more.
  kLink,
  kRule,
  kRoute,
  kTable,
  kPublishedRule,
};
// "file", "filter", "qdisc", "link", "rule", "route", "table", "iptables rule".
std::string_view NameOf(RemovalKind kind);

struct Removal {
  RemovalKind kind = RemovalKind::kFile;
  size_t object = 0;  // Its place in that list of NodeTraces; of a hook: that of its link.
  std::string what;   // For people.

  bool operator==(const Removal&) const = default;
};

// Something that looks like ours and stays.
struct LeftAlone {
  std::string what;
  std::string why;

  bool operator==(const LeftAlone&) const = default;
};

struct CleanupPlan {
  std::vector<Removal> removals;  // In order.
  std::vector<LeftAlone> left;
  std::vector<std::string> pods_links;  // Names of links that pods use, which go with the rest.
};

// The runtime's configuration goes first, so that no new pod asks for the plugin; then what leads
// packets past the rules; then links, and what is left of rules, routes and tables; files, and the
// lock, last. What goes with something else (a route with its device) is not listed by itself.
CleanupPlan PlanCleanup(const NodeTraces& traces);

}  // namespace spoke::netagent
