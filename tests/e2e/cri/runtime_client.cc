#include "tests/e2e/cri/runtime_client.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/time/clock.h"
#include "lib/base/status.h"

namespace spoke::cri {
namespace {

namespace v1 = runtime::v1;

// ExecSync answers in one message, with all that the command wrote.
constexpr int kMaxAnswerBytes = 64 << 20;

std::shared_ptr<grpc::Channel> Connect(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  // A proxy would be asked even for a local socket.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(),
                                   arguments);
}

// The codes of gRPC and absl::Status have the same numbers.
absl::Status FromGrpc(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

template <typename Request, typename Response>
using Method = grpc::Status (v1::RuntimeService::Stub::*)(grpc::ClientContext*, const Request&,
                                                          Response*);

template <typename Request, typename Response>
absl::StatusOr<Response> Call(v1::RuntimeService::Stub& stub, Method<Request, Response> method,
                              const Request& request, absl::Duration deadline) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  Response response;
  RETURN_IF_ERROR(FromGrpc((stub.*method)(&context, request, &response)));
  return response;
}

}  // namespace

RuntimeClient::RuntimeClient(const std::string& socket_path, absl::Duration deadline)
    : deadline_(deadline), stub_(v1::RuntimeService::NewStub(Connect(socket_path))) {}

absl::StatusOr<std::string> RuntimeClient::RunSandbox(const Pod& pod) {
  v1::RunPodSandboxRequest request;
  v1::PodSandboxConfig& config = *request.mutable_config();
  config.mutable_metadata()->set_name(pod.name);
  config.mutable_metadata()->set_namespace_(pod.pod_namespace);
  config.mutable_metadata()->set_uid(pod.uid);
  config.set_hostname(pod.name);
  for (const auto& [key, value] : pod.annotations) (*config.mutable_annotations())[key] = value;
  config.mutable_linux();
  ASSIGN_OR_RETURN(const v1::RunPodSandboxResponse response,
                   Call(*stub_, &v1::RuntimeService::Stub::RunPodSandbox, request, deadline_));
  return response.pod_sandbox_id();
}

absl::Status RuntimeClient::StopSandbox(const std::string& id) {
  v1::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(id);
  return Call(*stub_, &v1::RuntimeService::Stub::StopPodSandbox, request, deadline_).status();
}

absl::Status RuntimeClient::RemoveSandbox(const std::string& id) {
  v1::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(id);
  return Call(*stub_, &v1::RuntimeService::Stub::RemovePodSandbox, request, deadline_).status();
}

absl::StatusOr<v1::PodSandboxStatus> RuntimeClient::Status(const std::string& id) {
  v1::PodSandboxStatusRequest request;
  request.set_pod_sandbox_id(id);
  ASSIGN_OR_RETURN(const v1::PodSandboxStatusResponse response,
                   Call(*stub_, &v1::RuntimeService::Stub::PodSandboxStatus, request, deadline_));
  return response.status();
}

absl::StatusOr<std::vector<std::string>> RuntimeClient::Addresses(const std::string& id) {
  ASSIGN_OR_RETURN(const v1::PodSandboxStatus status, Status(id));
  std::vector<std::string> addresses;
  if (!status.network().ip().empty()) addresses.push_back(status.network().ip());
  for (const v1::PodIP& more : status.network().additional_ips()) addresses.push_back(more.ip());
  return addresses;
}

absl::StatusOr<std::vector<Sandbox>> RuntimeClient::ListSandboxes() {
  ASSIGN_OR_RETURN(const v1::ListPodSandboxResponse response,
                   Call(*stub_, &v1::RuntimeService::Stub::ListPodSandbox,
                        v1::ListPodSandboxRequest(), deadline_));
  std::vector<Sandbox> sandboxes;
  for (const v1::PodSandbox& item : response.items()) {
    sandboxes.push_back({item.id(), item.metadata().namespace_(), item.metadata().name(),
                         item.state() == v1::SANDBOX_READY});
  }
  return sandboxes;
}

absl::StatusOr<std::string> RuntimeClient::StartContainer(const std::string& id,
                                                          const std::string& image,
                                                          const std::vector<std::string>& command) {
  // The runtime wants the sandbox's configuration once more, though it has it: what it kept tells.
  ASSIGN_OR_RETURN(const v1::PodSandboxStatus sandbox, Status(id));
  v1::CreateContainerRequest request;
  request.set_pod_sandbox_id(id);
  *request.mutable_sandbox_config()->mutable_metadata() = sandbox.metadata();
  *request.mutable_sandbox_config()->mutable_labels() = sandbox.labels();
  *request.mutable_sandbox_config()->mutable_annotations() = sandbox.annotations();
  request.mutable_sandbox_config()->set_hostname(sandbox.metadata().name());
  request.mutable_sandbox_config()->mutable_linux();
  request.mutable_config()->mutable_metadata()->set_name("main");
  request.mutable_config()->mutable_image()->set_image(image);
  for (const std::string& word : command) request.mutable_config()->add_command(word);
  ASSIGN_OR_RETURN(const v1::CreateContainerResponse created,
                   Call(*stub_, &v1::RuntimeService::Stub::CreateContainer, request, deadline_));

  v1::StartContainerRequest start;
  start.set_container_id(created.container_id());
  RETURN_IF_ERROR(base::Annotate(
      Call(*stub_, &v1::RuntimeService::Stub::StartContainer, start, deadline_).status(),
      "start container " + created.container_id()));
  return created.container_id();
}

absl::StatusOr<ExecResult> RuntimeClient::Exec(const std::string& container_id,
                                               const std::vector<std::string>& command) {
  v1::ExecSyncRequest request;
  request.set_container_id(container_id);
  for (const std::string& word : command) request.add_cmd(word);
  // Without it, the runtime would let the command run on after we have given up.
  request.set_timeout(absl::ToInt64Seconds(absl::Ceil(deadline_, absl::Seconds(1))));
  ASSIGN_OR_RETURN(const v1::ExecSyncResponse response,
                   Call(*stub_, &v1::RuntimeService::Stub::ExecSync, request, deadline_));
  return ExecResult{response.exit_code(), response.stdout(), response.stderr()};
}

absl::Status RuntimeClient::CheckNetworkReady() {
  ASSIGN_OR_RETURN(const v1::StatusResponse response,
                   Call(*stub_, &v1::RuntimeService::Stub::Status, v1::StatusRequest(), deadline_));
  for (const v1::RuntimeCondition& condition : response.status().conditions()) {
    if (condition.type() != "NetworkReady") continue;
    if (condition.status()) return absl::OkStatus();
    return absl::FailedPreconditionError(condition.reason() + ": " + condition.message());
  }
  return absl::FailedPreconditionError("the runtime says nothing about its network");
}

}  // namespace spoke::cri
