// Makes a unified diff of two texts, as `diff -u` writes it. Pure.
#pragma once

#include <string>
#include <string_view>

namespace spoke::ctl {

struct DiffNames {
  std::string before;  // The name behind "---"; `after` is the one behind "+++".
  std::string after;
};

// Returns hunks with three lines of context, empty when the texts have the same lines; with the
// fewest changed lines as long as those are at most a thousand, else with all that differs replaced
// as one piece. A final line break more or less is no difference. `colours`: for a terminal.
// Control characters in lines become "?", except tabs.
std::string UnifiedDiff(std::string_view before, std::string_view after, const DiffNames& names,
                        bool colours);

}  // namespace spoke::ctl
