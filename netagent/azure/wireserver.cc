#include "netagent/azure/wireserver.h"

#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace spoke::netagent::azure {
namespace {

constexpr std::string_view kInterfacesPath =
    "/machine/plugins?comp=nmagent&type=getinterfaceinfov1";

}  // namespace

absl::StatusOr<std::vector<HostInterface>> ReadWireserver(const std::string& url,
                                                          const Fetch& fetch) {
  const http::Request request{.url = fmt::format("{}{}", url, kInterfacesPath)};
  const auto response = fetch(request, kWireserverTimeout);
  if (!response.ok()) {
    return absl::UnavailableError(
        fmt::format("{}: {}", request.url, base::MessageOf(response.status())));
  }
  if (response->status != 200) {
    return absl::UnavailableError(fmt::format("{}: HTTP {}", request.url, response->status));
  }
  auto interfaces = ParseWireserverInterfaces(response->body);
  if (!interfaces.ok()) return base::Annotate(interfaces.status(), request.url);
  return interfaces;
}

absl::StatusOr<std::set<ip::Address>> AddressesOf(const std::vector<HostInterface>& interfaces,
                                                  const ip::MacAddress& mac) {
  std::set<ip::Address> addresses;
  std::vector<std::string> others;
  for (const HostInterface& nic : interfaces) {
    if (nic.mac != mac) {
      others.push_back(nic.mac.ToString());
      continue;
    }
    for (const HostSubnet& subnet : nic.subnets) {
      for (const HostAddress& address : subnet.addresses) {
        const uint64_t size = address.range.size();
        if (size > kMaxHostAddresses - addresses.size()) {
          return absl::InvalidArgumentError(
              fmt::format("NIC {} has more than {} addresses", mac.ToString(), kMaxHostAddresses));
        }
        for (uint64_t i = 0; i < size; ++i) {
          addresses.insert(ip::Advance(address.range.base(), i));
        }
      }
    }
  }
  if (others.size() == interfaces.size()) {
    return absl::NotFoundError(
        fmt::format("the host has no NIC with MAC {}, but {}", mac.ToString(),
                    others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", "))));
  }
  return addresses;
}

WireserverList::WireserverList(std::string url, Fetch fetch, const ip::MacAddress& mac)
    : url_(std::move(url)), fetch_(std::move(fetch)), mac_(mac), thread_([this] { Run(); }) {}

WireserverList::~WireserverList() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

bool WireserverList::Read(Done done) {
  absl::MutexLock lock(&mutex_);
  if (stopped_ || wanted_) return false;
  wanted_ = std::move(done);
  return true;
}

void WireserverList::Run() {
  while (true) {
    Done done;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopped_ || wanted_ != nullptr;
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopped_) return;
      done = wanted_;
    }
    const auto interfaces = ReadWireserver(url_, fetch_);
    auto addresses = interfaces.ok() ? AddressesOf(*interfaces, mac_) : interfaces.status();
    {
      // Before `done`, so that whoever hears of the outcome can ask again.
      absl::MutexLock lock(&mutex_);
      wanted_ = nullptr;
    }
    done(std::move(addresses));
  }
}

}  // namespace spoke::netagent::azure
