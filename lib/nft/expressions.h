// An expression as libnftnl has it, for encode.cc alone. Pure.
#pragma once

// libnftnl/expr.h uses FILE and does not include it.
#include <cstdio>
//
#include <libnftnl/expr.h>

#include <memory>

#include "lib/nft/ruleset.h"

namespace spoke::nft {

struct FreeExpression {
  void operator()(nftnl_expr* expression) const { nftnl_expr_free(expression); }
};
using OwnedExpression = std::unique_ptr<nftnl_expr, FreeExpression>;

// Translates for a rule in a table of `family`. Never returns null: without memory the program
// ends.
OwnedExpression Translate(const Expression& expression, Family family);

// Returns the kernel's number of a verdict (NF_ACCEPT, NFT_JUMP).
int32_t VerdictNumber(VerdictKind kind);

// Makes a counter that begins with `seed`.
OwnedExpression NewCounter(const CountHere& seed);

}  // namespace spoke::nft
