// The program spoke-cri: pods of a container runtime from the command line, for tests and the demo.
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/e2e/cri/runtime_client.h"

namespace spoke::cri {
namespace {

constexpr int kFailed = 1;
constexpr int kBadArguments = 2;

constexpr const char* kFooter = R"(Example:
  id=$(spoke-cri --socket /run/containerd/containerd.sock run web --namespace shop)
  spoke-cri --socket /run/containerd/containerd.sock ip "$id"

Exits with 0, with 1 after a line on standard error, with 2 for bad arguments; exec with the code
of the command.)";

struct Options {
  std::string socket;
  double deadline_seconds = 60;
  Pod pod;
  std::vector<std::string> annotations;  // The annotations, as "key=value".
  std::string id;                        // The id of a sandbox or a container.
  std::string image;
  std::vector<std::string> command;
};

int Fail(const absl::Status& status) {
  std::string line(status.message());
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  fmt::print(stderr, "spoke-cri: {}\n", line.empty() ? status.ToString() : line);
  return kFailed;
}

int Finish(const absl::Status& status) { return status.ok() ? 0 : Fail(status); }

int Print(const absl::StatusOr<std::string>& answer) {
  if (!answer.ok()) return Fail(answer.status());
  fmt::print("{}\n", *answer);
  return 0;
}

int Run(RuntimeClient& client, Options& options) {
  if (options.pod.uid.empty()) {
    options.pod.uid = fmt::format("uid-{}-{}", options.pod.pod_namespace, options.pod.name);
  }
  for (const std::string& annotation : options.annotations) {
    const size_t equals = annotation.find('=');
    options.pod.annotations[annotation.substr(0, equals)] = annotation.substr(equals + 1);
  }
  return Print(client.RunSandbox(options.pod));
}

int PrintAddresses(RuntimeClient& client, const Options& options) {
  const absl::StatusOr<std::vector<std::string>> addresses = client.Addresses(options.id);
  if (!addresses.ok()) return Fail(addresses.status());
  if (addresses->empty()) {
    return Fail(absl::NotFoundError(fmt::format("sandbox {} has no address", options.id)));
  }
  for (const std::string& address : *addresses) fmt::print("{}\n", address);
  return 0;
}

int Exec(RuntimeClient& client, const Options& options) {
  const absl::StatusOr<ExecResult> result = client.Exec(options.id, options.command);
  if (!result.ok()) return Fail(result.status());
  std::fwrite(result->out.data(), 1, result->out.size(), stdout);
  std::fwrite(result->err.data(), 1, result->err.size(), stderr);
  return result->exit_code;
}

int List(RuntimeClient& client) {
  const absl::StatusOr<std::vector<Sandbox>> sandboxes = client.ListSandboxes();
  if (!sandboxes.ok()) return Fail(sandboxes.status());
  for (const Sandbox& sandbox : *sandboxes) {
    fmt::print("{} {}/{} {}\n", sandbox.id, sandbox.pod_namespace, sandbox.pod_name,
               sandbox.ready ? "ready" : "notready");
  }
  return 0;
}

std::string CheckAnnotation(const std::string& text) {
  const size_t equals = text.find('=');
  return equals == std::string::npos || equals == 0 ? "wants key=value" : "";
}

void AddVerbs(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  CLI::App* run = app.add_subcommand("run", "Start a pod's sandbox and print its id");
  run->add_option("NAME", options.pod.name, "The pod's name")->required();
  run->add_option("--namespace", options.pod.pod_namespace, "The pod's Kubernetes namespace")
      ->default_val("default");
  run->add_option("--uid", options.pod.uid, "The pod's uid [uid-NAMESPACE-NAME]");
  run->add_option("--annotation", options.annotations, "key=value; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(CheckAnnotation);
  const auto add_with_id = [&](const char* verb, const char* what, const char* id_of) {
    CLI::App* command = app.add_subcommand(verb, what);
    command->add_option("ID", options.id, id_of)->required();
    return command;
  };
  add_with_id("ip", "Print a pod's addresses, one a line", "The sandbox");
  add_with_id("stop", "Stop a sandbox: its containers, then its network", "The sandbox");
  add_with_id("remove", "Remove a stopped sandbox", "The sandbox");
  CLI::App* start = add_with_id("start", "Start a container and print its id", "The sandbox");
  start->add_option("IMAGE", options.image, "An image the runtime has")->required();
  start->add_option("COMMAND", options.command, "After --: the command")->required();
  CLI::App* exec = add_with_id("exec", "Run a command in a container", "The container");
  exec->add_option("COMMAND", options.command, "After --: the command")->required();
  app.add_subcommand("list", "Print each sandbox: id, namespace/name, ready or notready");
  app.add_subcommand("ready", "Exit with 0 if the runtime has a network for pods");
}

int Dispatch(std::string_view verb, Options& options) {
  RuntimeClient client(options.socket, absl::Seconds(options.deadline_seconds));
  if (verb == "run") return Run(client, options);
  if (verb == "ip") return PrintAddresses(client, options);
  if (verb == "stop") return Finish(client.StopSandbox(options.id));
  if (verb == "remove") return Finish(client.RemoveSandbox(options.id));
  if (verb == "start") {
    return Print(client.StartContainer(options.id, options.image, options.command));
  }
  if (verb == "exec") return Exec(client, options);
  if (verb == "list") return List(client);
  return Finish(client.CheckNetworkReady());
}

int RunMain(int argc, char** argv) {
  Options options;
  CLI::App app("Runs pods on a container runtime through CRI v1, as kubelet would.", "spoke-cri");
  app.footer(kFooter);
  app.add_option("--socket", options.socket, "The runtime's socket")->type_name("PATH")->required();
  app.add_option("--deadline", options.deadline_seconds, "For each call")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  AddVerbs(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadArguments;
  }
  return Dispatch(app.get_subcommands().front()->get_name(), options);
}

}  // namespace
}  // namespace spoke::cri

int main(int argc, char** argv) {
  try {
    return spoke::cri::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-cri: %s\n", error.what());
    return 1;
  }
}
