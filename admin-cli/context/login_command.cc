// The verb `login`: a token of the cluster for a certificate of this Spoke.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>

#include "absl/strings/ascii.h"
#include "admin-cli/context/context_file.h"
#include "admin-cli/session.h"
#include "admin-cli/verbs.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/rpc/credentials.h"
#include "lib/tls/certificate.h"
#include "proto/spoke/v1/enroll.grpc.pb.h"

namespace spoke::ctl {
namespace {

constexpr size_t kMaxTokenBytes = 16 << 10;
constexpr size_t kMaxPemBytes = size_t{1} << 20;
constexpr const char* kEnrollPort = "7445";

// Where things of a login lie.
struct Places {
  std::string name;         // The context's.
  std::string path;         // The file of contexts.
  std::string folder = {};  // Its folder.
  Context context = {};     // As it is so far.
};

// Returns "spoke-a:7445" for "spoke-a:7447".
std::string EnrollAddressOf(const std::string& server) {
  return server.substr(0, server.rfind(':') + 1) + kEnrollPort;
}

absl::StatusOr<std::string> ReadToken(const Session& session) {
  const std::string& file = session.arguments.Text("token-file");
  std::string token;
  if (file == "-") {
    ASSIGN_OR_RETURN(token, session.world.console.ReadInput(kMaxTokenBytes));
  } else {
    ASSIGN_OR_RETURN(token, os::ReadFile(file, kMaxTokenBytes));
  }
  token = std::string(absl::StripAsciiWhitespace(token));
  if (token.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("login: there is no token in {}; make one: kubectl create token NAME "
                    "--audience spoke-operators",
                    file == "-" ? "standard input" : file));
  }
  return token;
}

absl::StatusOr<Places> FindPlaces(const Session& session) {
  Places places{.name = session.arguments.Text("context"),
                .path = ContextPath(session.world.variable)};
  ASSIGN_OR_RETURN(const ContextFile file, ReadContexts(places.path));
  if (places.name.empty()) places.name = file.current.empty() ? "default" : file.current;
  RETURN_IF_ERROR(CheckContextName(places.name));
  places.folder = os::DirectoryOf(places.path);
  if (const auto known = file.contexts.find(places.name); known != file.contexts.end()) {
    places.context = known->second;
  }
  const Arguments& arguments = session.arguments;
  if (arguments.Has("at")) places.context.servers = arguments.All("at");
  if (arguments.Has("server-name")) places.context.server_name = arguments.Text("server-name");
  for (const std::string& server : places.context.servers) {
    RETURN_IF_ERROR(base::Annotate(CheckServer(server), "--at"));
  }
  if (places.context.servers.empty() || places.context.servers.front().starts_with("unix:")) {
    return absl::InvalidArgumentError(
        fmt::format("login: say with --at HOST:PORT where the servers of context {} serve "
                    "operators",
                    places.name));
  }
  return places;
}

// Returns the file that says whom to trust, and its text.
absl::StatusOr<std::string> ReadAuthority(const Session& session, const Places& places) {
  std::string file = session.arguments.Text("ca");
  if (file.empty()) file = places.context.ca;
  if (file.empty()) {
    return absl::InvalidArgumentError(
        "login: whom to trust is not known; say --ca FILE: kubectl -n spoke-system get configmap "
        "spoke-ca -o 'jsonpath={.data.ca\\.pem}' > ca.pem");
  }
  if (!session.arguments.Has("ca") && file.front() != '/') file = places.folder + "/" + file;
  return os::ReadFile(file, kMaxPemBytes);
}

struct Wanted {
  std::string address;
  std::string server_name;
  std::string authority;
  absl::Duration timeout;
};

absl::StatusOr<v1::OperatorCertificateReply> Ask(const Wanted& wanted,
                                                 const v1::OperatorCertificateRequest& request) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!wanted.server_name.empty()) arguments.SetSslTargetNameOverride(wanted.server_name);
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = wanted.authority;
  const auto stub = v1::EnrollService::NewStub(
      grpc::CreateCustomChannel(wanted.address, grpc::SslCredentials(options), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMicroseconds(wanted.timeout));
  v1::OperatorCertificateReply reply;
  const grpc::Status status = stub->IssueOperatorCertificate(&context, request, &reply);
  if (status.ok()) return reply;
  const bool said = context.debug_error_string().find("received from peer") != std::string::npos;
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !said) {
    return absl::UnavailableError(fmt::format(
        "no server gives certificates at {}: is that its enroll.address, and its certificate of "
        "the authority in --ca? (--enroll names another) [{}]",
        wanted.address, status.error_message()));
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnimplementedError("the server gives operators no certificates: it is older");
  }
  return rpc::FromGrpc(static_cast<int>(status.error_code()), status.error_message());
}

