#include "ipam-server/policy/resolved_names.h"

#include <set>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/policy/platform_blocks.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {
namespace {

void AddAddress(const HostName& host, const ip::Address& address, ParsedFiles& parsed,
                SourcedObject& object) {
  const ip::Prefix block = ip::Prefix::Host(address);
  std::string origin = fmt::format("{} resolves to {}", host.name, address.ToString());
  const absl::Status outside = CheckOutsidePlatform(block);
  if (!outside.ok()) {
    parsed.problems.push_back({.file = object.file,
                               .line = host.line,
                               .path = host.path,
                               .message = fmt::format("{}: {}", origin, base::MessageOf(outside)),
                               .conflict = true});
    return;
  }
  object.resolved.push_back({.block = block,
                             .space = host.space,
                             .shares = {},
                             .why = host.why,
                             .path = host.path,
                             .line = host.line,
                             .origin = std::move(origin)});
}

}  // namespace

std::vector<std::string> NamesToResolve(const ParsedFiles& parsed) {
  std::set<std::string> names;
  for (const SourcedObject& object : parsed.objects) {
    if (object.spec == nullptr) continue;
    for (HostName& host : object.spec->HostNames()) names.insert(std::move(host.name));
  }
  return {names.begin(), names.end()};
}

void AddResolved(const std::map<std::string, std::vector<ip::Address>>& resolved,
                 ParsedFiles& parsed) {
  for (SourcedObject& object : parsed.objects) {
    if (object.spec == nullptr) continue;
    for (const HostName& host : object.spec->HostNames()) {
      const auto found = resolved.find(host.name);
      if (found == resolved.end()) continue;
      for (const ip::Address& address : found->second) AddAddress(host, address, parsed, object);
    }
  }
}

}  // namespace spoke::ipam
