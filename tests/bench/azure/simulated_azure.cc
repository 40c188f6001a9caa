#include "tests/bench/azure/simulated_azure.h"

#include <algorithm>

#include "fmt/core.h"
#include "tests/azure-sim/tokens.h"

namespace spoke::azure_bench {

SimulatedAzure::SimulatedAzure(const Options& options, azure_sim::ArmModel& arm,
                               os::SimClock& clock, ipam::CloudAnswer answer)
    : one_way_(options.round_trip / 2),
      listing_period_(options.settings.listing),
      arm_(arm),
      clock_(clock),
      began_(clock.Now()),
      machine_(options.settings, options.seed),
      answer_(std::move(answer)) {}

void SimulatedAzure::Request(ipam::NicRequest desired) {
  machine_.Request(std::move(desired), clock_.Now());
}

void SimulatedAzure::List(ipam::CloudListed listed) {
  listings_.push_back(std::move(listed));
  machine_.List(clock_.Now());
}

std::optional<ipam::CloudForecast> SimulatedAzure::ForecastOf(const ipam::NodeKey& node) const {
  return machine_.ForecastOf(node, clock_.Now());
}

void SimulatedAzure::Work() {
  const absl::Time now = clock_.Now();
  while (!flights_.empty() && flights_.top().at <= now) {
    Flight flight = flights_.top();
    flights_.pop();
    Land(std::move(flight));
  }
  for (ipam::azure::MachineCall& call : machine_.Next(now)) {
    const std::string token =
        azure_sim::FormatToken({.principal = fmt::format("principal{}", call.principal),
                                .issued = began_,
                                .expires = absl::InfiniteFuture()});
    call.request.headers.Add("Authorization", "Bearer " + token);
    if (call.request.method == "PUT") {
      last_write_ = now;
      const auto minute = static_cast<size_t>(absl::ToInt64Minutes(now - began_));
      if (writes_by_minute_.size() <= minute) writes_by_minute_.resize(minute + 1);
      ++writes_by_minute_[minute];
    }
    flights_.push({now + one_way_, ++order_, false, std::move(call), {}});
  }
  for (ipam::azure::MachineAnswer& answer : machine_.TakeAnswers()) {
    answer_(answer.node, std::move(answer.result));
  }
  for (ipam::CloudListing& listing : machine_.TakeListings()) {
    const ipam::CloudListed listed = std::move(listings_.front());
    listings_.pop_front();
    listed(std::move(listing));
  }
}

void SimulatedAzure::Land(Flight flight) {
  if (!flight.answered) {
    flight.response = arm_.Handle(flight.call.request, flight.at);
    flight.answered = true;
    // An answer that is lost is noticed when the call's time is over.
    flight.at += flight.response.status == 0 ? flight.call.timeout : one_way_;
    flight.order = ++order_;
    flights_.push(std::move(flight));
    return;
  }
  if (flight.response.status == 0) {
    machine_.OnResponse(flight.call.id, absl::DeadlineExceededError("no answer in time"),
                        flight.at);
  } else {
    machine_.OnResponse(flight.call.id, flight.response, flight.at);
  }
}

absl::Time SimulatedAzure::NextEvent() const {
  const absl::Time machine = machine_.NextWake();
  return flights_.empty() ? machine : std::min(machine, flights_.top().at);
}

}  // namespace spoke::azure_bench
