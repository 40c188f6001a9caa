#include "tests/bench/cni/attach_floor.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/os/unique_fd.h"
#include "netagent/links/kernel_links.h"
#include "netagent/links/link_requests.h"

namespace spoke::cni_bench {
namespace {

constexpr uint32_t kMtu = 1500;

netagent::AttachSpec SpecFor(const std::string& container, uint32_t address) {
  return netagent::PlanAttach({container, "eth0"}, {ip::Address::V4(address)}, kMtu).value();
}

// Puts the messages of a batch in one buffer, the last one asking for an acknowledgement.
std::vector<uint8_t> Pack(const std::vector<netlink::Request>& batch) {
  std::vector<uint8_t> bytes;
  size_t last = 0;
  for (const netlink::Request& request : batch) {
    last = bytes.size();
    bytes.insert(bytes.end(), request.bytes().begin(), request.bytes().end());
  }
  nlmsghdr header{};
  std::memcpy(&header, bytes.data() + last, sizeof(header));
  header.nlmsg_flags |= NLM_F_ACK;
  std::memcpy(bytes.data() + last, &header, sizeof(header));
  return bytes;
}

os::UniqueFd OpenSocket() {
  return os::UniqueFd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
}

// Makes one send, and reads the answer to its last message; any refusal is an error.
absl::Status Exchange(int fd, const std::vector<uint8_t>& bytes) {
  if (::send(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return base::ErrnoToStatus(errno, "send netlink messages");
  }
  alignas(nlmsghdr) std::array<uint8_t, 4096> answer;
  const ssize_t got = ::recv(fd, answer.data(), answer.size(), 0);
  nlmsghdr header{};
  nlmsgerr error{};
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(error)))) {
    return absl::InternalError("the kernel's answer is too short");
  }
  std::memcpy(&header, answer.data(), sizeof(header));
  std::memcpy(&error, answer.data() + NLMSG_HDRLEN, sizeof(error));
  if (header.nlmsg_type != NLMSG_ERROR || error.error != 0) {
    return base::ErrnoToStatus(-error.error, "the floor's netlink messages");
  }
  return absl::OkStatus();
}

// Everything is made ready before the clock starts, except what each attachment needs anew: a
// socket in the pod's namespace.
class Floor {
 public:
  Floor()
      : home_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)), socket_(OpenSocket()) {}

  absl::StatusOr<absl::Duration> Attach(const netagent::AttachSpec& spec, int pod) {
    const netagent::LinkEnds ends{
        .pod = next_index_, .host = next_index_ + 1, .node_netns = home_.get()};
    next_index_ += 2;
    const netagent::LinkBatches batches =
        netagent::BatchesOf(spec, netagent::PlanLink(spec, {}), ends);
    const std::vector<uint8_t> in_pod = Pack(batches.in_pod);
    const std::vector<uint8_t> in_node = Pack(batches.on_node);
    const absl::Time began = absl::Now();
    if (::setns(pod, CLONE_NEWNET) < 0) return base::ErrnoToStatus(errno, "enter the pod");
    const os::UniqueFd pod_socket = OpenSocket();
    CHECK(::setns(home_.get(), CLONE_NEWNET) == 0, "the thread returns to its namespace");
    RETURN_IF_ERROR(Exchange(pod_socket.get(), in_pod));
    RETURN_IF_ERROR(Exchange(socket_.get(), in_node));
    return absl::Now() - began;
  }

 private:
  const os::UniqueFd home_;
  const os::UniqueFd socket_;
  int32_t next_index_ = 1 << 20;
};

}  // namespace

absl::StatusOr<Samples> MeasureFloor(size_t rounds, PodMaker& pods) {
  ASSIGN_OR_RETURN(const std::unique_ptr<netagent::KernelLinks> kernel,
                   netagent::KernelLinks::Create());
  Floor floor;
  Samples samples;
  // Both attachments of a round stay until its end: what is taken down would be measured.
  constexpr size_t kRoundsBetweenRemovals = 20;
  std::vector<std::string> links;
  for (size_t round = 0; round < rounds; ++round) {
    for (const bool ours : {round % 2 == 0, round % 2 != 0}) {
      ASSIGN_OR_RETURN(const Pod pod, pods.Make());
      const os::UniqueFd netns(::open(pod.netns.c_str(), O_RDONLY | O_CLOEXEC));
      const uint32_t address = 0x0AFA0000U + static_cast<uint32_t>(2 * round + (ours ? 0 : 1));
      const netagent::AttachSpec spec = SpecFor(pod.container_id, address);
      links.push_back(spec.host_link);
      absl::Duration took;
      if (ours) {
        const absl::Time began = absl::Now();
        RETURN_IF_ERROR(kernel->Apply(spec, netagent::PlanLink(spec, {}), netns.get()));
        took = absl::Now() - began;
      } else {
        ASSIGN_OR_RETURN(took, floor.Attach(spec, netns.get()));
      }
      samples[ours ? "router" : "floor"].push_back(absl::ToDoubleMicroseconds(took));
    }
    if ((round + 1) % kRoundsBetweenRemovals != 0 && round + 1 != rounds) continue;
    for (const std::string& link : links) {
      const netagent::AttachSpec none = netagent::NoLink(link);
      const netagent::ObservedLink observed{.host = kernel->Recall(link)};
      RETURN_IF_ERROR(kernel->Apply(none, netagent::PlanLink(none, observed), std::nullopt));
    }
    links.clear();
    pods.Remove();
  }
  return samples;
}

}  // namespace spoke::cni_bench
