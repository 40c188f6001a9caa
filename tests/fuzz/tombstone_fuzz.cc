// Feeds what the agent reads as a request, from the plugin's socket or from a file that a DEL has
// left: never a crash, what the codec takes protobuf takes for the same, and what is taken makes
// sense.
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/base/check.h"
#include "lib/cni_api/wire.h"
#include "netagent/cni/cni_handler.h"
#include "netagent/cni/tombstones.h"
#include "proto/spoke/v1/cni.pb.h"

namespace {

using spoke::cni::Request;

// Both codecs write what they have read, the fields in the order of their numbers. Ours leaves out
// messages of which nothing is said, and a weight of 1: so what protobuf has read of the input, and
// what it reads of ours, are compared as ours writes them.
void CheckSameAsProtobuf(const Request& ours, const std::string& bytes) {
  spoke::v1::CniRequest theirs;
  CHECK(theirs.ParseFromString(bytes), "what the agent takes, protobuf takes");
  const auto again = spoke::cni::DecodeRequest(theirs.SerializeAsString());
  CHECK(again && *again == ours, "protobuf has read the same");
  CHECK(spoke::cni::DecodeRequest(EncodeRequest(ours)) == ours, "what is written is read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spoke::netagent;  // NOLINT(google-build-using-namespace): one function.
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto request = spoke::cni::DecodeRequest(bytes);
  if (!request) return 0;
  CheckSameAsProtobuf(*request, bytes);
  const AttachmentKey key{request->container_id, request->ifname};
  const auto deferred = ParseTombstone(TombstoneName(key), bytes);
  CHECK(!deferred.ok() || (*deferred == key && !key.container_id.empty() && !key.ifname.empty()),
        "a tombstone that is taken names an attachment");
  CHECK(!ParseTombstone("another name", bytes).ok(), "a tombstone has its own name");
  if (const auto asked = AssignmentOf(*request); asked.ok()) {
    CHECK(asked->key == key, "a request keeps its key");
    CHECK(asked->addresses.size() <= kMaxRequests, "options are bounded");
  }
  const auto expected = ExpectationOf(request->expected.value_or(spoke::cni::Attachment()));
  CHECK(!expected.ok() || expected->addresses.size() <= kMaxRequests, "addresses are bounded");
  for (const AttachmentKey& valid : ValidOf(*request)) {
    CHECK(!valid.container_id.empty() && !valid.ifname.empty(), "a valid attachment has a key");
  }
  return 0;
}
