#include "netagent/links/testing/link_acts.h"

#include <algorithm>

namespace spoke::netagent {
namespace {

template <typename T>
void AddMissing(const T& value, std::vector<T>& values) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

// Puts the entry in the place of whatever is there for the address.
void SetNeighbour(const PermanentNeighbour& wanted, std::vector<PermanentNeighbour>& entries) {
  for (PermanentNeighbour& entry : entries) {
    if (entry.address == wanted.address) {
      entry = wanted;
      return;
    }
  }
  entries.push_back(wanted);
}

void ApplyToHost(const AttachSpec& spec, const LinkOperation& operation, HostSide& host) {
  switch (operation.part) {
    case Part::kHostSetting:
      for (const HostLinkSetting& setting : kHostLinkSettings) {
        if (setting.number >= host.settings.size()) host.settings.resize(setting.number + 1U);
        host.settings[setting.number] = setting.value;
      }
      host.address_generation = kHostLinkAddressGeneration;
      break;
    case Part::kHostRouters: {
      const Ipv6Setting setting = RouterSettingOf(spec);
      (setting.name == "accept_ra" ? host.accept_ra : host.disable_ipv6) = setting.value;
      break;
    }
    case Part::kHostMac:
      host.mac = spec.host_mac;
      host.neighbours.clear();
      break;
    case Part::kHostMtu:
      host.mtu = operation.mtu;
      break;
    case Part::kIngressLimit:
      host.limit = IngressRateOf(spec);
      break;
    case Part::kHostUp:
      host.up = true;
      break;
    case Part::kHostNeighbour:
      SetNeighbour({*operation.address, operation.mac}, host.neighbours);
      break;
    case Part::kHostRule:
      std::erase_if(host.rules,
                    [&](const SourceTable& rule) { return rule.address == *operation.address; });
      host.rules.push_back({*operation.address, operation.table});
      break;
    case Part::kHostRoute:
      AddMissing(*operation.address, host.routes);
      break;
    default:
      break;
  }
}

void ApplyToPod(const AttachSpec& spec, const LinkOperation& operation, PodSide& pod) {
  switch (operation.part) {
    case Part::kPodUp:
      pod.up = true;
      break;
    case Part::kPodAddress:
      AddMissing(*operation.address, pod.addresses);
      break;
    case Part::kPodNeighbour:
      SetNeighbour({GatewayOf(*operation.address), spec.host_mac}, pod.neighbours);
      break;
    case Part::kPodRoute:
      for (const PodRoute& route : PodRoutesOf(spec, *operation.address)) {
        AddMissing(route, pod.routes);
      }
      break;
    case Part::kPodRule:
      AddMissing({ip::Prefix::Host(*operation.address), PodTableOf(spec)}, pod.rules);
      break;
    default:
      break;
  }
}

void Build(const AttachSpec& spec, HostSide& host, PodSide& pod) {
  for (const LinkOperation& operation : PlanLink(spec, {})) ApplyTo(spec, operation, host, pod);
}

}  // namespace

void ApplyTo(const AttachSpec& spec, const LinkOperation& operation, HostSide& host, PodSide& pod) {
  if (operation.part == Part::kHostLink) {
    // As the kernel makes a link where nobody has changed its defaults.
    host = {
        .exists = true, .mac = spec.host_mac, .mtu = spec.mtu, .accept_ra = 1, .disable_ipv6 = 0};
    pod = {.name = spec.pod_link, .up = true, .mac = spec.pod_mac, .mtu = spec.mtu};
    return;
  }
  ApplyToHost(spec, operation, host);
  ApplyToPod(spec, operation, pod);
}

HostSide BuiltHostSide(const AttachSpec& spec) {
  HostSide host;
  PodSide pod;
  Build(spec, host, pod);
  return host;
}

PodSide BuiltPodSide(const AttachSpec& spec) {
  HostSide host;
  PodSide pod;
  Build(spec, host, pod);
  return pod;
}

}  // namespace spoke::netagent
