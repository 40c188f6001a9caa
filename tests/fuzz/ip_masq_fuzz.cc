// Feeds what somebody may write into ip-masq-agent's files: taken or refused, and the same file
// twice says what it says once.
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/base/check.h"
#include "netagent/egress/ip_masq_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto once = spoke::netagent::ParseIpMasq({{"a", text}});
  const auto twice = spoke::netagent::ParseIpMasq({{"a", text}, {"a", text}});
  CHECK(once.ok() == twice.ok(), "a file does not become wrong by being there twice");
  if (!once.ok()) return 0;
  CHECK(once->config == twice->config, "a file that is there twice says nothing more");
  CHECK(once->resync == twice->resync && once->resync >= absl::Seconds(1),
        "files are not looked at without a pause");
  return 0;
}
