// The request that somebody makes of an endpoint for metrics or health, and whether the token that
// they show is ours. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace spoke::telemetry {

// The length of the shortest token. A shorter line is no token: it could be guessed, or left over
// from an editor.
inline constexpr size_t kMinTokenBytes = 16;

struct ScrapeRequest {
  // The path that a GET asks for, without its query and within the head; empty: it is no GET.
  std::string_view path;
  // The token of "Authorization: Bearer TOKEN", within the head; empty: none.
  std::string_view token;
};

// Reads `head`, an HTTP/1 request up to the empty line. Whatever it is, there is an answer to it.
ScrapeRequest ParseScrapeRequest(std::string_view head);

// Returns whether `token` is one of the lines of `file`, without the blanks around them. Takes as
// long for a wrong token as for one that is almost right.
bool IsTokenOf(std::string_view file, std::string_view token);

}  // namespace spoke::telemetry
