// A value, or the error that the plugin answers because there is none. Pure.
//
// The plugin uses neither absl nor fmt: it is exec'd for every pod, and each page of code that an
// exec touches costs more than the work (ADR 11). It is built without exceptions.
#pragma once

#include <optional>
#include <utility>

#include "lib/cni_api/error.h"

namespace spoke::cni {

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
