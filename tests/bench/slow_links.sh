#!/bin/bash
# A CHOCO-SGD top-1 % round beside a dense D-PSGD round where links are slow: N agents on a ring,
# each in a network namespace of its own behind a rate-limited virtual card, all joined by one
# bridge.
#
#   tests/bench/slow_links.sh [BUILD [RATE_MBIT [N [D]]]]
#
# Needs root and iproute2. Builds nothing: meson compile -C BUILD gossip_agents.
#
# Everything that it makes is removed when it ends, however it ends.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${1:-$here/../../build}
rate=${2:-100}
nodes=${3:-8}
dimension=${4:-25557032}
agents=$build/tests/bench/gossip_agents
if [ ! -x "$agents" ]; then
    echo "$agents is not built (meson compile -C BUILD gossip_agents)" >&2
    exit 1
fi
prefix=starling-$$-
switch=${prefix}switch

cleanup() {
    for i in $(seq 0 $((nodes - 1))); do
        ip netns del "$prefix$i" 2>/dev/null || true
    done
    ip netns del "$switch" 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 130' INT TERM

ip netns add "$switch"
ip -n "$switch" link add bridge0 type bridge
ip -n "$switch" link set bridge0 up
for i in $(seq 0 $((nodes - 1))); do
    ip netns add "$prefix$i"
    ip link add veth0 netns "$prefix$i" type veth peer name "port$i" netns "$switch"
    ip -n "$switch" link set "port$i" master bridge0 up
    ip -n "$prefix$i" link set lo up
    ip -n "$prefix$i" addr add "10.80.0.$((i + 1))/24" dev veth0
    ip -n "$prefix$i" link set veth0 up
    tc -n "$prefix$i" qdisc replace dev veth0 root tbf rate "${rate}mbit" burst 64kb latency 50ms
done

# median_of ROUNDS [KEY=VALUE ...]
median_of() {
    GOSSIP_NETNS=$prefix "$agents" "$nodes" "$dimension" "$@" 2>/dev/null |
        sed 's/.*"median_ms": \([0-9.]*\).*/\1/'
}
choco=$(median_of 8 algorithm.name=choco-sgd algorithm.compressor.name=top-k \
    algorithm.compressor.fraction=0.01)
dense=$(median_of 1)
awk -v c="$choco" -v d="$dense" -v n="$nodes" -v r="$rate" -v dim="$dimension" \
    'BEGIN {
    printf "%d agents on a ring, %d Mbit/s, d = %d: CHOCO top-1 %% %.0f ms a round, ", n, r, dim, c
    printf "D-PSGD %.0f ms, ratio %.4f\n", d, c / d
}'
