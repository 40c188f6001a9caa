#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "admin-cli/output/list_form.h"
#include "admin-cli/pool/rank_order.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"
#include "lib/ip/address.h"

namespace spoke::ctl {
namespace {

absl::StatusOr<v1::ReservationInfo> FindReservation(const Session& session,
                                                    const std::string& name) {
  ASSIGN_OR_RETURN(const v1::ListReservationsResponse response,
                   session.client.Ask(kListReservations));
  for (const v1::ReservationInfo& reservation : response.reservations()) {
    if (reservation.name() == name) return reservation;
  }
  return absl::NotFoundError(
      fmt::format("there is no reservation \"{}\": spokectl reserve list", name));
}

// Pods by interface: one with an address of each family is one host, by the IPv4 address unless
// IPv6 is asked for.
class Hosts {
 public:
  explicit Hosts(const Arguments& arguments)
      : pod_namespace_(arguments.Text("namespace")),
        family_(arguments.Has("ipv6") ? ip::Family::kV6 : ip::Family::kV4) {}

  absl::Status Add(const v1::AddressInfo& info) {
    if (!pod_namespace_.empty() && info.pod_namespace() != pod_namespace_) return absl::OkStatus();
    ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(info.address()));
    const RankedPod pod{.address = address,
                        .node = info.node(),
                        .pod_namespace = info.pod_namespace(),
                        .pod_name = info.pod_name()};
    const auto [at, is_first] =
        pods_.try_emplace({info.node(), info.container_id(), info.ifname()}, pod);
    if (!is_first && address.family() == family_) at->second = pod;
    return absl::OkStatus();
  }

  std::vector<RankedPod> InRankOrder() const {
    std::vector<RankedPod> hosts;
    for (const auto& [key, pod] : pods_) hosts.push_back(pod);
    SortByRank(hosts);
    return hosts;
  }

 private:
  const std::string pod_namespace_;
  const ip::Family family_;
  std::map<std::tuple<std::string, std::string, std::string>, RankedPod> pods_;
};

absl::Status PrintHosts(const Session& session, const std::vector<RankedPod>& hosts) {
  if (!session.is_table() && session.format != Format::kName) {
    Json list = Json::array();
    for (size_t rank = 0; rank < hosts.size(); ++rank) {
      list.push_back({{"rank", rank},
                      {"address", hosts[rank].address.ToString()},
                      {"node", hosts[rank].node},
                      {"pod_namespace", hosts[rank].pod_namespace},
                      {"pod_name", hosts[rank].pod_name}});
    }
    return session.PrintValue(list);
  }
  const uint32_t slots = session.arguments.Count("slots");
  for (const RankedPod& host : hosts) {
    session.Out(host.address.ToString() + (slots == 0 ? "" : fmt::format(" slots={}", slots)) +
                "\n");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> PrintHostfile(Session& session) {
  const Arguments& arguments = session.arguments;
  ASSIGN_OR_RETURN(const v1::ReservationInfo reservation,
                   FindReservation(session, arguments.Text("name")));
  std::vector<std::string> nodes(reservation.nodes().begin(), reservation.nodes().end());
  if (nodes.empty()) {
    if (!arguments.Has("namespace")) {
      return absl::InvalidArgumentError(fmt::format(
          "reserve hosts: reservation \"{}\" names no nodes, so say with --namespace which pods "
          "are the job's",
          reservation.name()));
    }
    nodes.emplace_back();  // All of them.
  }
  Hosts hosts(arguments);
  for (const std::string& node : nodes) {
    v1::ListAddressesRequest request;
    request.set_node(node);
    request.set_state("in_use");
    const absl::Status read =
        session.client.Read(kListAddresses, request, [&](const v1::ListAddressesResponse& batch) {
          for (const v1::AddressInfo& address : batch.addresses()) {
            RETURN_IF_ERROR(hosts.Add(address));
          }
          return absl::OkStatus();
        });
    // A node that has not joined yet has no pods.
    if (!read.ok() && !absl::IsNotFound(read)) return read;
  }
  const std::vector<RankedPod> found = hosts.InRankOrder();
  if (arguments.Has("pods") && found.size() != arguments.Count("pods")) {
    return absl::FailedPreconditionError(
        fmt::format("reservation \"{}\": {} pods have an address there, not {}: try again when all "
                    "have started, or tell the job's from others with --namespace",
                    reservation.name(), found.size(), arguments.Count("pods")));
  }
  return Done(PrintHosts(session, found));
}

}  // namespace

Command HostsCommand(const Parameter& reservation) {
  return {
      .name = "hosts",
      .summary = "The addresses of a job's pods, in the order of ranks",
      .description =
          "Prints a hostfile for mpirun and its like: an address a line, of each pod that has one "
          "on "
          "the nodes of the reservation. Pods of a StatefulSet or an indexed Job come in the order "
          "of their indexes, others node by node and by address.",
      .examples = {"spokectl reserve hosts train-7 --pods 16 --slots 8 > hosts",
                   "spokectl reserve hosts train-8 --namespace training --pods 4096 > hosts",
                   "mpirun --hostfile hosts ./allreduce"},
      .positionals = {reservation},
      .options = {{.name = "pods",
                   .value = "N",
                   .help = "Fail with code 5 unless there are so many",
                   .values = Values::kCount},
                  {.name = "namespace",
                   .value = "NAMESPACE",
                   .help = "Pods of one namespace",
                   .letter = 'n'},
                  {.name = "slots",
                   .value = "N",
                   .help = "Processes on each, which mpirun reads behind the address",
                   .values = Values::kCount},
                  {.name = "ipv6", .help = "The IPv6 address of pods that have both"}},
      .run = PrintHostfile};
}

}  // namespace spoke::ctl
