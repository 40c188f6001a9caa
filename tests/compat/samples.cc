#include "tests/compat/samples.h"

#include "lib/cni_api/wire.h"
#include "lib/node_api/messages.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::compat {
namespace {

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }
ip::Prefix P(std::string_view text) { return ip::Prefix::Parse(text).value(); }
ip::MacAddress Mac(std::string_view text) { return ip::MacAddress::Parse(text).value(); }

netagent::Assignment AssignmentSample() {
  return {.key = {"c0ffee", "eth0"},
          .pod = {"ns", "pod", "uid"},
          .addresses = {A("10.1.0.5"), A("fd00::5")},
          .generation = 42,
          .since = kThen,
          .attempt = 7,
          .netns_path = "/run/netns/cni-1",
          .network = "spoke",
          .options = {.pod_mac = Mac("02:00:5e:00:53:01"),
                      .mtu = 1400,
                      .ordinal = 1,
                      .bandwidth = {units::BitRate(1'000'000), units::BitCount(2'000'000),
                                    units::BitRate(3'000'000), units::BitCount(4'000'000)}}};
}

}  // namespace

std::vector<netagent::Event> JournalSample() {
  const ip::MacAddress mac = Mac("00:0d:3a:01:02:03");
  return {netagent::HoldingsReplaced{{{A("10.1.0.5"), "default"}, {A("fd00::5"), "six", mac}},
                                     {{"six", "fd00::/64", {"web", "batch"}}}},
          netagent::AssignmentBegun{AssignmentSample()},
          netagent::AssignmentBuilt{{"c0ffee", "eth0"}},
          netagent::AssignmentReleased{{"c0ffee", "eth0"}, kThen},
          netagent::AssignmentReleased{{"c0ffee", "net1"}, kThen, /*unused=*/true},
          netagent::CooldownSet{A("10.1.0.5"), kThen},
          netagent::WithdrawnSet{{A("10.1.0.5"), A("fd00::5")}},
          netagent::WithdrawnSet{{A("10.1.0.5")}, /*withdrawn=*/false},
          netagent::ConflictNoted{A("10.1.0.5"), mac},
          netagent::ConflictNoted{A("10.1.0.5"), std::nullopt},
          netagent::AddressesProven{{A("10.1.0.5"), A("fd00::5")}}};
}

ipam::NodeRecord NodeSample() {
  ipam::NodeRecord record{.key = {"node1", "vm-1"},
                          .boot_id = "boot",
                          .session_epoch = 7,
                          .nic_mac = Mac("00:0d:3a:00:00:01"),
                          .next_configuration = 9,
                          .mode = ipam::NodeMode::kDraining,
                          .labels = {{"zone", "2"}, {"empty", ""}},
                          .vnet = "west"};
  const auto add = [&](std::string_view range, const char* pool, const char* name) -> auto& {
    const ipam::Configuration made(P(range), pool, name, kThen);
    return record.configurations.emplace(made.range.base(), made).first->second;
  };
  add("10.1.0.4/32", "p", "spoke-0").state = ipam::AddressState::kAttaching;
  ipam::Configuration& in_use = add("10.1.0.5/32", "p", "spoke-1");
  in_use.state = ipam::AddressState::kAttached;
  in_use.slots[0] = {.use = ipam::Use::kInUse,
                     .generation = 5,
                     .since = kThen + absl::Seconds(1),
                     .lessee = std::make_shared<const node_api::Lessee>(
                         node_api::Lessee{"c1", "eth0", "ns", "pod", "uid"})};
  ipam::Configuration& block = add("10.2.0.16/28", "blocks", "spoke-2");
  block.state = ipam::AddressState::kDetaching;
  block.denied_until = kThen + absl::Minutes(5);
  block.slots[3] = {.use = ipam::Use::kCooldown, .generation = 9, .since = kThen};
  record.released = {{P("10.1.0.9/32"), kThen}};
  record.instance = "/subscriptions/s/resourcegroups/g/providers/vm/1";
  record.subnets = {P("10.1.0.0/16"), P("fd00::/64")};
  record.nic_read = true;
  record.wanted = {{"spoke-7", {.pool = "blocks", .prefix_length = 28, .since = kThen}},
                   {"spoke-9",
                    {.pool = "p",
                     .since = kThen,
                     .given = P("10.9.0.4/32"),
                     .problem = "is in none of the pools"}}};
  return record;
}

