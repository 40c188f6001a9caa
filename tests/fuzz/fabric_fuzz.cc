// Feeds what a guest may send into the fabric, and what may stand in its attachments file: never a
// crash, and nothing is forwarded to a NIC that is not there.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "lib/base/check.h"
#include "tests/fabric/decide.h"
#include "tests/fabric/frame.h"
#include "tests/fabric/gateways.h"
#include "tests/fabric/nic_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using spoke::fabric::Gateways;
  using spoke::fabric::NicTable;
  using spoke::fabric::ParseGateway;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto nics = [] {
    return std::vector<spoke::fabric::Nic>{
        *spoke::fabric::ParseNic("a=va,00:0d:3a:00:00:01,10.0.0.4"),
        *spoke::fabric::ParseNic("b=vb,00:0d:3a:00:00:02,10.0.0.5,fd00::5")};
  };
  if (const auto attachments = spoke::fabric::ParseAttachments(text); attachments.ok()) {
    const auto table = NicTable::Build(nics(), *attachments);
    CHECK(!table.ok() || table->size() >= 3, "attachments never take the NICs' own addresses away");
  }
  if (const auto nic = spoke::fabric::ParseNic(text); nic.ok()) {
    CHECK(!nic->addresses.empty(), "a NIC that parses has an address");
  }
  const auto table = NicTable::Build(nics(), {});
  const auto gateways =
      Gateways::Build({*ParseGateway("10.0.0.1/24"), *ParseGateway("fd00::1/64")});
  for (const bool delivers_tags : {false, true}) {
    const auto fate = Decide(*table, {*gateways, 1400, delivers_tags}, {0, std::span(data, size)});
    if (const auto* forward = std::get_if<spoke::fabric::Forward>(&fate)) {
      CHECK(forward->nic == 1, "a frame goes to a NIC that is there, and never back");
      CHECK(forward->frame.size() == size, "a packet is not changed in length");
    }
    if (const auto* refuse = std::get_if<spoke::fabric::Refuse>(&fate)) {
      CHECK(spoke::fabric::ParseFrame(refuse->error).ok(), "an ICMP error is a frame itself");
    }
  }
  return 0;
}
