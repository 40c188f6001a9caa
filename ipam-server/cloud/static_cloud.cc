#include "ipam-server/cloud/static_cloud.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::ipam {

std::string FormatAttachments(const std::map<NodeKey, NicAddresses>& nics) {
  std::vector<std::tuple<ip::Prefix, ip::MacAddress, std::string>> rows;
  for (const auto& [node, nic] : nics) {
    for (const IpConfiguration& configuration : nic.configurations) {
      rows.emplace_back(configuration.range, nic.nic_mac, node.name);
    }
  }
  std::sort(rows.begin(), rows.end());
  std::string text = "# address\tnic\tnode\n";
  for (const auto& [range, mac, node] : rows) {
    text += fmt::format("{}\t{}\t{}\n", range.ToString(), mac.ToString(), node);
  }
  return text;
}

namespace {

// Does what is requested. Returns whether that changed anything.
bool Change(const std::map<NodeKey, NicRequest>& requests, std::map<NodeKey, NicAddresses>& nics) {
  bool changed = false;
  for (const auto& [node, request] : requests) {
    // Names are unique here, so a VM with the name of another has replaced it, NIC and all.
    auto it = nics.lower_bound({node.name, ""});
    while (it != nics.end() && it->first.name == node.name) {
      if (it->first == node) {
        ++it;
      } else {
        it = nics.erase(it);
        changed = true;
      }
    }
    NicAddresses configured = request.Configured();
    NicAddresses& nic = nics[node];
    if (nic == configured) continue;
    nic = std::move(configured);
    changed = true;
  }
  return changed;
}

}  // namespace

StaticCloud::StaticCloud(std::string attachments_file, CloudAnswer answer)
    : attachments_file_(std::move(attachments_file)),
      answer_(std::move(answer)),
      thread_([this] { Run(); }) {}

StaticCloud::~StaticCloud() { Stop(); }

void StaticCloud::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status StaticCloud::Begin(const std::vector<NicAddresses>& initial) {
  Nics nics;
  for (const NicAddresses& nic : initial) {
    nics[nic.node] = nic;
    std::sort(nics[nic.node].configurations.begin(), nics[nic.node].configurations.end());
  }
  RETURN_IF_ERROR(Publish(nics));
  absl::MutexLock lock(&mutex_);
  nics_ = std::move(nics);
  return absl::OkStatus();
}

void StaticCloud::Request(NicRequest desired) {
  absl::MutexLock lock(&mutex_);
  const NodeKey node = desired.node;
  waiting_.insert_or_assign(node, std::move(desired));
}

void StaticCloud::List(CloudListed listed) {
  CloudListing listing = absl::UnavailableError("the server stops");
  {
    absl::MutexLock lock(&mutex_);
    if (!stopped_) {
      listing.emplace();
      for (const auto& [node, nic] : nics_) listing->push_back(nic);
    }
  }
  listed(std::move(listing));
}

void StaticCloud::Run() {
  while (true) {
    std::map<NodeKey, NicRequest> requests;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopped_ || !waiting_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopped_) return;
      requests.swap(waiting_);
    }
    CarryOut(requests);
  }
}

// What the file does not say has not happened, so it is written before anybody is told.
void StaticCloud::CarryOut(const std::map<NodeKey, NicRequest>& requests) {
  absl::Status published;
  if (attachments_file_.empty()) {
    absl::MutexLock lock(&mutex_);
    Change(requests, nics_);
  } else {
    Nics nics;
    {
      absl::MutexLock lock(&mutex_);
      nics = nics_;
    }
    if (Change(requests, nics)) published = Publish(nics);
    if (published.ok()) {
      absl::MutexLock lock(&mutex_);
      nics_ = std::move(nics);
    }
  }
  for (const auto& [node, request] : requests) {
    if (published.ok()) {
      answer_(node, request.Configured());
    } else {
      answer_(node, published);
    }
  }
}

absl::Status StaticCloud::Publish(const Nics& nics) const {
  if (attachments_file_.empty()) return absl::OkStatus();
  // The file is not synced: after a power cut the server writes it anew from its store.
  return base::Annotate(
      os::WriteFileAtomic(attachments_file_, FormatAttachments(nics), os::Durability::kVisible),
      "publish attachments");
}

}  // namespace spoke::ipam
