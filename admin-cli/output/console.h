// The places where spokectl reads and writes. One thread uses them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::ctl {

class Console {
 public:
  virtual ~Console() = default;

  // Standard output and standard error, not buffered beyond the call. A failure is kept for
  // written().
  virtual void Out(std::string_view text) = 0;
  virtual void Err(std::string_view text) = 0;
  // Returns all of standard input. Errors: kInternal, kResourceExhausted (more than `max_bytes`).
  virtual absl::StatusOr<std::string> ReadInput(size_t max_bytes) = 0;

  virtual bool out_is_terminal() const = 0;
  virtual bool err_is_terminal() const = 0;
  // Returns whether everything has reached standard output so far.
  virtual absl::Status written() const = 0;
};

// The process's own console.
class RealConsole final : public Console {
 public:
  void Out(std::string_view text) override;
  void Err(std::string_view text) override;
  absl::StatusOr<std::string> ReadInput(size_t max_bytes) override;
  bool out_is_terminal() const override;
  bool err_is_terminal() const override;
  absl::Status written() const override { return written_; }

 private:
  absl::Status written_;
};

// Keeps what is written to standard output, and passes everything else on to `under`, which must
// outlive it. It is for output that is to appear at once.
class HeldConsole final : public Console {
 public:
  explicit HeldConsole(Console& under) : under_(under) {}

  const std::string& held() const { return held_; }

  void Out(std::string_view text) override { held_ += text; }
  void Err(std::string_view text) override { under_.Err(text); }
  absl::StatusOr<std::string> ReadInput(size_t max_bytes) override {
    return under_.ReadInput(max_bytes);
  }
  bool out_is_terminal() const override { return under_.out_is_terminal(); }
  bool err_is_terminal() const override { return under_.err_is_terminal(); }
  absl::Status written() const override { return under_.written(); }

 private:
  Console& under_;
  std::string held_;
};

// A line on standard error that shows how far long work is, when that is a terminal; else nothing.
// Not thread-safe; borrows the console.

// Returns "audit  [#####.....]  50%  3 of 6 nodes": `text` is what stands behind the bar. With a
// total of 0 there is no bar.
std::string ProgressLine(std::string_view what, uint64_t done, uint64_t total,
                         std::string_view text);

class Progress {
 public:
  Progress(Console& console, std::string what) : console_(console), what_(std::move(what)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Takes the line away, so that what follows stands alone.
  ~Progress() { Clear(); }

  // Draws the line when it differs from the last.
  void Show(uint64_t done, uint64_t total, std::string_view text);
  void Clear();

 private:
  Console& console_;
  std::string what_;
  std::string shown_;
};

}  // namespace spoke::ctl
