// The key by which peers of a call say which version they are: text as base::ParseVersion() reads
// it.
#pragma once

namespace spoke::rpc {

// The metadata of a client at the beginning of a call, and of the server at its end.
inline constexpr const char* kVersionKey = "spoke-version";

}  // namespace spoke::rpc
