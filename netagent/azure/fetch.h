// A function by which this folder reaches Azure's node-local services, so that tests can answer.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/http/message.h"

namespace spoke::netagent::azure {

// Sends the request and waits for the whole response, without following redirects and never by way
// of a proxy: both services refuse what a proxy has touched. Errors: kUnavailable (no connection),
// kDeadlineExceeded (not within `timeout`), others for what will not pass; any HTTP status is a
// response and no error.
using Fetch = std::function<absl::StatusOr<http::Response>(const http::Request& request,
                                                           absl::Duration timeout)>;

}  // namespace spoke::netagent::azure
