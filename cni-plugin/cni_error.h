// What the plugin answers when it cannot do what it was asked. Pure.
//
// The plugin uses no absl::Status: it is exec'd for every pod, and each library costs page faults.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace spoke::cni {

// Codes of the CNI spec 1.0.0, section 5 "Error"; those from 100 are this plugin's.
inline constexpr unsigned kIncompatibleVersion = 1;
inline constexpr unsigned kInvalidEnvironment = 4;
inline constexpr unsigned kIoFailure = 5;
inline constexpr unsigned kDecodingFailure = 6;
inline constexpr unsigned kInvalidConfig = 7;
inline constexpr unsigned kTryAgainLater = 11;
inline constexpr unsigned kInternal = 100;

struct Error {
  unsigned code = kInternal;
  std::string message;
  std::string details;

  bool operator==(const Error&) const = default;
};

// A T, or why there is none.
template <typename T>
class Expected {
 public:
  Expected(T value) : content_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Expected(Error error) : content_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return content_.index() == 0; }
  const Error& error() const { return std::get<1>(content_); }
  T& operator*() { return std::get<0>(content_); }
  const T& operator*() const { return std::get<0>(content_); }
  T* operator->() { return &std::get<0>(content_); }
  const T* operator->() const { return &std::get<0>(content_); }

 private:
  std::variant<T, Error> content_;
};

}  // namespace spoke::cni
