#include "lib/node_checks/facts/virtual_services.h"

#include <algorithm>
#include <array>

namespace spoke::node_checks {

// The format is that of ip_vs_ctl.c: three lines of headings, then a line for each service, which
// begins with its protocol or FWM, and for each of its servers one that begins with "  ->".
bool HasVirtualServices(std::string_view ip_vs) {
  constexpr std::array<std::string_view, 4> kBeginnings = {"TCP ", "UDP ", "SCTP", "FWM "};
  while (!ip_vs.empty()) {
    const size_t end = std::min(ip_vs.find('\n'), ip_vs.size());
    const std::string_view line = ip_vs.substr(0, end);
    if (std::any_of(kBeginnings.begin(), kBeginnings.end(),
                    [&](std::string_view beginning) { return line.starts_with(beginning); })) {
      return true;
    }
    ip_vs.remove_prefix(std::min(end + 1, ip_vs.size()));
  }
  return false;
}

}  // namespace spoke::node_checks
