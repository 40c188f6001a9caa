// What the names of hosts in policy files stand for at the moment they are applied. Pure: the
// caller resolves them.
//
//   ParsedFiles parsed = ParsePolicyFiles(files);
//   AddResolved(resolver.Resolve(NamesToResolve(parsed), limit), parsed);
//   ... PlanApply(set, parsed, world, now) ...
//
// A name is judged once, by what it resolves to for the server: a slip of the pen is found where it
// is made. What nodes learn later has to be kept apart by the nodes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ipam-server/policy/objects/object_set.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

// The names of all objects that could be read, each once, sorted.
std::vector<std::string> NamesToResolve(const ParsedFiles& parsed);

// Lets PlanApply() refuse objects with a name of `resolved` that has an address in a block of the
// set's networks. An address of the platform's own (platform_blocks.h) is a problem at once. A name
// that is not in `resolved` is nothing.
void AddResolved(const std::map<std::string, std::vector<ip::Address>>& resolved,
                 ParsedFiles& parsed);

}  // namespace spoke::ipam
