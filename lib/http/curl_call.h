// One HTTP call as a handle of libcurl. Not thread-safe.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/http/curl_transport.h"

namespace spoke::http {

struct CurlEasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct CurlListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// A call, whose address must not change while libcurl has the handle.
class CurlCall {
 public:
  CurlCall(uint64_t id, Request request) : id_(id), request_(std::move(request)) {}
  CurlCall(const CurlCall&) = delete;
  CurlCall& operator=(const CurlCall&) = delete;

  // Makes the handle ready. Errors: kInvalidArgument (what no request may hold),
  // kResourceExhausted (libcurl has no memory).
  absl::Status Prepare(const CurlOptions& options, absl::Duration timeout);
  // Returns what the call came to; takes the response out.
  absl::StatusOr<Response> Finish(CURLcode code);

  uint64_t id() const { return id_; }
  CURL* handle() const { return handle_.get(); }
  const Request& request() const { return request_; }

 private:
  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnBody(char* data, size_t size, size_t count, void* self);
  absl::Status PrepareHeaders();
  void PrepareMethod();
  void PrepareTls(const CurlOptions& options);
  void PrepareProxy(const CurlOptions& options);
  absl::Status ErrorOf(CURLcode code) const;

  const uint64_t id_;
  const Request request_;
  std::unique_ptr<CURL, CurlEasyDeleter> handle_;
  std::unique_ptr<curl_slist, CurlListDeleter> headers_;
  Response response_;
  size_t max_body_ = 0;
  size_t header_bytes_ = 0;
  bool too_large_ = false;
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace spoke::http
