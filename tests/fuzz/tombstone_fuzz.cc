// Feeds what the agent reads as a request, from the plugin's socket or from a file that a DEL has
// left: never a crash, and what is taken makes sense.
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/base/check.h"
#include "netagent/cni/cni_messages.h"
#include "netagent/cni/tombstones.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spoke::netagent;  // NOLINT(google-build-using-namespace): one function.
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  spoke::v1::CniRequest request;
  if (!request.ParseFromString(bytes)) return 0;
  const AttachmentKey key{request.container_id(), request.ifname()};
  const auto deferred = ParseTombstone(TombstoneName(key), bytes);
  CHECK(!deferred.ok() || (*deferred == key && !key.container_id.empty() && !key.ifname.empty()),
        "a tombstone that is taken names an attachment");
  CHECK(!ParseTombstone("another name", bytes).ok(), "a tombstone has its own name");
  if (const auto asked = AssignmentOf(request); asked.ok()) {
    CHECK(asked->key == key, "a request keeps its key");
    CHECK(asked->addresses.size() <= static_cast<size_t>(kMaxRequests), "options are bounded");
  }
  if (const auto expected = ExpectationOf(request.expected()); expected.ok()) {
    CHECK(expected->addresses.size() <= static_cast<size_t>(kMaxRequests), "addresses are bounded");
  }
  for (const AttachmentKey& valid : ValidOf(request)) {
    CHECK(!valid.container_id.empty() && !valid.ifname.empty(), "a valid attachment has a key");
  }
  return 0;
}