std::pair<ip::Address, ipam::Quarantine> QuarantineSample() {
  return {A("10.1.0.77"), {.reason = "another machine answers", .since = kThen}};
}

ipam::Reservation ReservationSample() {
  return {.name = "job-1",
          .by_count = true,
          .addresses_per_node = 8,
          .created = kThen,
          .expires = kThen + absl::Hours(1),
          .open_places = 3};
}

// Returns a state. Older versions do not store what was refused, only since when and why.
ipam::BreakerState BreakerSample() {
  ipam::BreakerState state;
  state.freeze = ipam::BreakerState::Freeze{.since = kThen, .reason = "too many would go"};
  state.pardon = ipam::BreakerState::Pardon{.since = kThen - absl::Hours(1), .reason = "a node"};
  state.freed = {{.at = kThen, .addresses = 32}};
  state.trips = 4;
  return state;
}

std::string HelloBytes() {
  node_api::Hello hello{.node = {.node_name = "node1",
                                 .vm_id = "vm-1",
                                 .boot_id = "boot",
                                 .agent_version = "0.1.0",
                                 .labels = {{"zone", "2"}},
                                 .vnet = "west",
                                 .instance = "/subscriptions/s/vm/1",
                                 .subnets = {P("10.1.0.0/16")}},
                        .nic = {.name = "eth0",
                                .mac = Mac("00:0d:3a:00:00:01"),
                                .mtu = 1500,
                                .addresses = {A("10.1.0.4")}},
                        .cooldown = {A("10.1.0.6")},
                        .policy_version = 12};
  netagent::AddEntries(AssignmentSample(), hello.in_use);
  return node_api::ToWire(hello).SerializeAsString();
}

std::string WelcomeBytes() {
  return node_api::ToWire(node_api::Welcome{.session_epoch = 7, .server_version = "0.1.0"})
      .SerializeAsString();
}

std::string DesiredBytes() {
  return node_api::ToWire(node_api::DesiredState{.version = 3,
                                                 .full = true,
                                                 .added = {{.range = P("10.1.0.16/31"),
                                                            .name = "spoke-3",
                                                            .pool = "default",
                                                            .nic_mac = Mac("00:0d:3a:00:00:01"),
                                                            .cooldown = absl::Seconds(9)}},
                                                 .removed = {P("10.1.0.9/32")},
                                                 .pools = {{.name = "default",
                                                            .cidr = "10.1.0.0/24",
                                                            .usable = 251,
                                                            .attached = 16,
                                                            .free = 235,
                                                            .namespaces = {"web"}}}})
      .SerializeAsString();
}

std::string CniRequestBytes() {
  cni::Request request;
  request.verb = cni::Verb::kAdd;
  request.container_id = "c0ffee";
  request.ifname = "eth0";
  request.network_name = "spoke";
  request.pod = {"ns", "pod", "uid"};
  request.deadline_monotonic_ms = 123'456;
  request.attempt = 7;
  request.netns = "/run/netns/cni-1";
  request.trace_parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  request.options.mac = "02:00:5e:00:53:01";
  request.options.addresses = {"10.1.0.5"};
  request.options.mtu = 1400;
  request.options.bandwidth = {units::BitRate(1'000'000), units::BitCount(2'000'000),
                               units::BitRate(3'000'000), units::BitCount(4'000'000)};
  request.options.internet = {units::BitRate(5'000'000), units::BitRate(6'000'000), 7};
  request.plugin_version = "0.1.0";
  return cni::EncodeRequest(request);
}

std::string CniResponseBytes() {
  return cni::EncodeResponse({.outcome = cni::Response::Outcome::kAttachment,
                              .attachment = {.host_link = "spk1",
                                             .host_mac = "0e:00:00:00:00:01",
                                             .pod_mac = "02:00:5e:00:53:01",
                                             .mtu = 1400,
                                             .addresses = {{"10.1.0.5/32", "169.254.1.1"}}}});
}

}  // namespace spoke::compat
