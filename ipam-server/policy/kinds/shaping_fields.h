// The fields that the kinds of bandwidth have in common. Pure. What is wrong is recorded with its
// line, as config_text.h says.
#pragma once

#include <string>
#include <string_view>

#include "ipam-server/policy/fields.h"
#include "ipam-server/policy/objects/object.h"
#include "lib/config/config_text.h"
#include "lib/units/quantity.h"

namespace spoke::ipam {

// A rate as lib/units has it. Absent: `out` stays.
void ReadRate(const config::ConfigMap& map, std::string_view key, config::Need need,
              units::BitRate& out);

// Reads `mode`: Enforce, which is the default, or Shadow. Returns whether it is Shadow.
bool ReadShadow(const config::ConfigMap& spec);
std::string ModeText(bool shadow);

// Reads `destinationGroup`: a name and its line; empty: the Internet.
Listed<std::string> ReadScope(const config::ConfigMap& spec);
Reference ReferenceTo(const Listed<std::string>& group);

}  // namespace spoke::ipam
