// The kinds of policy objects. To add one: a file in kinds/ with its class and its reader, the row
// here (kind.cc), the file in CMakeLists.txt; nothing else knows the kinds. Pure.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ipam-server/policy/objects/object.h"
#include "lib/config/config_text.h"

namespace spoke::ipam {

struct Kind {
  std::string_view name;  // "Pool"
  // Reads the spec of the object called `name` (empty: it has mistakes itself). Takes down what is
  // wrong in `spec`; the result counts only when nothing is. Never nullptr.
  std::shared_ptr<const Spec> (*read)(const config::ConfigMap& spec, const std::string& name);
};

// The kinds, sorted by name.
std::span<const Kind> Kinds();

// Returns the kind; nullptr: there is none of that name.
const Kind* FindKind(std::string_view name);

// Returns "ClusterNetwork, DestinationGroup, ...", for messages.
std::string KnownKinds();

}  // namespace spoke::ipam
