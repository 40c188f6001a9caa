// A cloud in memory, for tests: answers at once or when the test lets it, refuses when told to, and
// counts. It takes the addresses it is told, or chooses them itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/cloud/cloud.h"

namespace spoke::ipam {

class FakeCloud final : public Cloud {
 public:
  // `answer` is called on the thread of Request(), or of Answer().
  explicit FakeCloud(CloudAnswer answer) : answer_(std::move(answer)) {}

  void Request(NicRequest desired) override;
  void List(CloudListed listed) override;
  absl::Duration listing_period() const override { return absl::Seconds(60); }
  bool ChoosesAddresses() const override;
  std::string Describe() const override { return "fake"; }
  void Stop() override;

  // Makes later requests wait for Answer().
  void Hold();
  std::vector<NicRequest> waiting() const;
  // Takes the requests that wait: nobody carries them out.
  std::vector<NicRequest> TakeWaiting();
  // Carries out the requests that wait, and answers them.
  void Answer();
  // Carries the request out and tells nobody but the caller. Errors: as FailRequests().
  absl::StatusOr<NicAddresses> Apply(const NicRequest& desired);
  // Returns all NICs.
  std::vector<NicAddresses> nics() const;

  // Makes it choose: the lowest of `subnet` that no NIC has, from the fourth on.
  void ChooseFrom(const ip::Prefix& subnet);
  // Puts an entry on a NIC that nobody asked for.
  void Plant(const NicRequest& nic, const IpConfiguration& entry);
  // Makes every later request come to `status` and change nothing, until an OK status is set.
  void FailRequests(absl::Status status);
  // What it forecasts of every node from now on.
  void Forecast(CloudForecast forecast);
  std::optional<CloudForecast> ForecastOf(const NodeKey& node) const override;
  // The VM is gone, and its NIC with it.
  void Remove(const NodeKey& node);
  int applied() const;

 private:
  NicAddresses Choose(const NicRequest& desired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ip::Prefix LowestFree(const WantedConfiguration& wanted) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CloudAnswer answer_;
  mutable absl::Mutex mutex_;
  std::map<NodeKey, NicAddresses> nics_ ABSL_GUARDED_BY(mutex_);
  std::vector<NicRequest> waiting_ ABSL_GUARDED_BY(mutex_);  // In the order they came; one a node.
  bool holds_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
  std::optional<CloudForecast> forecast_ ABSL_GUARDED_BY(mutex_);
  std::optional<ip::Prefix> subnet_ ABSL_GUARDED_BY(mutex_);
  int applied_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spoke::ipam
