// Reasons from any text. The laws: what is read is bounded, and written and read again it is the
// same; an address is a socket or a port, and never both.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/rpc/health_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> reasons = spoke::rpc::SplitReasons(text);
  CHECK(reasons.size() <= spoke::rpc::kMaxReasons, "reasons are bounded");
  const std::string joined = spoke::rpc::JoinReasons(reasons);
  CHECK(joined.size() <= spoke::rpc::kMaxReasonBytes, "their text is bounded");
  if (text.size() < spoke::rpc::kMaxReasonBytes / 2) {
    CHECK(spoke::rpc::SplitReasons(joined) == reasons, "what is written is read as it was");
  }
  if (spoke::rpc::CheckHealthAddress(text).ok()) {
    CHECK(spoke::rpc::SocketPathOf(text).empty() == !text.starts_with("unix:"),
          "an address is a socket or a port");
  }
  return 0;
}
