// The course of ADDs of a pod, for people and for programs. Pure except for the session's clock.
#pragma once

#include <string>

#include "admin-cli/output/list_form.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ctl {

// Prints fields of the ADD, then its steps; times in milliseconds after its beginning.
std::string TextOf(const Session& session, const v1::AddTrace& add);

Json ToJson(const v1::AddTrace& add);

}  // namespace spoke::ctl
