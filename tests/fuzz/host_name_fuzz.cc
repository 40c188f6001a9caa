// Names of hosts from any text. The laws: what parses is in lower case, short enough for the DNS,
// parses to itself, and is no address; what does not says why.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ipam-server/policy/host_name.h"
#include "lib/base/check.h"
#include "lib/ip/address.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spoke::ipam;  // NOLINT(google-build-using-namespace)
  const auto pattern = ParseHostPattern({reinterpret_cast<const char*>(data), size});
  if (!pattern.ok()) {
    CHECK(pattern.status().code() == absl::StatusCode::kInvalidArgument, "bad text has one code");
    CHECK(!pattern.status().message().empty(), "a refusal has a reason");
    return 0;
  }
  CHECK(pattern->size() <= 253 && pattern->size() == size, "a name fits, and none is shortened");
  CHECK(!spoke::ip::Address::Parse(*pattern).ok(), "a name is no address");
  CHECK((pattern->find('*') != std::string_view::npos) == IsWildcard(*pattern),
        "a star is only at the left");
  const auto again = ParseHostPattern(*pattern);
  CHECK(again.ok() && *again == *pattern, "a name parses to itself");
  return 0;
}
