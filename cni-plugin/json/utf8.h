// Text that came from outside, as UTF-8 (RFC 3629). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spoke::cni {

bool IsUtf8(std::string_view text);

// Returns `text` with U+FFFD in the place of each byte that belongs to no character.
std::string ToUtf8(std::string_view text);

// Tells white space as Unicode's property White_Space has it.
bool IsWhiteSpace(uint32_t character);

}  // namespace spoke::cni
