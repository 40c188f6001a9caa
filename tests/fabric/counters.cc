#include "tests/fabric/counters.h"

#include "fmt/core.h"

namespace spoke::fabric {

std::string Counters::ToText() const {
  std::string text = fmt::format(
      "received={}\nforwarded={}\nreplied={}\nicmp_errors={}\ntagged={}\nsend_failed={}\n"
      "overflowed={}\ntables_loaded={}\ntables_refused={}\naddresses={}\n",
      received, forwarded, replied, icmp_errors, tagged, send_failed, overflowed, tables_loaded,
      tables_refused, addresses);
  for (const DropReason reason : kDropReasons) {
    text += fmt::format("dropped_{}={}\n", NameOf(reason), dropped[static_cast<size_t>(reason)]);
  }
  return text;
}

}  // namespace spoke::fabric
