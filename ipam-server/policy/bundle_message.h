// Bundles as agents get them (proto/spoke/v1/policy.proto). Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "ipam-server/policy/objects/bundle.h"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::ipam {

v1::PolicyBundle ToMessage(const BundleDelta& delta);

// The messages that lead from one bundle to another, made once for the thousands of nodes that
// need the same. They are shared because they may still wait in a stream's queue when they are no
// longer kept here. Not thread-safe; the owner of the BundleHistory owns it.
class BundleMessages {
 public:
  static constexpr size_t kKept = 32;

  // What brings an agent from `from` (nullptr: unknown) to `to`, which is not nullptr. An agent
  // that has `to` already needs none: the caller compares the pointers first.
  std::shared_ptr<const v1::PolicyBundle> Get(const std::shared_ptr<const Bundle>& from,
                                              const std::shared_ptr<const Bundle>& to);

 private:
  struct Made {
    // The bundle is held, so that no other can come to lie at the same place.
    std::shared_ptr<const Bundle> from;
    std::shared_ptr<const Bundle> to;
    std::shared_ptr<const v1::PolicyBundle> message;
  };

  std::deque<Made> made_;  // Oldest first.
};

}  // namespace spoke::ipam
