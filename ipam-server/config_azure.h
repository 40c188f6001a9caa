// The "azure" section of the server's configuration. Pure.
#pragma once

#include "ipam-server/cloud/azure/settings.h"
#include "lib/config/config_text.h"

namespace spoke::ipam {

// Reads what `map`, the value of cloud.azure, holds; mistakes go on the document's record.
azure::Settings ReadAzure(const config::ConfigMap& map);

}  // namespace spoke::ipam
