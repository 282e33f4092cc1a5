#!/bin/sh
# mlp_step.sh - our MLP step beside PyTorch's, in turns, five times: medians, minima and their ratios.
#
# Usage: meson compile -C BUILD mlp_step, then
#        tests/bench/mlp_step.sh [BUILD]    BUILD: the meson build folder (default: build)
# Needs Debian's python3-torch; PYTHON names another interpreter that has PyTorch.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
python=${PYTHON:-/usr/bin/python3}

if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "mlp_step: $python has no PyTorch; install it with: apt-get install python3-torch" >&2
    exit 1
fi
[ -x "$build/tests/bench/mlp_step" ] || { echo "mlp_step: not built; run: meson compile -C $build mlp_step" >&2; exit 1; }
for turn in 1 2 3 4 5; do
    "$build/tests/bench/mlp_step"
    "$python" "$here/mlp_step.py"
done | awk '
    { print; n[$1]++; median[$1, n[$1]] = $2; if (!($1 in least) || $3 < least[$1]) least[$1] = $3 }
    function middle(name,    i, j, t, m) { # of the five medians
        for (i = 1; i <= n[name]; i++) m[i] = median[name, i]
        for (i = 1; i <= n[name]; i++) for (j = i + 1; j <= n[name]; j++) if (m[j] < m[i]) { t = m[i]; m[i] = m[j]; m[j] = t }
        return m[int((n[name] + 1) / 2)]
    }
    END {
        print "\nMLP 784-256-10, batch 32, forward and backward, one thread"
        printf "%-10s %12s %12s\n", "", "median ms", "minimum ms"
        printf "%-10s %12.3f %12.3f\n", "starling", middle("starling"), least["starling"]
        printf "%-10s %12.3f %12.3f\n", "pytorch", middle("pytorch"), least["pytorch"]
        printf "%-10s %12.2f %12.2f\n", "ratio", middle("starling") / middle("pytorch"), least["starling"] / least["pytorch"]
    }'
