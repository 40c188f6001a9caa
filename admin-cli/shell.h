// The answers to what shells ask of spokectl while a command line is being typed.
#pragma once

#include <string>
#include <vector>

#include "admin-cli/session.h"

namespace spoke::ctl {

// Runs the hidden verb `__complete [--] WORD...`: prints what may stand in the place of the last
// word. Names come from the server, which has two seconds; without it there are just fewer. Returns
// always 0.
int RunComplete(const Command& root, const std::vector<std::string>& words, const World& world);

}  // namespace spoke::ctl
