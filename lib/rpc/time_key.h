// The key by which a server says what time it is, at the beginning of a call: milliseconds since
// 1970, in decimal digits.
#pragma once

namespace spoke::rpc {

// The server's metadata, sent as soon as it has the call, before any message.
inline constexpr const char* kTimeKey = "spoke-time-ms";

}  // namespace spoke::rpc
