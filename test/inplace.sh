#!/usr/bin/env bash
# inplace.sh - every form in place that the headers declare has its pair in test/op/test_ops_inplace.c, or
# stands below with the reason; then a suite calls it.
set -euo pipefail
cd "$(dirname "$0")/.."
apart="
bernoulli draws        exponential draws      normal draws           random draws
trunc_normal draws     uniform draws          dropout draws          alpha_dropout draws
feature_alpha_dropout draws                   rrelu draws
copy has-no-form-apart fill has-no-form-apart zero has-no-form-apart fill_diagonal has-no-form-apart
detach writes-nothing  requires_grad writes-nothing
apply takes-any-op     index_set is-a-language index_set_scalar is-a-language
index_accumulate is-a-language
div_rounding is-two-rows
fused_sgd of-lists     fused_adam of-lists    fused_adamw of-lists   fused_radam of-lists
fused_adamax of-lists  fused_adagrad of-lists fused_adadelta of-lists
fused_rmsprop of-lists fused_rprop of-lists   fused_lion of-lists
"
headers="include/tapegrad/*.h include/tapegrad/ops/*.h"
# shellcheck disable=SC2086
declared=$(sed -n -E 's/^(#define |TAPEGRAD_API Tensor \*)tensor_([a-z0-9_]+)_\(.*/\2/p' $headers |
    grep -v '_args$' | sort -u)
rows=$(sed -n -E 's/^(UNARY|BINARY|BITS)[12]?\(([a-z0-9_]+),.*/\2/p' include/tapegrad/ops.def)
pairs=$(grep -oE '\bROW\([a-z0-9_]+\)' test/op/test_ops_inplace.c | sed -E 's/ROW\((.*)\)/\1/')
[ "$(echo "$declared" | wc -l)" -gt 40 ] && [ "$(echo "$rows" | wc -l)" -gt 100 ] || {
    echo "inplace.sh: cannot read the headers any more" >&2
    exit 1
}
status=0
complain() { echo "inplace.sh: $*" >&2; status=1; }
for name in $declared; do
    if printf '%s\n' $rows $pairs | grep -x "$name" > /dev/null; then
        ! grep -qwE "$name [a-z-]+" <<< "$apart" || complain "tensor_${name}_ has a pair and an excuse"
    elif ! grep -qE "(^| )$name [a-z-]+" <<< "$apart"; then
        complain "tensor_${name}_ has no pair in test/op/test_ops_inplace.c, and no reason in test/inplace.sh"
    elif ! grep -qE "tensor_${name}_(args_)?\(|X\(${name#fused_}, Optim" test/*/*.c; then
        complain "no suite calls tensor_${name}_"
    fi
done
for name in $(grep -oE '[a-z_]+ [a-z-]+' <<< "$apart" | cut -d' ' -f1); do
    grep -qx "$name" <<< "$declared" || complain "tensor_${name}_ is excused, and no header has it"
done
echo "inplace: $(printf '%s\n' $declared $rows | sort -u | wc -l) forms"
exit $status
