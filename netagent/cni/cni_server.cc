#include "netagent/cni/cni_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "proto/spoke/v1/cni.pb.h"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxRequestBytes = 64 << 10;
constexpr size_t kMaxClients = 1024;  // A node has 250 pods; each exec of the plugin is one client.
constexpr int kBacklog = 1024;

struct Packet {
  std::string bytes;
  os::UniqueFd descriptor;
};

// One packet with at most one descriptor. Errors: kUnavailable (closed by the peer);
// kInvalidArgument (too long, or more than one descriptor).
absl::StatusOr<Packet> Receive(int fd) {
  Packet packet;
  packet.bytes.resize(kMaxRequestBytes);
  iovec data{.iov_base = packet.bytes.data(), .iov_len = packet.bytes.size()};
  // Room for more than one, so that an extra descriptor is seen, and closed, instead of truncated.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) return base::ErrnoToStatus(errno, "receive a request");
  std::vector<os::UniqueFd> descriptors;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(received);
    }
  }
  if (got == 0) return absl::UnavailableError("the plugin has gone");
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || descriptors.size() > 1) {
    return absl::InvalidArgumentError("the request is too long or carries too many descriptors");
  }
  packet.bytes.resize(static_cast<size_t>(got));
  if (!descriptors.empty()) packet.descriptor = std::move(descriptors.front());
  return packet;
}

v1::CniResponse Refusal(uint32_t code, std::string_view message) {
  v1::CniResponse response;
  response.mutable_error()->set_code(code);
  response.mutable_error()->set_message(std::string(message));
  return response;
}

constexpr uint32_t kDecodingFailure = 6;  // CNI spec 1.0.0, section 5 "Error".

}  // namespace

CniServer::CniServer(os::EventLoop& loop, Handler handler, telemetry::Log& log)
    : loop_(loop), handler_(std::move(handler)), log_(log) {}

CniServer::~CniServer() {
  for (const auto& [fd, client] : clients_) loop_.Remove(fd);
  if (!listener_.valid()) return;
  loop_.Remove(listener_.get());
  ::unlink(path_.c_str());
}

absl::Status CniServer::Listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError("socket path " + path + " is longer than 107 bytes");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  os::UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return base::ErrnoToStatus(errno, "create the plugin's socket");
  // The journal's lock has already made sure that no other agent is alive.
  ::unlink(path.c_str());
  const mode_t old_mask = ::umask(0177);
  const int bound =
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int bind_error = errno;
  ::umask(old_mask);
  if (bound < 0) return base::ErrnoToStatus(bind_error, "bind " + path);
  if (::listen(listener.get(), kBacklog) < 0) return base::ErrnoToStatus(errno, "listen " + path);
  RETURN_IF_ERROR(loop_.AddReader(listener.get(), [this] { Accept(); }));
  listener_ = std::move(listener);
  path_ = path;
  return absl::OkStatus();
}

void CniServer::Accept() {
  while (true) {
    os::UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) log_.Error("cni_accept_failed", {{"error", std::strerror(errno)}});
      return;
    }
    if (clients_.size() >= kMaxClients) {
      log_.Warn("cni_too_many_clients", {{"limit", kMaxClients}});
      continue;  // Closed: the plugin says "try again later".
    }
    const int fd = client.get();
    if (!loop_.AddReader(fd, [this, fd] { Serve(fd); }).ok()) continue;
    clients_.emplace(fd, std::move(client));
  }
}

void CniServer::Serve(int client) {
  absl::StatusOr<Packet> packet = Receive(client);
  v1::CniResponse response;
  v1::CniRequest request;
  if (absl::IsUnavailable(packet.status())) return Drop(client);
  if (!packet.ok()) {
    response = Refusal(kDecodingFailure, base::MessageOf(packet.status()));
  } else if (!request.ParseFromString(packet->bytes)) {
    response = Refusal(kDecodingFailure, "the request is not one this agent understands");
  } else {
    response = handler_(request, std::move(packet->descriptor));
  }
  const std::string bytes = response.SerializeAsString();
  if (::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    // The plugin was killed meanwhile. The runtime follows with a DEL, which undoes an ADD.
    log_.Warn("cni_answer_lost", {{"container", request.container_id()},
                                  {"ifname", request.ifname()},
                                  {"error", std::strerror(errno)}});
  }
  Drop(client);
}

void CniServer::Drop(int client) {
  loop_.Remove(client);
  clients_.erase(client);
}

}  // namespace spoke::netagent
