// The "store.etcd" section of the server's configuration. Pure.
#pragma once

#include "ipam-server/config.h"
#include "lib/config/config_text.h"

namespace spoke::ipam {

// Reads what `map`, the value of store.etcd, holds besides its directory; mistakes go on the
// document's record. Whether the files can be read is found out when they are used.
EtcdConfig ReadEtcd(const config::ConfigMap& map);

}  // namespace spoke::ipam
