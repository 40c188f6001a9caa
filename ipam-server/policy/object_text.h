// Policy objects as text for operators: the same words as in their files, in canonical form. Pure.
#pragma once

#include <string>

#include "ipam-server/policy/objects/object.h"

namespace spoke::ipam {

// The whole object on one line, keys sorted.
std::string ObjectJson(const PolicyObject& object);

// The whole object as one YAML document without "---". Applying it changes nothing.
std::string ObjectYaml(const PolicyObject& object);

}  // namespace spoke::ipam
