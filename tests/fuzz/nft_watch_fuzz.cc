// Feeds what comes by nfnetlink's multicast group of nf_tables: never a crash, and a message more
// in front of it that is of ours makes it ours.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/check.h"
#include "netagent/nftables/nft_watch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint32_t kOwnPort = 7;
  static_cast<void>(spoke::netagent::OthersChangedOurTables({data, size}, kOwnPort));
  // NFT_MSG_DELTABLE (0x0A02) of "spoke".
  std::vector<uint8_t> bytes = {0x20, 0, 0, 0, 0x02, 0x0A, 0, 0, 0,   0,   0,   0,   0,   0, 0, 0,
                                0x01, 0, 0, 0, 0x0A, 0,    1, 0, 's', 'p', 'o', 'k', 'e', 0, 0, 0};
  bytes.insert(bytes.end(), data, data + size);
  CHECK(spoke::netagent::OthersChangedOurTables(bytes, kOwnPort), "a table of ours");
  return 0;
}
