// The error that the plugin answers when it cannot do what it was asked. Pure.
//
// The plugin uses neither absl nor fmt: it is exec'd for every pod, and each page of code that an
// exec touches costs more than the work (ADR 11). It is built without exceptions.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace spoke::cni {

// The codes of the CNI spec 1.1.0, section 5 "Error", and 8 as the reference plugins have it; those
// from 100 are this plugin's and its agent's.
inline constexpr unsigned kIncompatibleVersion = 1;
inline constexpr unsigned kInvalidEnvironment = 4;
inline constexpr unsigned kIoFailure = 5;
inline constexpr unsigned kDecodingFailure = 6;
inline constexpr unsigned kInvalidConfig = 7;
inline constexpr unsigned kInvalidNetns = 8;
inline constexpr unsigned kTryAgainLater = 11;
inline constexpr unsigned kNotAvailable = 50;
inline constexpr unsigned kInternal = 100;

struct Error {
  unsigned code = kInternal;
  std::string message;  // The message: what happened to which object.
  std::string details;  // The details: what to do; may be empty.

  bool operator==(const Error&) const = default;
};

// A value of T, or the error why there is none.
template <typename T>
class Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Expected(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  const Error& error() const { return error_; }  // This may be called only if !ok().
  T& operator*() { return *value_; }             // These may be called only if ok().
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Error error_;
};

}  // namespace spoke::cni
