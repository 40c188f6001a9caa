// HTTP requests and responses as plain values, so that what speaks HTTP can be decided and tested
// without a socket. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

  bool operator==(const Request&) const = default;
};

struct Response {
  int status = 0;
  Headers headers;
  std::string body;

  bool operator==(const Response&) const = default;
};

}  // namespace spoke::http
