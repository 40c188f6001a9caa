// A member of etcd, as a server sees it, that takes the fences out of the transactions: what a
// server would be that was built without them, with no such switch in the product.
//
// Three things refuse the write of a server that was deposed. Its transactions compare the leader's
// key; and each of its commits compares the store's own record and the number of the next piece of
// history, which the new leader has changed. The last two cover a commit that fits into one
// transaction only. A canary without the first alone would mostly die of the others, so this takes
// out every compare of a write that is not one for the leadership itself.
//
// A leader also looks at its key at each renewal of its lease, and ends when it finds another's.
// For two leaders at once, HoldLeader hides that from the server behind this member.
#pragma once

#include <memory>
#include <string>

namespace spoke::ha {

// Listens on loopback. Thread-safe. Calls go to one member, in plain text and without a user.
class FenceStripper {
 public:
  enum class Fence { kKept, kTakenOut };

  // `member` is HOST:PORT; `leader_key` is the key of etcd whose writes are left alone. Ends the
  // test when it cannot listen.
  FenceStripper(const std::string& member, const std::string& leader_key, Fence fence);
  ~FenceStripper();
  FenceStripper(const FenceStripper&) = delete;
  FenceStripper& operator=(const FenceStripper&) = delete;

  // "http://127.0.0.1:PORT", for a server's configuration.
  std::string endpoint() const;

  // From now on, reads of the leader's key are answered with what it is now. Ends the test when the
  // member does not answer.
  void HoldLeader();

 private:
  class Services;

  const std::unique_ptr<Services> services_;
  int port_ = 0;
};

}  // namespace spoke::ha