absl::Status Keep(const Places& places, const std::string& key,
                  const v1::OperatorCertificateReply& reply) {
  ASSIGN_OR_RETURN(ContextFile file, ReadContexts(places.path));
  Context& context = file.contexts[places.name];
  context = places.context;
  context.ca = places.name + "-ca.pem";
  context.certificate = places.name + ".pem";
  context.key = places.name + ".key";
  file.current = places.name;
  // The folder is made with the file of contexts; what it names comes before anybody looks.
  RETURN_IF_ERROR(WriteContexts(places.path, file));
  const auto write = [&](const std::string& name, const std::string& text) {
    return os::WriteFileAtomic(places.folder + "/" + name, text, os::Durability::kSurvivesPower,
                               0600);
  };
  RETURN_IF_ERROR(write(context.key, key));
  RETURN_IF_ERROR(write(context.ca, reply.ca()));
  return write(context.certificate, reply.certificate_chain());
}

absl::StatusOr<int> Login(Session& session) {
  ASSIGN_OR_RETURN(const Places places, FindPlaces(session));
  if (places.path.empty()) {
    return absl::FailedPreconditionError(
        "login: nobody knows where contexts are kept: set HOME, or SPOKE_CONFIG to a file");
  }
  ASSIGN_OR_RETURN(const std::string authority, ReadAuthority(session, places));
  v1::OperatorCertificateRequest request;
  ASSIGN_OR_RETURN(*request.mutable_token(), ReadToken(session));
  ASSIGN_OR_RETURN(const std::string key, tls::MakeKey());
  ASSIGN_OR_RETURN(*request.mutable_csr(), tls::MakeSigningRequest(key, "operator"));
  std::string address = session.arguments.Text("enroll");
  if (address.empty()) address = EnrollAddressOf(places.context.servers.front());
  ASSIGN_OR_RETURN(const v1::OperatorCertificateReply reply,
                   Ask({.address = address,
                        .server_name = places.context.server_name,
                        .authority = authority,
                        .timeout = session.arguments.Duration("timeout")},
                       request));
  RETURN_IF_ERROR(tls::CheckKeyFits(reply.certificate_chain(), key));
  RETURN_IF_ERROR(Keep(places, key, reply));
  session.Out(fmt::format("{} is {} of {} until {}\n", Printable(reply.user()),
                          Printable(reply.role()), places.name, TimeOf(reply.not_after() * 1000)));
  return 0;
}

}  // namespace

Command LoginCommand() {
  return {
      .name = "login",
      .summary = "Get a certificate for a token of the cluster",
      .description =
          "Shows the server a token that Kubernetes has made for it alone, and gets a certificate "
          "for twelve hours, with the role that the server's enroll.operators gives the token's "
          "user or its groups. Key, certificate and context are written beside the file of "
          "contexts; the context is the current one then. The token is kept nowhere. It must be "
          "for the audience spoke-operators: one for the API server itself is refused, so that "
          "nobody lends its own rights.",
      .examples =
          {"kubectl create token alice --audience spoke-operators | spokectl login --context prod "
           "--at spoke-a:7447 --at spoke-b:7447 --ca ca.pem",
           "kubectl create token alice --audience spoke-operators | spokectl login"},
      .options = {{.name = "token-file",
                   .value = "FILE",
                   .help = "The file with the token; - is standard input",
                   .values = Values::kFile,
                   .fallback = "-"},
                  {.name = "at",
                   .value = "HOST:PORT",
                   .help = "Where a server serves operators; what the context has otherwise",
                   .repeated = true},
                  {.name = "enroll",
                   .value = "HOST:PORT",
                   .help = "Where the server gives certificates; port 7445 of the first server "
                           "otherwise"},
                  {.name = "ca",
                   .value = "FILE",
                   .help = "The authority to trust, from the ConfigMap spoke-ca; that of the "
                           "context otherwise",
                   .values = Values::kFile},
                  {.name = "server-name",
                   .value = "NAME",
                   .help = "What the server's certificate bears, if not the host"}},
      .run = Login,
      .group = kGroupSelf};
}

}  // namespace spoke::ctl
