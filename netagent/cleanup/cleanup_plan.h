// Plans what of the agent's on a node goes, and in which order it is taken off, so that the node is
// as if there had never been one. Pure.
//
// An object is ours when claims.h says so; in doubt it is somebody else's and stays.
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
  std::string kind;  // The kind, such as "veth", "ifb" or "vxlan".
  uint32_t group = 0;
};

// A filter of any kind at a device's clsact.
struct TraceFilter {
  int32_t link = 0;  // The index of the link.
  bool ingress = false;
  uint16_t priority = 0;
  std::string program;  // The program's name; empty for a filter that runs none.
};

struct TraceRule {
  std::string text;
  uint32_t priority = 0;
  uint8_t protocol = 0;
};

struct TraceRoute {
  std::string text;
  uint8_t protocol = 0;
  int32_t link = 0;  // The index of the link; 0: none.
};

enum class FileRole : uint8_t {
  kConflist,
  kPlugin,
  kState,      // What the agent keeps in its directories, and what it was writing.
  kDirectory,  // Goes when nothing of somebody else's is in it.
  kLock        // The journal's lock; it holds other agents off until the end.
};

struct TraceFile {
  std::string path;
  FileRole role = FileRole::kState;
  std::string foreign_because;  // The reason why it is not the agent's; empty: it is.
};

// Everything that was found, others' objects included.
struct NodeTraces {
  std::vector<TraceLink> links;
  std::vector<TraceFilter> filters;
  std::vector<TraceRule> rules;
  std::vector<TraceRoute> routes;
  std::vector<std::string> tables;     // The tables of nf_tables that are ours: "inet spoke".
  std::vector<std::string> published;  // The published iptables rules, with back end and chain.
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
// Returns "file", "filter", "qdisc", "link", "rule", "route", "table" or "iptables rule".
std::string_view NameOf(RemovalKind kind);

struct Removal {
  RemovalKind kind = RemovalKind::kFile;
  size_t object = 0;  // Its place in that list of NodeTraces; for a hook, that of its link.
  std::string what;   // The object, for people.

  bool operator==(const Removal&) const = default;
};

// An object that looks like ours and stays.
struct LeftAlone {
  std::string what;
  std::string why;

  bool operator==(const LeftAlone&) const = default;
};

struct CleanupPlan {
  std::vector<Removal> removals;  // The removals, in order.
  std::vector<LeftAlone> left;
  std::vector<std::string> pods_links;  // The names of links that pods use, which go with the rest.
};

// Plans the removals. The runtime's configuration goes first, so that no new pod asks for the
// plugin; then what leads packets past the rules; then links, and what is left of rules, routes and
// tables; files, and the lock, last. What goes with something else (a route with its device) is not
// listed by itself.
CleanupPlan PlanCleanup(const NodeTraces& traces);

}  // namespace spoke::netagent
