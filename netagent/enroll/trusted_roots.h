// Which roots an agent trusts: those of its configuration's file, and those that the server has
// handed it with its certificate, so that a new root of the authority reaches a node whose file
// nobody changes. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace spoke::netagent {

// Returns the text of a file that keeps `roots`, handed out while `configured` was trusted; empty
// when they have none in common with `trusted`: whoever hands roots out bears the signature of one.
std::string HandedText(std::string_view configured, std::string_view trusted,
                       std::string_view roots);

// Returns the certificates in PEM, each once: those of `configured`, and those of `handed`, as
// HandedText() wrote it, unless the configured ones were replaced by others since. Text around
// certificates is left out.
std::string TrustedRoots(std::string_view configured, std::string_view handed);

}  // namespace spoke::netagent
