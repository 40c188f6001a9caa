// Text that came from outside, as UTF-8 (RFC 3629). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spoke::cni {

// How many bytes the first character of `text` has, and which it is; 0: there is none, or it is not
// UTF-8 (a surrogate, an overlong form or anything above U+10FFFF).
size_t DecodeUtf8(std::string_view text, uint32_t& character);

bool IsUtf8(std::string_view text);

// `text` with U+FFFD in the place of each byte that belongs to no character.
std::string ToUtf8(std::string_view text);

// White space as Unicode's property White_Space has it.
bool IsWhiteSpace(uint32_t character);

}  // namespace spoke::cni
