#include "tests/azure-sim/wireserver_model.h"

#include "fmt/core.h"
#include "tests/azure-sim/resources/render.h"

namespace spoke::azure_sim {
namespace {

http::Response Xml(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.headers = {{"Content-Type", "text/xml; charset=utf-8"},
                      {"Server", "Microsoft-IIS/10.0"}};
  response.body = std::move(body);
  return response;
}

}  // namespace

http::Response WireserverModel::Handle(const http::Request& request, std::string_view instance_id,
                                       absl::Time now) {
  backend_.timeline().RunUntil(now);
  const Instance* instance = backend_.world().FindInstance(instance_id);
  if (instance == nullptr) return {};
  const Target target = ParseTarget(request.url);
  const bool plugins = target.Key(0) == "machine" && target.Key(1) == "plugins";
  if (request.method == "GET" && plugins && target.Query("comp") == "nmagent" &&
      Lower(target.Query("type")) == "getinterfaceinfov1") {
    return Xml(200, InterfaceInfo(*instance));
  }
  if (request.method == "GET" && target.Query("comp") == "versions") {
    return Xml(
        200,
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Versions><Preferred><Version>2015-04-05"
        "</Version></Preferred><Supported><Version>2015-04-05</Version></Supported>"
        "</Versions>\n");
  }
  return Xml(404,
             "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Error><Code>NotFound</Code></Error>"
             "\n");
}

std::string WireserverModel::InterfaceInfo(const Instance& instance) const {
  std::string xml = "<Interfaces>\n";
  for (const Nic* nic : instance.nics) {
    xml += fmt::format("    <Interface MacAddress=\"{}\" IsPrimary=\"{}\">\n", BareMac(nic->mac),
                       nic->primary);
    if (!nic->entries.empty()) {
      xml += fmt::format("        <IPSubnet Prefix=\"{}\">\n",
                         nic->entries[0].subnet->v4.prefix().ToString());
      for (const NicEntry& entry : nic->entries) {
        if (!entry.range.base().is_v4()) continue;
        const uint64_t count = backend_.knobs().local_views_expand_blocks ? entry.range.size() : 1;
        for (uint64_t n = 0; n < count; ++n) {
          xml += fmt::format("            <IPAddress Address=\"{}\" IsPrimary=\"{}\"/>\n",
                             ip::Advance(entry.range.base(), n).ToString(), entry.primary);
        }
      }
      xml += "        </IPSubnet>\n";
    }
    xml += "    </Interface>\n";
  }
  return xml + "</Interfaces>\n";
}

}  // namespace spoke::azure_sim
