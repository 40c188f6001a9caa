// Manual pages in man(7)'s language. Pure.
#pragma once

#include <string>

#include "admin-cli/command.h"

namespace spoke::ctl {

// Returns "spokectl.1" for the root, "spokectl-node.1" for a command of its.
std::string ManualPageName(const CommandPath& path);

// Returns the page of the root ({root}), or of one of its commands ({root, command}) with all its
// verbs. `version` stands at the foot; there is no date, so that equal programs have equal pages.
std::string ManualPage(const CommandPath& path, const std::string& version);

}  // namespace spoke::ctl
