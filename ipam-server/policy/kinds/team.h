// The kind Team: which namespaces belong together, for accounting and budgets. Pure.
#pragma once

#include <map>
#include <string>

#include "ipam-server/policy/objects/object_set.h"

namespace spoke::ipam {

// The team of each namespace that has one.
std::map<std::string, std::string> TeamsByNamespace(const ObjectSet& set);

}  // namespace spoke::ipam
