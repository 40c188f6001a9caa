#include "netagent/sync/server_wire.h"

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"

namespace spoke::netagent {
namespace {

// The wire has one entry an address, the agent one lending of one or two.
template <typename AddLending>
void ToWire(const Lending& lending, const AddLending& add) {
  for (const ip::Address& address : lending.addresses) {
    v1::Lending& out = *add();
    out.set_address(address.ToBytes());
    out.set_container_id(lending.key.container_id);
    out.set_ifname(lending.key.ifname);
    out.set_pod_namespace(lending.pod.pod_namespace);
    out.set_pod_name(lending.pod.name);
    out.set_pod_uid(lending.pod.uid);
    out.set_generation(lending.generation);
    out.set_since_unix_ms(absl::ToUnixMillis(lending.since));
  }
}

absl::StatusOr<ip::Prefix> BlockOf(const v1::IpConfiguration& in) {
  ASSIGN_OR_RETURN(const ip::Address base, ip::Address::FromBytes(in.base()));
  if (in.prefix_length() > 128) {
    return absl::InvalidArgumentError(fmt::format("prefix length {}", in.prefix_length()));
  }
  return ip::Prefix::Of(base, static_cast<int>(in.prefix_length()));
}

}  // namespace

v1::Hello HelloToWire(const NodeIdentity& identity, const Greeting& greeting, const Nic& nic) {
  v1::Hello hello;
  hello.set_node_name(identity.node_name);
  hello.set_vm_id(identity.vm_id);
  hello.set_boot_id(identity.boot_id);
  hello.set_agent_version(identity.agent_version);
  v1::Nic& out = *hello.add_nics();
  out.set_name(nic.name);
  out.set_mac(nic.mac.ToString());
  out.set_mtu(nic.mtu);
  for (const ip::Address& address : nic.addresses) out.add_addresses(address.ToBytes());
  for (const Lending& lending : greeting.lent) {
    ToWire(lending, [&] { return hello.add_lent(); });
  }
  for (const ip::Address& address : greeting.cooling) hello.add_cooling(address.ToBytes());
  return hello;
}

v1::LendingReport ReportToWire(const LendingReport& report) {
  v1::LendingReport out;
  for (const Lending& lending : report.lent) {
    ToWire(lending, [&] { return out.add_lent(); });
  }
  for (const Lending& lending : report.released) {
    for (const ip::Address& address : lending.addresses) {
      v1::Release& release = *out.add_released();
      release.set_address(address.ToBytes());
      release.set_generation(lending.generation);
    }
  }
  for (const ip::Address& address : report.cooled) out.add_cooled(address.ToBytes());
  return out;
}

absl::StatusOr<DesiredState> FromWire(const v1::DesiredState& in) {
  DesiredState desired{.version = in.version(), .full = in.full()};
  uint64_t total = 0;
  const auto expand = [&](const v1::IpConfiguration& configuration,
                          const auto& take) -> absl::Status {
    ASSIGN_OR_RETURN(const ip::Prefix block, BlockOf(configuration));
    if (block.size() > kMaxAddresses || (total += block.size()) > kMaxAddresses) {
      return absl::InvalidArgumentError(
          fmt::format("more than {} addresses for one node", kMaxAddresses));
    }
    for (uint64_t i = 0; i < block.size(); ++i) take(ip::Advance(block.base(), i));
    return absl::OkStatus();
  };
  for (const v1::IpConfiguration& added : in.added()) {
    RETURN_IF_ERROR(expand(added, [&](const ip::Address& address) {
      desired.added.push_back({.address = address,
                               .pool = added.pool(),
                               .cooling = absl::Milliseconds(added.cooling_ms())});
    }));
  }
  for (const v1::IpConfiguration& removed : in.removed()) {
    RETURN_IF_ERROR(
        expand(removed, [&](const ip::Address& address) { desired.removed.push_back(address); }));
  }
  for (const v1::PoolState& pool : in.pools()) {
    desired.pools.push_back(
        {pool.name(), pool.cidr(), pool.usable(), pool.attached(), pool.free()});
  }
  return desired;
}

}  // namespace spoke::netagent
