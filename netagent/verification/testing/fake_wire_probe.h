// A WireProbe for tests: answers for the addresses it is told to.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "netagent/verification/wire_probe.h"

namespace spoke::netagent {

// Not thread-safe.
class FakeWireProbe final : public WireProbe {
 public:
  absl::Status Send(const ip::Address& address) override {
    if (!failure.ok()) return failure;
    sent.push_back(address);
    if (delivered.contains(address)) answered_.insert(address);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<ip::Address>> TakeAnswered() override {
    if (!failure.ok()) return failure;
    const std::set<ip::Address> answered = std::exchange(answered_, {});
    return std::vector<ip::Address>(answered.begin(), answered.end());
  }
  void Rest() override {
    ++rests;
    answered_.clear();
  }

  std::set<ip::Address> delivered;  // The addresses that the fabric delivers for.
  absl::Status failure;             // The outcome of every call, if not OK.
  std::vector<ip::Address> sent;
  int rests = 0;

 private:
  std::set<ip::Address> answered_;
};

}  // namespace spoke::netagent
