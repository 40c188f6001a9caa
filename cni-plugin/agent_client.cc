#include "cni-plugin/agent_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "lib/os/unique_fd.h"
#include "proto/spoke/v1/cni.pb.h"

namespace spoke::cni {
namespace {

constexpr size_t kMaxAnswerBytes = 64 << 10;
constexpr int kBusyPauseMs = 5;

int64_t NowMs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Milliseconds that are left; never negative.
int Left(int64_t until_ms) {
  const int64_t left = until_ms - NowMs();
  return left > 0 ? static_cast<int>(left) : 0;
}

Error NoAgent(const Request& request, int error) {
  return {kTryAgainLater, "spoke-netagent does not answer on this node",
          request.socket + ": " + (error == ENOENT ? "no socket" : std::strerror(error)) +
              "; check that the agent runs here"};
}

Expected<os::UniqueFd> Connect(const Request& request, int64_t until_ms) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (request.socket.size() >= sizeof(address.sun_path)) {
    return Error{kInvalidConfig, "the agent's socket path is longer than 107 bytes",
                 request.socket};
  }
  std::memcpy(address.sun_path, request.socket.data(), request.socket.size());
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Error{kInternal, "cannot create a socket", std::strerror(errno)};
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0) {
    // EAGAIN: so many pods start at once that the agent's queue is full.
    if ((errno != EAGAIN && errno != EINTR) || Left(until_ms) == 0) return NoAgent(request, errno);
    ::poll(nullptr, 0, kBusyPauseMs);
  }
  return fd;
}

bool Send(int fd, const std::string& bytes, int netns) {
  iovec data{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (netns >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &netns, sizeof(int));
  }
  return ::sendmsg(fd, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

Expected<v1::CniResponse> Receive(int fd, const Request& request, int64_t until_ms) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, Left(until_ms));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    return Error{kTryAgainLater, "spoke-netagent did not answer in time", request.socket};
  }
  std::string bytes(kMaxAnswerBytes, '\0');
  const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got <= 0) {
    return Error{kTryAgainLater, "spoke-netagent hung up before it answered",
                 "it was restarted, or it is out of connections"};
  }
  v1::CniResponse response;
  if (!response.ParseFromArray(bytes.data(), static_cast<int>(got))) {
    return Error{kInternal, "spoke-netagent answered with something else than a response",
                 "do plugin and agent come from the same release?"};
  }
  return response;
}

Expected<v1::CniResponse> Exchange(const Request& request, v1::CniRequest::Verb verb, int netns,
                                   int deadline_ms) {
  const int64_t until_ms = NowMs() + deadline_ms;
  v1::CniRequest message;
  message.set_verb(verb);
  message.set_container_id(request.container_id);
  message.set_ifname(request.ifname);
  message.set_network_name(request.network_name);
  message.mutable_pod()->set_namespace_(request.pod_namespace);
  message.mutable_pod()->set_name(request.pod_name);
  message.mutable_pod()->set_uid(request.pod_uid);
  message.set_deadline_monotonic_ms(until_ms);
  const auto fd = Connect(request, until_ms);
  if (!fd.ok()) return fd.error();
  if (!Send(fd->get(), message.SerializeAsString(), netns)) {
    return NoAgent(request, errno);
  }
  auto response = Receive(fd->get(), request, until_ms);
  if (response.ok() && response->has_error()) {
    return Error{response->error().code(), response->error().message(),
                 response->error().details()};
  }
  return response;
}

}  // namespace

Expected<Attachment> AskToAdd(const Request& request, int netns, int deadline_ms) {
  const auto response = Exchange(request, v1::CniRequest::VERB_ADD, netns, deadline_ms);
  if (!response.ok()) return response.error();
  if (!response->has_attachment() || response->attachment().addresses().empty()) {
    return Error{kInternal, "spoke-netagent answered ADD without an attachment",
                 "do plugin and agent come from the same release?"};
  }
  const v1::CniAttachment& in = response->attachment();
  Attachment attachment{.host_link = in.host_link(),
                        .host_mac = in.host_mac(),
                        .pod_mac = in.pod_mac(),
                        .addresses = {}};
  for (const v1::CniAddress& address : in.addresses()) {
    attachment.addresses.push_back({address.address(), address.gateway()});
  }
  return attachment;
}

Expected<bool> AskToDel(const Request& request, int deadline_ms) {
  const auto response = Exchange(request, v1::CniRequest::VERB_DEL, -1, deadline_ms);
  if (!response.ok()) return response.error();
  return true;
}

}  // namespace spoke::cni
