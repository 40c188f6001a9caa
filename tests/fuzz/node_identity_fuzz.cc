// Feeds what a certificate's URIs may say of a node: never a crash, and never another node's
// labels.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "ipam-server/enroll/node_identity.h"
#include "lib/base/check.h"

namespace ipam = spoke::ipam;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> uris = absl::StrSplit(text, '\n');
  const auto identity = ipam::IdentityIn(uris, "node-1");
  if (!identity.ok()) {
    CHECK(absl::IsInvalidArgument(identity.status()), "it is the certificate that is wrong");
    return 0;
  }
  spoke::node_api::Hello hello;
  CHECK(ipam::TakeIdentity(*identity, hello).ok(), "who says nothing contradicts nothing");
  CHECK(hello.node.instance == identity->instance, "what is proved counts");
  if (!identity->labels || identity->instance.find("://") != std::string::npos) return 0;
  const auto again = ipam::IdentityIn(
      ipam::IdentityUris({.name = "node-1", .provider_id = "", .labels = *identity->labels}),
      "node-1");
  CHECK(again.ok() && again->labels == identity->labels, "labels are written as they are read");
  return 0;
}
