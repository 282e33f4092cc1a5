#!/bin/bash
# Does combine-while-adapt's exchange run while the gradient is computed? Two agents in network
# namespaces of their own, joined by a pair of virtual cards with a rate limit, so that exchange and
# gradient both take over 20 ms; adapt-then-combine beside it.
#
#   tests/bench/overlap.sh [STARLING [RATE_MBIT [BATCH]]]      needs root, iproute2 and two cores
#
# Everything that it makes is removed when it ends, however it ends.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
starling=$(realpath "${1:-$here/../../build/tools/starling}")
rate=${2:-220}
batch=${3:-2048}
spaces=("starling-$$-0" "starling-$$-1")
folder=$(mktemp -d)
agents=()

cleanup() {
    for agent in "${agents[@]}"; do
        kill "$agent" 2>/dev/null || true
    done
    wait
    for space in "${spaces[@]}"; do
        ip netns del "$space" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

link() {
    for i in 0 1; do
        ip netns add "${spaces[$i]}"
    done
    ip link add veth0 netns "${spaces[0]}" type veth peer name veth0 netns "${spaces[1]}"
    for i in 0 1; do
        ip -n "${spaces[$i]}" link set lo up
        ip -n "${spaces[$i]}" addr add "10.79.0.$((i + 1))/24" dev veth0
        ip -n "${spaces[$i]}" link set veth0 up
        tc -n "${spaces[$i]}" qdisc replace dev veth0 root tbf \
            rate "${rate}mbit" burst 64kb latency 50ms
        echo "10.79.0.$((i + 1)):7411" >>"$folder/roster"
    done
}

# train VARIANT: both agents, each on its own core
train() {
    agents=()
    for i in 0 1; do
        OPENBLAS_NUM_THREADS=1 ip netns exec "${spaces[$i]}" taskset -c "$i" \
            "$starling" agent "$here/overlap.json" --rank "$i" --roster "$folder/roster" \
            --set security.trusted_network=true \
            --out "$folder/$1-$i" --set "algorithm.variant=$1" --set "data.batch=$batch" \
            >"$folder/log-$1-$i" 2>&1 &
        agents+=($!)
    done
    for i in 0 1; do
        if ! wait "${agents[$i]}"; then
            cat "$folder/log-$1-$i" >&2
            exit 1
        fi
    done
    agents=()
}

link
for variant in combine-while-adapt adapt-then-combine; do
    train "$variant"
done
echo "two agents, one core each, $rate Mbit/s, batch $batch"
python3 "$here/overlap.py" "$folder"
