#include "ipam-server/rpc/convert.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxNameLength = 253;  // RFC 1123 host names, and plenty for the rest.
constexpr size_t kMaxIdLength = 512;    // A cloud's VM id is a path.
constexpr int kMaxLendings = 8192;      // Far above what one node can hold.

// Printable ASCII without blanks: these end up in keys, logs and tables.
absl::Status CheckName(std::string_view field, std::string_view text, size_t max_length) {
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!text.empty() && text.size() <= max_length && printable) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} must be 1 to {} printable characters without blanks", field, max_length));
}

absl::StatusOr<Lending> FromWire(const v1::Lending& in) {
  Lending lending;
  ASSIGN_OR_RETURN(lending.address, ip::Address::FromBytes(in.address()));
  RETURN_IF_ERROR(CheckName("container_id", in.container_id(), kMaxIdLength));
  RETURN_IF_ERROR(CheckName("ifname", in.ifname(), kMaxNameLength));
  lending.generation = in.generation();
  lending.since = absl::FromUnixMillis(in.since_unix_ms());
  lending.lessee = {.container_id = in.container_id(),
                    .ifname = in.ifname(),
                    .pod_namespace = in.pod_namespace().substr(0, kMaxNameLength),
                    .pod_name = in.pod_name().substr(0, kMaxNameLength),
                    .pod_uid = in.pod_uid().substr(0, kMaxNameLength)};
  return lending;
}

absl::StatusOr<std::vector<Lending>> FromWire(
    const google::protobuf::RepeatedPtrField<v1::Lending>& in) {
  if (in.size() > kMaxLendings) {
    return absl::InvalidArgumentError(fmt::format("more than {} lendings", kMaxLendings));
  }
  std::vector<Lending> lendings;
  for (const v1::Lending& lending : in) {
    ASSIGN_OR_RETURN(lendings.emplace_back(), FromWire(lending));
  }
  return lendings;
}

absl::StatusOr<std::vector<ip::Address>> AddressesFromWire(
    const google::protobuf::RepeatedPtrField<std::string>& in) {
  std::vector<ip::Address> addresses;
  for (const std::string& bytes : in) {
    ASSIGN_OR_RETURN(addresses.emplace_back(), ip::Address::FromBytes(bytes));
  }
  return addresses;
}

void ToWire(const DesiredState& in, v1::DesiredState& out) {
  out.set_version(in.version);
  out.set_full(in.full);
  for (const DesiredAddress& address : in.added) {
    v1::IpConfiguration& configuration = *out.add_added();
    configuration.set_name(address.configuration);
    configuration.set_base(address.address.ToBytes());
    configuration.set_prefix_length(static_cast<uint32_t>(address.address.bits()));
    configuration.set_pool(address.pool);
    configuration.set_nic_mac(address.nic_mac.ToString());
    configuration.set_cooling_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(address.cooling)));
  }
  for (const ip::Address& address : in.removed) {
    v1::IpConfiguration& configuration = *out.add_removed();
    configuration.set_base(address.ToBytes());
    configuration.set_prefix_length(static_cast<uint32_t>(address.bits()));
  }
  for (const PoolState& pool : in.pools) {
    v1::PoolState& state = *out.add_pools();
    state.set_name(pool.name);
    state.set_cidr(pool.cidr);
    state.set_usable(pool.usable);
    state.set_attached(pool.attached);
    state.set_free(pool.free);
  }
}

}  // namespace

absl::StatusOr<Hello> FromWire(const v1::Hello& in) {
  RETURN_IF_ERROR(CheckName("node_name", in.node_name(), kMaxNameLength));
  if (in.node_name().find('/') != std::string::npos) {
    return absl::InvalidArgumentError("node_name must not hold a slash");
  }
  RETURN_IF_ERROR(CheckName("vm_id", in.vm_id(), kMaxIdLength));
  RETURN_IF_ERROR(CheckName("boot_id", in.boot_id(), kMaxNameLength));
  if (in.nics().empty()) {
    return absl::InvalidArgumentError(fmt::format("node {} names no NIC", in.node_name()));
  }
  Hello hello;
  hello.key = {.name = in.node_name(), .vm_id = in.vm_id()};
  hello.boot_id = in.boot_id();
  hello.agent_version = in.agent_version().substr(0, kMaxNameLength);
  ASSIGN_OR_RETURN(hello.nic_mac, ip::MacAddress::Parse(in.nics(0).mac()));
  ASSIGN_OR_RETURN(hello.lent, FromWire(in.lent()));
  ASSIGN_OR_RETURN(hello.cooling, AddressesFromWire(in.cooling()));
  return hello;
}

