#include "admin-cli/client.h"

#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "lib/base/version.h"
#include "lib/rpc/version_key.h"
#include "proto/spoke/v1/admin.grpc.pb.h"

namespace spoke::ctl {
namespace {

using google::protobuf::MessageLite;

// What a call waits for, for as long as --timeout says.
enum class Waits {
  kForAll,    // The whole answer.
  kForEach,   // Each message of a stream.
  kForFirst,  // The beginning of a stream, whose messages may then take as long as they like.
};

// The largest message. One of the server's with 1,000 rows, or a piece of a backup, has less than
// this.
constexpr int kMaxMessageBytes = 64 << 20;

// How long one of several servers has to let us in, before the next is tried.
constexpr absl::Duration kConnectTime = absl::Seconds(3);

bool IsSocket(std::string_view server) { return server.starts_with("unix:"); }

// Returns whether the kernel keeps this user from the socket, which the library only tells as one
// reason among others why nobody answers.
bool IsClosedToUs(const std::string& server) {
  if (!IsSocket(server)) return false;
  const std::string path = server.substr(std::string_view("unix:").size());
  return ::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) != 0 && errno == EACCES;
}

std::chrono::system_clock::time_point In(absl::Duration duration) {
  return std::chrono::system_clock::now() + absl::ToChronoMicroseconds(duration);
}

// Returns the call's path; without `method`, it has the name of its request.
std::string PathOf(std::string_view method, const MessageLite& request) {
  const std::string type = request.GetTypeName();
  std::string_view name = type;
  name.remove_prefix(name.rfind('.') + 1);
  name.remove_suffix(std::string_view("Request").size());
  return fmt::format("/{}/{}", v1::AdminService::service_full_name(),
                     method.empty() ? name : method);
}

// Returns whether the code came in the server's answer; else the library made it up because there
// was none. Only the library's own words tell the two apart.
bool SaidByServer(const grpc::ClientContext& context) {
  return context.debug_error_string().find("received from peer") != std::string::npos;
}

}  // namespace

struct Client::Calls {
  Calls(absl::StatusOr<Target> where, absl::Duration limit)
      : target(std::move(where)), timeout(limit) {
    if (target.ok()) server = absl::StrJoin(target->servers, ", ");
  }

