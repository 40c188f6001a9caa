// What an answer of the API server means for who asked. Pure.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "lib/http/message.h"

namespace spoke::kubernetes {

// Returns OK for 2xx, else what the API server says of it, behind `what`. kNotFound: 404. kAborted:
// 409, the object has changed meanwhile. kOutOfRange: 410, the version asked for is forgotten.
// kFailedPrecondition: 401 and 403, an operator has to give us rights; 400 and 422, the object
// cannot be. kUnavailable: 429 and 5xx. kInternal: all else.
absl::Status StatusOfAnswer(const http::Response& response, std::string_view what);

// The status of that HTTP code in the same way, with `message`; for errors within a watch.
absl::Status StatusOfCode(int code, std::string_view message);

}  // namespace spoke::kubernetes
