// Programs for the kernel's virtual machine, loaded into it or found there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"

struct bpf_object;

namespace spoke::netagent {

// Programs that belong together, as clang made them, and the maps they share. All text lives as
// long as the process.
struct ProgramSet {
  std::string_view object;  // The object file.
  const char* name;         // The name as tools show it.
  const char* what;         // The words for errors, such as "the fast path's programs".
  std::span<const char* const> maps;
  // The maps that mean the same in every layout.
  std::span<const char* const> lasting_maps;
  // The programs that hold all maps, also what only the agent uses: maps live as long as these
  // programs, without the agent, and the next one finds them by any of these.
  std::span<const char* const> holders;
  // The map that says which layout the maps have, and whether it is this one.
  const char* layout_map;
  bool (*is_same_layout)(int map);
};

// Returns the map of this name and this size of values that a program that a device runs has,
// whatever its layout; invalid: there is none.
os::UniqueFd FindMap(uint32_t program_id, const std::string& name, uint32_t value_size);

// Owns the programs and maps as descriptors. What filters refer to stays in the kernel without it.
// Not thread-safe.
class Programs {
 public:
  // Loads the programs. With `found` (the id of a program of ours that a device runs; 0: none) they
  // share its maps, and so go on where it is, unless those are of another layout (`fresh` then):
  // then only the lasting ones.
  // Errors: kUnimplemented (the kernel lacks something: its words); kPermissionDenied (bpf(2) is
  // not allowed); kInternal.
  static absl::StatusOr<Programs> Load(const ProgramSet& set, uint32_t found);

  ~Programs();
  Programs(Programs&&) noexcept;
  Programs& operator=(Programs&&) noexcept;

  // Returns whether the maps were made anew: nothing of an earlier agent is in them.
  bool fresh() const { return fresh_; }

  // Return a descriptor that lives as long as this. The name is one of the program's own (CHECK).
  int program(const char* name) const;
  int map(const char* name) const;
  // Returns the program's id, which filters say they run; 0: the kernel does not tell.
  uint32_t program_id(const char* name) const;

 private:
  Programs() = default;

  bpf_object* object_ = nullptr;
  bool fresh_ = true;
};

}  // namespace spoke::netagent
