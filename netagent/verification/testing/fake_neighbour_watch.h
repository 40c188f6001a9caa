// A NeighbourWatch for tests: machines that have addresses and answer for them.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "netagent/verification/neighbour_watch.h"

namespace spoke::netagent {

// Not thread-safe.
class FakeNeighbourWatch final : public NeighbourWatch {
 public:
  absl::Status Listen(const Question& /*question*/) override {
    if (!failure.ok()) return failure;
    listening_ = true;
    return absl::OkStatus();
  }
  absl::Status Ask(const Question& question) override {
    RETURN_IF_ERROR(Listen(question));
    asked.push_back(question);
    const auto holder = holders.find(question.address);
    if (holder != holders.end()) Pass(Has(question.address, holder->second));
    if (proxy) Pass(Has(question.address, *proxy));
    return absl::OkStatus();
  }
  absl::Status Answer(const Question& question, const ip::MacAddress& asker) override {
    if (!failure.ok()) return failure;
    if (!question.address.is_v4()) return absl::InvalidArgumentError("only IPv4 is answered for");
    answered.emplace_back(question.address, asker);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<NeighbourClaim>> Take() override {
    if (!failure.ok()) return failure;
    return std::exchange(heard_, {});
  }

  // Lets a frame arrive. One of the node's own NIC, and one before Listen(), is not heard.
  void Pass(const NeighbourClaim& claim) {
    if (listening_ && claim.source != own) heard_.push_back(claim);
  }
  static NeighbourClaim Has(const ip::Address& address, const ip::MacAddress& mac) {
    return {.address = address, .mac = mac, .source = mac};
  }
  static NeighbourClaim Asks(const ip::Address& address, const ip::MacAddress& mac) {
    return {.kind = NeighbourClaim::Kind::kAsks, .address = address, .mac = mac, .source = mac};
  }

  ip::MacAddress own;                             // The node's NIC's.
  std::map<ip::Address, ip::MacAddress> holders;  // The machines that answer for addresses.
  std::optional<ip::MacAddress> proxy;            // The machine that answers for all.
  absl::Status failure;                           // The outcome of every call, if not OK.
  std::vector<Question> asked;
  std::vector<std::pair<ip::Address, ip::MacAddress>> answered;  // With the asker.

 private:
  bool listening_ = false;
  std::vector<NeighbourClaim> heard_;
};

}  // namespace spoke::netagent
