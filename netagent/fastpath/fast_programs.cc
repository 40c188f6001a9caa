#include "netagent/fastpath/fast_programs.h"

#include <bpf/bpf.h>

#include <array>

#include "netagent/bpf/embedded_object.h"
#include "netagent/fastpath/layout.h"

// The object that clang made of programs.bpf.c.
// NOLINTNEXTLINE(readability-identifier-naming): the assembler has such names.
SPOKE_EMBED_OBJECT(spoke_fast_path_object, SPOKE_FAST_PATH_OBJECT);

namespace spoke::netagent {
namespace {

constexpr std::array kMaps = {"spoke_turn",    "spoke_tables",   "spoke_ports",    "spoke_places4",
                              "spoke_places6", "spoke_slots",    "spoke_count",    "spoke_pairs4",
                              "spoke_pairs6",  "spoke_pairs_of", "spoke_excluded", "spoke_refused"};
// The maps that last: the counts, by slot, and the last id.
constexpr std::array kLastingMaps = {"spoke_turn", "spoke_count"};
constexpr std::array kHolders = {kFromPod, kFromWire};

// Returns whether the table in force was written by an agent with this layout.
bool IsSameLayout(int tables) {
  for (uint32_t which = 0; which < 2; ++which) {
    spoke_table table{};
    if (bpf_map_lookup_elem(tables, &which, &table) != 0) return false;
    if (table.layout != 0 && table.layout != SPOKE_LAYOUT) return false;
  }
  return true;
}

}  // namespace

ProgramSet FastPrograms() {
  const auto size = static_cast<size_t>(spoke_fast_path_object_end - spoke_fast_path_object);
  return {.object = {spoke_fast_path_object, size},
          .name = "spoke_fast_path",
          .what = "the fast path's programs",
          .maps = kMaps,
          .lasting_maps = kLastingMaps,
          .holders = kHolders,
          .layout_map = "spoke_tables",
          .is_same_layout = &IsSameLayout};
}

}  // namespace spoke::netagent
