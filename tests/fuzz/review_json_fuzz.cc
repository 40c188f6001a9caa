// Feeds what the API server's address may answer about tokens, pods and nodes: never a crash,
// nothing above the limits, and nobody is who the answer does not name.
#include <cstddef>
#include <cstdint>

#include "ipam-server/enroll/node_identity.h"
#include "ipam-server/enroll/review_json.h"
#include "lib/base/check.h"

namespace ipam = spoke::ipam;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto token = ipam::ParseTokenReview(text);
  const auto pod = ipam::ParsePod(text);
  const auto node = ipam::ParseNode(text);
  CHECK(token.ok() + pod.ok() + node.ok() <= 1, "one text is of one kind");
  if (token.ok()) {
    CHECK(token->user.empty() || token->authenticated, "who is not known has no name");
    CHECK(token->user.size() <= size, "names come from the text");
    CHECK(token->audiences.size() <= 64, "lists are limited");
  } else {
    CHECK(absl::IsInvalidArgument(token.status()), "an answer is refused as one");
  }
  if (pod.ok()) {
    CHECK(!pod->name.empty() && !pod->uid.empty(), "a pod is somebody");
  } else {
    CHECK(absl::IsInvalidArgument(pod.status()), "an answer is refused as one");
  }
  if (node.ok()) {
    const auto identity = ipam::IdentityIn(ipam::IdentityUris(*node), node->name);
    if (node->name.find('?') == std::string::npos) {
      CHECK(identity.ok() && identity->labels == node->labels, "a certificate bears all labels");
    }
  } else {
    CHECK(absl::IsInvalidArgument(node.status()), "an answer is refused as one");
  }
  return 0;
}
