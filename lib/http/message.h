// HTTP requests and responses as plain values, so that what speaks HTTP can be decided and tested
// without a socket. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace spoke::http {

struct Header {
  std::string name;
  std::string value;

  bool operator==(const Header&) const = default;
};

// Headers in the order of the message; names compare without regard to case (RFC 9110, section
// 5.1).
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Header> headers) : headers_(headers) {}

  void Add(std::string name, std::string value);
  // Returns the first of that name.
  std::optional<std::string_view> Find(std::string_view name) const;
  // Returns all of that name, in their order: a list may be spread over several (RFC 9110, section
  // 5.3).
  std::vector<std::string_view> FindAll(std::string_view name) const;

  auto begin() const { return headers_.begin(); }
  auto end() const { return headers_.end(); }
  bool operator==(const Headers&) const = default;

 private:
  std::vector<Header> headers_;
};

struct Request {
  std::string method = "GET";
  // An absolute URL: "https://management.azure.com/subscriptions/...?api-version=...".
  std::string url;
  Headers headers;
  std::string body;
  // The time in which it has to leave in full, from when it is handed over to be sent. What has not
  // left by then is given up; the answer may take longer.
  absl::Duration send_within = absl::InfiniteDuration();
  // The body of a 200 is given in parts as they arrive (Completion::more), however long that takes.
  bool streamed = false;

  bool operator==(const Request&) const = default;
};

// Checks that a request can be sent as it is: no part of it could end its line and begin another.
// Errors: kInvalidArgument, which says what is wrong with the method, the URL or a header.
absl::Status CheckRequest(const Request& request);

// Returns what an error calls a request, "GET http://host/path": without the query, which may be
// signed.
std::string TargetOf(const Request& request);

// Returns whether a server waits for the body of such a request unless "Content-Length: 0" says
// that there is none (RFC 9110, section 8.6).
bool MayHaveBody(std::string_view method);

struct Response {
  int status = 0;
  Headers headers;
  std::string body;

  bool operator==(const Response&) const = default;
};

// The time that a server asks us to wait (RFC 9110, section 10.2.3).

// The longest wait that is believed. No server that means well asks for more, and a date may be
// wrong by years.
inline constexpr absl::Duration kMaxRetryAfter = absl::Hours(1);

// Reads seconds, or a date as in "Fri, 31 Dec 1999 23:59:59 GMT", which counts from `now`. What
// lies in the past is zero. nullopt: it is neither.
std::optional<absl::Duration> ParseRetryAfter(std::string_view value, absl::Time now);

// Reads the header Retry-After; nullopt: there is none, or none that can be read.
std::optional<absl::Duration> RetryAfter(const Headers& headers, absl::Time now);

}  // namespace spoke::http
