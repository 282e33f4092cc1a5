#!/bin/bash
# Does the exchange hide behind the gradient where vectors are on a device? Three agents on a ring
# with the emulated device (gpu/emulated.c), whose copies
# take the time of a slow bus, and with gradients that only take time: it shows what waits for what,
# and no GPU's speed.
#
#   tests/bench/device_overlap.sh [BUILD [ELEMENTS [MB_S [GRADIENT_MS]]]]
#
# BUILD has gossip_agents.
# and the emulated plug-in
#
# A gradient takes GRADIENT_MS and the copies of model and gradient between device and task; an
# exchange takes one copy out and, beside it, two copies in.
# adapt-then-combine does one after the other, which tells how long the exchange takes. On a busy
# machine: chrt -f 10 tests/bench/device_overlap.sh
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${1:-$here/../../build}
elements=${2:-250000}
export STARLING_PLUGIN=$build/gpu/libstarling-emulated.so
export STARLING_COPY_MB_S=${3:-20} GOSSIP_GRADIENT_MS=${4:-100}

# Median ms of a round of this variant.
round_ms() {
    "$build/tests/bench/gossip_agents" 3 "$elements" 20 device=cuda:0 "algorithm.variant=$1" \
        2>/dev/null | sed 's/.*"median_ms": \([0-9.]*\).*/\1/'
}

together=$(round_ms combine-while-adapt)
in_turn=$(round_ms adapt-then-combine)
awk -v elements="$elements" -v rate="$STARLING_COPY_MB_S" -v sleep="$GOSSIP_GRADIENT_MS" \
    -v together="$together" -v in_turn="$in_turn" 'BEGIN {
    gradient = sleep + 2 * 4 * elements / rate / 1000
    exchange = in_turn - gradient
    printf "ms a round: gradient %.1f, exchange %.1f; one after the other %.1f, together %.1f: ",
           gradient, exchange, in_turn, together
    printf "%.3f of the longer\n", together / (gradient > exchange ? gradient : exchange)
}'
