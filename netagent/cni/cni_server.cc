#include "netagent/cni/cni_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxClients = 512;  // A node has 250 pods; each exec of the plugin is one client.
constexpr int kBacklog = 1024;
constexpr int kAcceptsARound = 64;  // After these, those who wait are looked after.
constexpr size_t kMaxDescriptors = 4;

enum class Got { kPacket, kNothing, kGone, kMalformed };

// Reads one packet with at most one descriptor into `buffer`.
Got Receive(int fd, char* buffer, size_t& size, os::UniqueFd& descriptor) {
  iovec data{.iov_base = buffer, .iov_len = CniServer::kMaxRequestBytes};
  // There is room for more than one descriptor: an extra one is seen and closed, not truncated.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Got::kNothing : Got::kGone;
  size_t descriptors = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      descriptor = os::UniqueFd(received);  // This closes the one before.
      ++descriptors;
    }
  }
  if (got == 0) return Got::kGone;
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || descriptors > 1) {
    return Got::kMalformed;
  }
  size = static_cast<size_t>(got);
  return Got::kPacket;
}

cni::Response Refusal(std::string_view message) {
  return {.outcome = cni::Response::Outcome::kError,
          .error = {.code = cni::kDecodingFailure,
                    .message = std::string(message),
                    .details = "plugin and agent do not fit together: install the same version"}};
}

}  // namespace

CniServer::CniServer(os::EventLoop& loop, Handler handler, telemetry::Log& log)
    : loop_(loop),
      handler_(std::move(handler)),
      log_(log),
      buffer_(std::make_unique_for_overwrite<char[]>(kMaxRequestBytes)) {}

CniServer::~CniServer() {
  if (listener_.valid()) loop_.Remove(listener_.get());
  while (!clients_.empty()) Close(clients_.begin()->first);
}

absl::Status CniServer::Listen(const std::string& path) {
  const std::string temporary = path + ".new";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (temporary.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError("socket path " + path + " is longer than 103 bytes");
  }
  std::memcpy(address.sun_path, temporary.data(), temporary.size());
  os::UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return base::ErrnoToStatus(errno, "create the plugin's socket");
  // The journal's lock has already made sure that no other agent is alive.
  ::unlink(temporary.c_str());
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0) {
    return base::ErrnoToStatus(errno, "bind " + temporary);
  }
  // Nobody can connect before listen(), so the mode is in time.
  if (::chmod(temporary.c_str(), 0600) < 0) return base::ErrnoToStatus(errno, "chmod " + temporary);
  if (::listen(listener.get(), kBacklog) < 0) return base::ErrnoToStatus(errno, "listen " + path);
  RETURN_IF_ERROR(loop_.AddReader(listener.get(), [this] { Accept(); }));
  listener_ = std::move(listener);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return base::ErrnoToStatus(errno, "rename " + temporary + " to " + path);
  }
  path_ = path;
  ::unlink(cni::StoppedMark(path_).c_str());
  return absl::OkStatus();
}

void CniServer::Stop() {
  if (listener_.valid()) {
    // Before the first plugin is refused. Without it, where the directory is full, ADDs fail fast.
    const std::string mark = cni::StoppedMark(path_);
    const os::UniqueFd made(
        ::open(mark.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (made.valid()) ::futimens(made.get(), nullptr);
    loop_.Remove(listener_.get());
    listener_.Reset();
  }
  std::vector<uint64_t> silent;
  for (const auto& [id, client] : clients_) {
    if (!client.asked) silent.push_back(id);
  }
  for (const uint64_t id : silent) Serve(id);
  while (!clients_.empty()) HangUp(clients_.begin()->first);
}

void CniServer::Accept() {
  for (int i = 0; i < kAcceptsARound; ++i) {
    os::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) log_.Error("cni_accept_failed", {{"error", std::strerror(errno)}});
      return;
    }
    if (clients_.size() >= kMaxClients) {
      log_.Warn("cni_too_many_clients", {{"limit", kMaxClients}});
      continue;  // The connection is closed: the plugin asks again.
    }
    const uint64_t id = ++last_client_;
    clients_.emplace(id, Client{.fd = std::move(fd)});
    // The request is there already, as a rule, and the loop need not hear of it at all.
    Serve(id);
  }
}

void CniServer::Serve(uint64_t id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  Client& client = found->second;
  const int fd = client.fd.get();
  size_t size = 0;
  os::UniqueFd descriptor;
  const Got got = Receive(fd, buffer_.get(), size, descriptor);
  // A client that has asked has nothing more to say: it hangs up, or does not keep to the rules.
  if (got == Got::kGone || (client.asked && got != Got::kNothing)) return HangUp(id);
  if (got != Got::kNothing) {
    client.asked = true;
    Responder responder(*this, id);
    if (got == Got::kMalformed) {
      [[maybe_unused]] const absl::Status sent = responder.Answer(
          Refusal("the request is longer than 1 MiB or carries more than one descriptor"));
    } else if (const auto request = cni::DecodeRequest({buffer_.get(), size}); !request) {
      [[maybe_unused]] const absl::Status sent =
          responder.Answer(Refusal("the request is not one this agent understands"));
    } else {
      handler_(*request, std::move(descriptor), std::move(responder));
    }
  }
  const auto waiting = clients_.find(id);
  if (waiting == clients_.end() || waiting->second.watched) return;
  // The client has nothing to say yet, or waits for its answer and may hang up.
  waiting->second.watched = loop_.AddReader(fd, [this, id] { Serve(id); }).ok();
  if (!waiting->second.watched) HangUp(id);
}

absl::Status CniServer::Send(uint64_t client, const cni::Response& response) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return absl::UnavailableError("the plugin has gone");
  const std::string answer = cni::EncodeResponse(response);
  const ssize_t sent =
      ::send(found->second.fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  const int error = errno;
  Close(client);
  return sent < 0 ? base::ErrnoToStatus(error, "answer the plugin") : absl::OkStatus();
}

void CniServer::Close(uint64_t client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  if (found->second.watched) loop_.Remove(found->second.fd.get());
  clients_.erase(found);
}

void CniServer::HangUp(uint64_t id) {
  const std::function<void()> gone = std::move(clients_.at(id).gone);
  Close(id);
  if (gone) gone();
}

void CniServer::OnHangUp(uint64_t client, std::function<void()> gone) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) found->second.gone = std::move(gone);
}

}  // namespace spoke::netagent