absl::StatusOr<LendingReport> FromWire(const v1::LendingReport& in) {
  LendingReport report;
  report.sequence = in.sequence();
  ASSIGN_OR_RETURN(report.lent, FromWire(in.lent()));
  for (const v1::Release& release : in.released()) {
    ASSIGN_OR_RETURN(const ip::Address address, ip::Address::FromBytes(release.address()));
    report.released.push_back({.address = address, .generation = release.generation()});
  }
  ASSIGN_OR_RETURN(report.cooled, AddressesFromWire(in.cooled()));
  return report;
}

v1::ServerMessage ToWire(const ToAgent& message, std::string_view server_version) {
  v1::ServerMessage out;
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    out.mutable_welcome()->set_session_epoch(welcome->session_epoch);
    out.mutable_welcome()->set_server_version(std::string(server_version));
  } else if (const auto* desired = std::get_if<DesiredState>(&message)) {
    ToWire(*desired, *out.mutable_desired());
  } else {
    out.mutable_report_ack()->set_sequence(std::get<ReportAck>(message).sequence);
  }
  return out;
}

v1::PoolInfo DescribePool(const Fleet& fleet, const AddressPool& pool) {
  AddressCounts counts;
  for (const auto& [key, record] : fleet.nodes()) {
    for (const auto& [address, held] : record.addresses) {
      if (held.pool == pool.spec().name) counts.Add(held);
    }
  }
  v1::PoolInfo info;
  info.set_name(pool.spec().name);
  info.set_cidr(pool.spec().cidr.ToString());
  info.set_usable(pool.usable());
  info.set_free(pool.free());
  info.set_attaching(counts.attaching);
  info.set_idle(counts.idle);
  info.set_lent(counts.lent);
  info.set_cooling(counts.cooling);
  return info;
}

v1::NodeInfo DescribeNode(const Fleet& fleet, const NodeRecord& record, const Session* session) {
  const AddressCounts counts = CountAddresses(record);
  v1::NodeInfo info;
  info.set_name(record.key.name);
  info.set_vm_id(record.key.vm_id);
  info.set_boot_id(record.boot_id);
  info.set_session_epoch(record.session_epoch);
  info.set_attaching(counts.attaching);
  info.set_attached(counts.attached());
  info.set_lent(counts.lent);
  info.set_cooling(counts.cooling);
  info.set_target(fleet.TargetOf(record));
  info.set_shortage(fleet.ShortageOf(record));
  info.set_connected(session != nullptr);
  if (session != nullptr) {
    info.set_desired_version(session->desired_version);
    info.set_acked_version(session->acked_version);
  }
  return info;
}

v1::AddressInfo DescribeAddress(const NodeRecord& record, const ip::Address& address,
                                const HeldAddress& held) {
  v1::AddressInfo info;
  info.set_address(address.ToString());
  info.set_state(std::string(NameOf(held.state, held.use)));
  info.set_pool(held.pool);
  info.set_node(record.key.name);
  info.set_vm_id(record.key.vm_id);
  info.set_nic_mac(record.nic_mac.ToString());
  info.set_ip_configuration(held.configuration);
  info.set_since_unix_ms(absl::ToUnixMillis(held.since));
  if (held.lessee) {
    info.set_pod_namespace(held.lessee->pod_namespace);
    info.set_pod_name(held.lessee->pod_name);
    info.set_container_id(held.lessee->container_id);
    info.set_ifname(held.lessee->ifname);
  }
  return info;
}

}  // namespace spoke::ipam
