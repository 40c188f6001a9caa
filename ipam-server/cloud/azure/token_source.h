// When to ask for a token of one identity, when again, and which one to use meanwhile. Pure: the
// caller has the clock, the network and the files. Not thread-safe.
//
//   if (now >= source.NextRequest()) { request = source.Start(now, read); ... send it ... }
//   ... when it completes:            source.Finish(response, now);
//   ... for each call:                source.TokenAt(now)
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/azure/token_request.h"
#include "lib/http/message.h"

namespace spoke::ipam::azure {

// The waits before the retries of a request that may yet succeed (404, 408, 410, 429, 5xx, no
// answer), as Microsoft gives them for managed identities; then the round has failed.
inline constexpr std::array kTokenRetryDelays = {
    absl::ZeroDuration(), absl::Seconds(2), absl::Seconds(6), absl::Seconds(14), absl::Seconds(30)};
// The rest before the next round, and after a refusal.
inline constexpr absl::Duration kTokenRest = absl::Seconds(60);
// The longest Retry-After that is obeyed.
inline constexpr absl::Duration kMaxTokenWait = absl::Minutes(5);
// A service that refuses every token must not make us fetch one for each call.
inline constexpr absl::Duration kMinRejectInterval = absl::Seconds(30);

class TokenSource {
 public:
  // Reads the file of a credential. Any error may come.
  using FileReader = std::function<absl::StatusOr<std::string>(const std::string& path)>;

  TokenSource(Identity identity, Endpoints endpoints);

  // The token to use, even while a refresh fails, as long as it lives.
  // Errors: kUnavailable (none, with the identity and what was wrong last).
  absl::StatusOr<std::string> TokenAt(absl::Time now) const;

  // Returns when Start() is to be called; the infinite future while a request is under way.
  absl::Time NextRequest() const;

  // The request to send, now under way. Errors: whatever kept it from being made (the file, the
  // settings); that counts as a failed round, so NextRequest() moves on.
  absl::StatusOr<http::Request> Start(absl::Time now, const FileReader& read);

  // What became of the request that is under way. The message of an error may be shown.
  // Errors: why there is no new token.
  absl::Status Finish(const absl::StatusOr<http::Response>& response, absl::Time now);

  // Notes that ARM said 401 to `token`. If that is the present one, another is asked for at once,
  // and none is given out before that has come or failed; not more often than kMinRejectInterval.
  void Reject(std::string_view token, absl::Time now);

  const Identity& identity() const { return identity_; }

 private:
  absl::Status Fail(const absl::Status& status, absl::Time now);
  absl::Status Retry(const absl::Status& status, absl::Duration at_least, absl::Time now);

  const Identity identity_;
  const Endpoints endpoints_;
  std::optional<Token> token_;
  bool rejected_ = false;
  absl::Time last_reject_ = absl::InfinitePast();
  bool under_way_ = false;
  size_t retries_ = 0;  // The retries of this round.
  absl::Time next_ = absl::InfinitePast();
  absl::Status last_error_;
};

}  // namespace spoke::ipam::azure