  absl::StatusOr<std::shared_ptr<grpc::Channel>> Open(const std::string& at) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    if (IsSocket(at)) {
      return grpc::CreateCustomChannel(at, grpc::InsecureChannelCredentials(), arguments);
    }
    ASSIGN_OR_RETURN(const auto credentials, rpc::ClientCredentials(target->tls));
    if (!target->server_name.empty()) {
      arguments.SetSslTargetNameOverride(target->server_name);
    }
    return grpc::CreateCustomChannel(at, credentials, arguments);
  }

  // Returns the stub of the first server that lets us in, or else of the last, whose refusal the
  // call then tells. Nothing is asked before that is known: what has been sent to one server may
  // have happened there, and is not sent to another.
  absl::StatusOr<grpc::GenericStub*> Chosen() const {
    absl::MutexLock lock(&mutex);
    if (stub != nullptr) return stub.get();
    RETURN_IF_ERROR(target.status());
    for (const std::string& at : target->servers) {
      ASSIGN_OR_RETURN(const auto channel, Open(at));
      const bool last = &at == &target->servers.back();
      if (!last && !LetsIn(*channel)) continue;
      stub = std::make_unique<grpc::GenericStub>(channel);
      return stub.get();
    }
    return absl::InvalidArgumentError("no server is named");
  }

  bool LetsIn(grpc::Channel& channel) const {
    const auto until = In(std::min(timeout, kConnectTime));
    for (auto state = channel.GetState(true);; state = channel.GetState(true)) {
      if (state == GRPC_CHANNEL_READY) return true;
      if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) return false;
      if (!channel.WaitForStateChange(state, until)) return false;
    }
  }

  absl::Status ToStatus(const grpc::Status& status, const grpc::ClientContext& context) const {
    if (status.ok()) return absl::OkStatus();
    const std::string& message = status.error_message();
    const bool said = SaidByServer(context);
    switch (status.error_code()) {
      case grpc::StatusCode::UNAVAILABLE:
        if (said) return absl::AbortedError(message);
        if (IsClosedToUs(server)) {
          return absl::PermissionDeniedError(fmt::format(
              "you may not open {}: root and the server's own user may. Use sudo, or spokectl "
              "login for the server's port for operators",
              server));
        }
        return absl::UnavailableError(fmt::format(
            "no server answers at {}: {} [{}]", server,
            IsSocket(server) ? "is spoke-ipam-server running here, and may you open its socket? "
                               "(--server or SPOKE_SERVER names another)"
                             : "does one of them lead, is this its listen.operators, and is the "
                               "certificate of the context of its authority?",
            message));
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        // The library at the server's end watches our deadline too, in the same two words.
        if (said && message != "Deadline Exceeded") return absl::DeadlineExceededError(message);
        return absl::DeadlineExceededError(
            fmt::format("the server at {} did not answer within {}; what was asked may have "
                        "happened all the same (--timeout waits longer)",
                        server, absl::FormatDuration(timeout)));
      case grpc::StatusCode::UNIMPLEMENTED:
        return absl::UnimplementedError(message);  // Explained() says what that means.
      default:
        return rpc::FromGrpc(static_cast<int>(status.error_code()), message);
    }
  }

  // Makes a call with one answer, or reads a stream of them, each into `response` before `each`. A
  // queue of our own gives each message of a stream its own deadline, which a call as a whole
  // cannot have: a backup may take an hour, but not be silent for a minute.
  absl::Status Make(std::string_view method, const MessageLite& request, MessageLite& response,
                    const std::function<absl::Status()>& each, Waits waits) const {
    ASSIGN_OR_RETURN(grpc::GenericStub* const chosen, Chosen());
    grpc::ClientContext context;
    context.AddMetadata(rpc::kVersionKey, base::kVersion);
    if (waits == Waits::kForAll) context.set_deadline(In(timeout));
    grpc::CompletionQueue queue;
    absl::Status mine;  // An end that this side has made.
    bool silent_for_too_long = false;
    bool waiting_for_ever = waits == Waits::kForAll;
    // Returns true when the operation under way has succeeded. There is never more than one.
    const auto done = [&] {
      void* tag = nullptr;
      bool ok = false;
      const auto until =
          waiting_for_ever ? std::chrono::system_clock::time_point::max() : In(timeout);
      if (queue.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) return ok;
      silent_for_too_long = true;
      context.TryCancel();
      queue.Next(&tag, &ok);
      return false;
    };
    const auto call = chosen->PrepareCall(&context, PathOf(method, request), &queue);
    call->StartCall(nullptr);
    bool more = done();
    if (more) {
      const grpc::Slice bytes(request.SerializeAsString());
      call->WriteLast(grpc::ByteBuffer(&bytes, 1), grpc::WriteOptions(), nullptr);
      more = done();
    }
    while (more) {
      grpc::ByteBuffer next;
      waiting_for_ever = waits != Waits::kForEach;
      call->Read(&next, nullptr);
      more = done();
      if (!more) break;
      grpc::ProtoBufferReader reader(&next);
      mine = response.ParseFromZeroCopyStream(&reader)
                 ? each()
                 : absl::InternalError("the server's answer cannot be read");
      if (!mine.ok()) {
        context.TryCancel();
        break;
      }
    }
    grpc::Status status;
    waiting_for_ever = true;  // Cancelled or ended by the server: this comes at once.
    call->Finish(&status, nullptr);
    done();
    queue.Shutdown();
    if (!mine.ok()) return mine;
    if (silent_for_too_long) {
      return absl::DeadlineExceededError(
          fmt::format("the server at {} said nothing for {} (--timeout waits longer)", server,
                      absl::FormatDuration(timeout)));
    }
    return ToStatus(status, context);
  }

  // Returns `status`, where it is that nobody there knows the call, with what that means. Every
  // server that has operators at all knows GetStatus.
  absl::Status Explained(const absl::Status& status, const MessageLite& request) const {
    if (!absl::IsUnimplemented(status)) return status;
    absl::Status known = status;
    if (request.GetTypeName() != v1::GetStatusRequest().GetTypeName()) {
      v1::GetStatusResponse response;
      known = Make(
          "", v1::GetStatusRequest(), response, [] { return absl::OkStatus(); }, Waits::kForAll);
    }
    if (known.ok()) {
      return absl::UnimplementedError(
          "the server does not know this call: it is older than this spokectl (spokectl version "
          "shows both); update it");
    }
    if (!absl::IsUnimplemented(known)) return known;
    return absl::UnimplementedError(fmt::format(
        "{} is no port for operators: what answers there knows none of their calls. Use "
        "the server's listen.operators, not the port for agents (--server, or spokectl "
        "context set --at)",
        server));
  }

  const absl::StatusOr<Target> target;
  std::string server;  // The text for messages: all of them.
  const absl::Duration timeout;
  mutable absl::Mutex mutex;
  mutable std::unique_ptr<grpc::GenericStub> stub ABSL_GUARDED_BY(mutex);
};

Client::Client(absl::StatusOr<Target> target, absl::Duration timeout)
    : calls_(std::make_unique<Calls>(std::move(target), timeout)) {}

Client::~Client() = default;

const std::string& Client::server() const { return calls_->server; }

absl::Status Client::Ask(std::string_view method, const MessageLite& request,
                         MessageLite& response) const {
  bool answered = false;
  const auto take = [&] {
    answered = true;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(
      calls_->Explained(calls_->Make(method, request, response, take, Waits::kForAll), request));
  return answered ? absl::OkStatus() : absl::InternalError("the server answered nothing");
}

absl::Status Client::Read(std::string_view method, const MessageLite& request,
                          MessageLite& response, const std::function<absl::Status()>& each,
                          bool patient) const {
  return calls_->Explained(
      calls_->Make(method, request, response, each, patient ? Waits::kForFirst : Waits::kForEach),
      request);
}

}  // namespace spoke::ctl
