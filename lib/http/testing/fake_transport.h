// A Transport for tests: a function answers, nothing moves on the wire, and no time passes.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "lib/http/transport.h"

namespace spoke::http {

class FakeTransport : public Transport {
 public:
  using Handler = std::function<absl::StatusOr<Response>(const Request&)>;

  // `handler` is called by Send(); nullptr leaves all calls open for Complete().
  explicit FakeTransport(Handler handler = nullptr) : handler_(std::move(handler)) {}

  void Send(uint64_t id, Request request, absl::Duration /*timeout*/) override {
    if (handler_) completed_.push_back({id, handler_(request)});
    sent_.emplace_back(id, std::move(request));
  }
  std::vector<Completion> Wait(absl::Duration /*wait*/) override {
    return std::exchange(completed_, {});
  }
  void Wake() override {}

  void Complete(uint64_t id, absl::StatusOr<Response> response, bool more = false) {
    completed_.push_back({id, std::move(response), more});
  }
  // All that was ever sent, in order.
  const std::vector<std::pair<uint64_t, Request>>& sent() const { return sent_; }

 private:
  Handler handler_;
  std::vector<std::pair<uint64_t, Request>> sent_;
  std::vector<Completion> completed_;
};

}  // namespace spoke::http
