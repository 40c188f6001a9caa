// An expression as libnftnl has it. For encode.cc alone. Pure.
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

// For a rule in a table of `family`. Never null: without memory the program ends.
OwnedExpression Translate(const Expression& expression, Family family);

// As the kernel numbers verdicts (NF_ACCEPT, NFT_JUMP).
int32_t VerdictNumber(VerdictKind kind);

// A counter that begins with `seed`.
OwnedExpression NewCounter(const CountHere& seed);

}  // namespace spoke::nft
