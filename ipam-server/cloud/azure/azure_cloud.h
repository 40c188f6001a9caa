// Azure as the server's cloud: a thread that runs the machine over HTTP, with a token for each
// identity. Everything that is decided is in the machine; here are the clock, the wire and the
// waiting.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/cloud/azure/azure_state.h"
#include "ipam-server/cloud/azure/settings.h"
#include "ipam-server/cloud/azure/token_source.h"
#include "ipam-server/cloud/cloud.h"
#include "lib/http/transport.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam::azure {

// Thread-safe. A node is asked for by Apply() or by Request(), not by both at once: answers of the
// one would be taken for those of the other.
class AzureCloud final : public Cloud, public CloudRequests {
 public:
  using Answer = std::function<void(const NodeKey&, absl::StatusOr<NicAddresses>)>;

  // What it needs of the world. `transport` carries calls to ARM and for tokens alike.
  struct World {
    std::unique_ptr<http::Transport> transport;
    const os::Clock& clock;
    TokenSource::FileReader read_file;
    telemetry::Log& log;
    uint64_t seed = 0;  // The jitter's seed.
  };

  // `answer` gets what came of Request(), on the cloud's own thread. `settings` has at least one
  // identity, and scale sets that are such.
  AzureCloud(Settings settings, World world, Answer answer);
  AzureCloud(const AzureCloud&) = delete;
  AzureCloud& operator=(const AzureCloud&) = delete;
  ~AzureCloud() override;

  // Drops what is under way: the server has it in its store and asks again. Who waits in Apply() or
  // List() is told so, and who comes later; `answer` is not called any more. A second call does
  // nothing.
  void Stop();

  // Fails with kDeadlineExceeded too: it waits for longer than anybody should; it may yet happen.
  absl::StatusOr<NicAddresses> Apply(const NicRequest& desired) override;
  absl::StatusOr<std::vector<NicAddresses>> List() override;
  // Instances of our Uniform scale sets; of Flexible ones, VMs that a listing has had.
  bool Covers(const std::string& instance) const override;
  bool ChoosesAddresses() const override { return true; }
  std::string Describe() const override;

  void Request(NicRequest desired) override;
  // Returns a forecast about a second old; what the thread has not looked at yet only waits.
  std::optional<CloudForecast> ForecastOf(const NodeKey& node) const override;

  MachineCounts counts() const;

 private:
  using Listing = absl::StatusOr<std::vector<NicAddresses>>;
  // What one who waits in Apply() or List() waits for.
  template <typename T>
  using Slot = std::shared_ptr<std::optional<T>>;

  struct Principal {
    TokenSource source;
    std::string logged;  // The last failure that was logged.
  };

  bool InOurSets(const std::string& instance) const;
  void Run();
  void TakeInbox(absl::Time now);
  void AskForTokens(absl::Time now);
  // The principal to send as, and its token: `wanted`, or another that has one.
  absl::StatusOr<std::string> TokenFor(size_t wanted, absl::Time now);
  bool HasToken(absl::Time now) const;
  void SendCalls(absl::Time now);
  void OnCompletion(http::Completion completion, absl::Time now);
  void OnToken(size_t principal, const absl::StatusOr<http::Response>& response, absl::Time now);
  void HandOver();
  // The forecasts, if something happened since the last time, and that is a second ago.
  void PublishForecasts(absl::Time now);
  void Enqueue(NicRequest request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time NextWake(absl::Time now) const;

  const Settings settings_;
  World world_;
  const Answer answer_;

  // The thread's own.
  std::vector<Principal> principals_;
  absl::flat_hash_map<uint64_t, std::string> token_of_;  // The tokens of calls under way.
  absl::Time without_token_since_;
  bool forecasts_stale_ = false;
  absl::Time published_at_ = absl::InfinitePast();

  // A lock that is held while the machine is at work, which may take as long as a page of a list
  // takes to be decoded: never to be taken by those who must not wait.
  mutable absl::Mutex machine_mutex_;
  AzureState machine_ ABSL_GUARDED_BY(machine_mutex_);

  mutable absl::Mutex mutex_;
  std::vector<NicRequest> inbox_ ABSL_GUARDED_BY(mutex_);
  std::map<NodeKey, CloudForecast> forecasts_ ABSL_GUARDED_BY(mutex_);  // Of requests that wait.
  size_t listings_asked_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<NodeKey> applying_ ABSL_GUARDED_BY(mutex_);
  std::map<NodeKey, Slot<absl::StatusOr<NicAddresses>>> applied_ ABSL_GUARDED_BY(mutex_);
  std::deque<Slot<Listing>> listings_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> listed_ ABSL_GUARDED_BY(mutex_);  // VMs of Flexible scale sets, ever.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // Callers in Apply() and List().

  std::thread thread_;  // It stands last, since it uses all of the above.
};

}  // namespace spoke::ipam::azure
