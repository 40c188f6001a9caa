// What tells how far this server's store had come, beside the store and in the hands of nodes: a
// key, the mark that was last written, and signed marks as nodes keep them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipam-server/ledger/recovery.h"

namespace spoke::ipam {

// "1.<store id>.<epoch>.<nodes>.<code in hex>": a mark that only who has `key` can have made.
std::string SignMark(const StoreMark& mark, std::string_view key);
// Errors: kInvalidArgument (no such text); kUnauthenticated (signed with another key).
absl::StatusOr<StoreMark> VerifyMark(std::string_view token, std::string_view key);

// Names this boot of the machine; empty: nobody can say.
std::string ThisBoot();

using StoreKey = std::array<char, 32>;

// The keys of marks where they come from elsewhere: the same on all servers of a cluster.
struct MarkKeys {
  std::string present;      // Signs; of 32 bytes.
  std::string former = "";  // Verifies what was signed before; empty: nothing was.
  bool made = false;        // It was just made, so that nothing can have been signed by it.
};

// Two files of mode 0600 in a directory that is not to be restored together with the store:
//   store.key    made at the first start, and never written again; none with MarkKeys
//   store.mark   the mark that was last written, and the boot in which it was
// Not thread-safe; the loop owns it once it runs.
class StoreWitness {
 public:
  // Makes the key when there is none and none is given. `boot_id`: of this machine, now. Errors: as
  // errno says; kFailedPrecondition (store.key is no key, or store.mark no mark: nothing is
  // overwritten).
  static absl::StatusOr<StoreWitness> Open(const std::string& directory, std::string boot_id,
                                           const std::optional<MarkKeys>& keys = std::nullopt);

  // The witness as it was found.
  const Witness& found() const { return found_; }
  std::string Sign(const StoreMark& mark) const { return SignMark(mark, key()); }
  absl::StatusOr<StoreMark> Verify(std::string_view token) const;
  // Replaces the mark, and makes the directory where it is missing. It is not synced: after a power
  // cut the machine has booted, and nodes are asked. Errors: as errno says.
  absl::Status Remember(const StoreMark& mark) const;

 private:
  std::string_view key() const { return {key_.data(), key_.size()}; }
  StoreWitness(std::string directory, std::string boot_id, const StoreKey& key, Witness found)
      : directory_(std::move(directory)),
        boot_id_(std::move(boot_id)),
        key_(key),
        found_(std::move(found)) {}

  std::string directory_;
  std::string boot_id_;
  StoreKey key_;
  std::string former_key_;  // Empty: none.
  Witness found_;
};

}  // namespace spoke::ipam
