// Many HTTP calls at once, for one thread that drives a state machine: it sends, waits, and is told
// what completed. Implementations: CurlTransport; PlainTransport for the cloud's services on the
// machine itself; FakeTransport in tests.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/http/message.h"

namespace spoke::http {

struct Completion {
  uint64_t id = 0;
  // The response, which may be an error of HTTP's own (404, 500). Errors:
  // kDeadlineExceeded: no answer in time, or none that moved on, or the request had left only in
  //   part when its time to leave was over; it may have happened.
  // kUnavailable: not reached, refused, reset, or cut short; it may have happened unless not
  //   reached, and may be sent again as far as the request allows.
  // kFailedPrecondition: TLS does not trust the other side, or it not us; the text says why.
  // kResourceExhausted: the answer is larger than allowed, or too many calls wait already.
  // kInvalidArgument: no request that could be sent.
  absl::StatusOr<Response> response;
  // The response has a part of the body of a streamed call, which goes on. The last completion of
  // the call, an error too, has false here and the rest of the body.
  bool more = false;
};

// The interface. Not thread-safe except for Wake(): one thread owns it.
class Transport {
 public:
  virtual ~Transport() = default;

  // Starts a call and returns at once; its completion, an error too, comes from Wait(). `id` is the
  // caller's, and unique among the calls under way. `timeout` counts from now, waiting for its turn
  // included: a call that never got one completes when others make room, or with the end of
  // Request::send_within.
  virtual void Send(uint64_t id, Request request, absl::Duration timeout) = 0;

  // Returns what has completed, as soon as anything has, or Wake() was called, or `wait` is over:
  // then perhaps nothing. Calls move on only in here, so it must be called again and again.
  virtual std::vector<Completion> Wait(absl::Duration wait) = 0;

  // Makes the present or the next Wait() return. Any thread may call it.
  virtual void Wake() = 0;
};

// Makes one call over a transport that has no other, and blocks. Errors: as Completion.
absl::StatusOr<Response> Fetch(Transport& transport, Request request, absl::Duration timeout);

}  // namespace spoke::http
