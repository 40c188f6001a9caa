// /etc/resolv.conf, which others write: never a crash, and each address once.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "lib/base/check.h"
#include "lib/node_checks/services/nameservers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto found = spoke::node_checks::ParseNameservers(text);
  CHECK(found.size() <= spoke::node_checks::kMaxNameservers, "there are only so many");
  CHECK(std::set(found.begin(), found.end()).size() == found.size(), "each is there once");
  return 0;
}
