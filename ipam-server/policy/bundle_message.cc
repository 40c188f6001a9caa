#include "ipam-server/policy/bundle_message.h"

#include <algorithm>

#include "lib/base/check.h"

namespace spoke::ipam {

v1::PolicyBundle ToMessage(const BundleDelta& delta) {
  v1::PolicyBundle out;
  out.set_version(delta.version);
  out.set_full(delta.full);
  out.set_base_version(delta.base_version);
  for (const auto& [key, value] : delta.changed) {
    CHECK(out.add_changed()->ParseFromString(value), "an entry of a bundle is a PolicyEntry");
  }
  for (const std::string& key : delta.removed) out.add_removed(key);
  return out;
}

std::shared_ptr<const v1::PolicyBundle> BundleMessages::Get(
    const std::shared_ptr<const Bundle>& from, const std::shared_ptr<const Bundle>& to) {
  CHECK(to != nullptr, "there is a bundle to lead to");
  const auto found = std::find_if(made_.begin(), made_.end(), [&](const Made& made) {
    return made.from == from && made.to == to;
  });
  if (found != made_.end()) return found->message;
  auto message = std::make_shared<const v1::PolicyBundle>(ToMessage(DeltaFrom(from.get(), *to)));
  made_.push_back({from, to, message});
  if (made_.size() > kKept) made_.pop_front();
  return message;
}

}  // namespace spoke::ipam
