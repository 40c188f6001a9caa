// What must hold in every state that is reached. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/search/world.h"

namespace spoke::search {

// Each returns what is broken, in words that are the same for the same kind; empty: nothing.

std::string_view CheckWorld(const World& world);

// A pod has just come to the node, `before` it was there.
std::string_view CheckNewPod(const World& before, const World& after, size_t node, uint8_t pod);

}  // namespace spoke::search
