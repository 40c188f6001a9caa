// A client for a container runtime's pods, over CRI v1: what kubelet would ask for, one call at a
// time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/e2e/cri/runtime.grpc.pb.h"

namespace spoke::cri {

// The pod that a sandbox is for.
struct Pod {
  std::string name;
  std::string pod_namespace;
  std::string uid;
  std::map<std::string, std::string> annotations;
};

struct Sandbox {
  std::string id;
  std::string pod_namespace;
  std::string pod_name;
  bool ready = false;
};

struct ExecResult {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// The client. Every call ends after `deadline` at the latest. Errors are the runtime's, with its
// code and its words: kNotFound (no such sandbox or container), kUnavailable (no runtime at the
// socket), kDeadlineExceeded (it may have happened), kUnknown (the most that containerd says, a
// failing CNI plugin included). Thread-safe.
class RuntimeClient {
 public:
  // Does not connect yet.
  RuntimeClient(const std::string& socket_path, absl::Duration deadline);

  // Starts a sandbox; returns its id.
  absl::StatusOr<std::string> RunSandbox(const Pod& pod);
  // Ends the sandbox and its containers, network included. Returns OK when it is stopped already.
  absl::Status StopSandbox(const std::string& id);
  // Removes a sandbox. Returns OK when there is none.
  absl::Status RemoveSandbox(const std::string& id);

  // Returns the pod's addresses, the primary one first; empty in a sandbox without a network of its
  // own.
  absl::StatusOr<std::vector<std::string>> Addresses(const std::string& id);
  absl::StatusOr<std::vector<Sandbox>> ListSandboxes();

  // Creates and starts a container named "main" in sandbox `id`; returns its id. The image must be
  // there already.
  absl::StatusOr<std::string> StartContainer(const std::string& id, const std::string& image,
                                             const std::vector<std::string>& command);
  // Runs `command` in a running container to its end.
  absl::StatusOr<ExecResult> Exec(const std::string& container_id,
                                  const std::vector<std::string>& command);

  // Returns OK when the runtime has a network for pods; kFailedPrecondition, with its reason, when
  // not.
  absl::Status CheckNetworkReady();

 private:
  absl::StatusOr<runtime::v1::PodSandboxStatus> Status(const std::string& id);

  absl::Duration deadline_;
  std::unique_ptr<runtime::v1::RuntimeService::Stub> stub_;
};

}  // namespace spoke::cri
