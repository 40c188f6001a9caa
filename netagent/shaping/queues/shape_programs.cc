#include "netagent/shaping/queues/shape_programs.h"

#include <bpf/bpf.h>

#include <array>

#include "netagent/bpf/embedded_object.h"
#include "netagent/shaping/queues/layout.h"

// The object that clang made of programs.bpf.c.
// NOLINTNEXTLINE(readability-identifier-naming): the assembler has such names.
SPOKE_EMBED_OBJECT(spoke_shaper_object, SPOKE_SHAPER_OBJECT);

namespace spoke::netagent {
namespace {

constexpr std::array kMaps = {"spoke_shape",   "spoke_scopes4", "spoke_scopes6", "spoke_flows",
                              "spoke_offered", "spoke_buckets", "spoke_links"};
constexpr std::array kHolders = {kClassify};

bool IsSameLayout(int map) {
  constexpr uint32_t kFirst = 0;
  uint32_t layout = 0;
  return bpf_map_lookup_elem(map, &kFirst, &layout) == 0 && layout == SPOKE_SHAPE_LAYOUT;
}

}  // namespace

ProgramSet ShapePrograms() {
  const auto size = static_cast<size_t>(spoke_shaper_object_end - spoke_shaper_object);
  return {.object = {spoke_shaper_object, size},
          .name = "spoke_shaper",
          .what = "the programs that shape",
          .maps = kMaps,
          .holders = kHolders,
          .layout_map = "spoke_shape",
          .is_same_layout = &IsSameLayout};
}

}  // namespace spoke::netagent
