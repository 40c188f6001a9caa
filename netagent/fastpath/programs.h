// The compiled programs of the fast path, loaded into the kernel or found there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"

struct bpf_object;

namespace spoke::netagent {

// By name, of maps and programs both.
inline constexpr const char* kFromPod = "spoke_from_pod";
inline constexpr const char* kFromWire = "spoke_from_wire";
inline constexpr const char* kLeaving = "spoke_leaving";

// Owns the programs and maps as descriptors. What filters refer to stays in the kernel without it.
// Not thread-safe.
class Programs {
 public:
  // Loads the programs. With `found` (the id of a program of ours that a device runs; 0: none) they
  // share its maps, and so go on where it is, unless those are of another layout (`fresh` then).
  // Errors: kUnimplemented (the kernel lacks something: its words); kPermissionDenied (bpf(2) is
  // not allowed); kInternal.
  static absl::StatusOr<Programs> Load(uint32_t found);

  ~Programs();
  Programs(Programs&&) noexcept;
  Programs& operator=(Programs&&) noexcept;

  // The maps were made anew: nothing of an earlier agent is in them.
  bool fresh() const { return fresh_; }

  // A descriptor that lives as long as this. The name is one of the program's own (CHECK).
  int program(const char* name) const;
  int map(const char* name) const;

 private:
  Programs() = default;

  bpf_object* object_ = nullptr;
  bool fresh_ = true;
};

}  // namespace spoke::netagent
