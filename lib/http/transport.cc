#include "lib/http/transport.h"

#include <utility>

namespace spoke::http {

absl::StatusOr<Response> Fetch(Transport& transport, Request request, absl::Duration timeout) {
  transport.Send(1, std::move(request), timeout);
  for (;;) {
    std::vector<Completion> completed = transport.Wait(timeout);
    if (!completed.empty()) return std::move(completed.front().response);
  }
}

}  // namespace spoke::http
