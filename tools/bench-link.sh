#!/usr/bin/env bash
# Accuracy and speed of the emulator on this machine: iperf3 and ping through paths of several
# rates, as a table in Markdown. Usage: tools/bench-link.sh [HEADSTART] [SECONDS] [REPEATS]
#
# Needs iperf3 and ping (Debian: apt-get install iperf3 iputils-ping). Each path is run in two fresh
# namespaces, so no root is needed and nothing outside is changed; with root the relay has real-time
# priority. Close other programs first: the load of the machine is printed with each row; or, as
# root, give iperf3 real-time priority too: ENDS='chrt -f 1' tools/bench-link.sh
set -euo pipefail
headstart=${1:-./target/release/headstart}
seconds=${2:-8}
repeats=${3:-3}
ends=${ENDS-}
for tool in iperf3 ping; do
    command -v "$tool" >/dev/null || { echo "bench-link.sh: $tool is missing" >&2; exit 1; }
done
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

echo "| path | idle RTT (ms) | received (Mbit/s) | of the link's payload rate | lateness p50 / p99 / max (us) | valid | load |"
echo "|---|---|---|---|---|---|---|"
measure() { # rate in Mbit/s, RTT in ms, how many
    local rate=$1 rtt=$2
    load=$(cut -d' ' -f1 /proc/loadavg)
    # shellcheck disable=SC2016  # the inner shell knows the variable
    timeout $((seconds + 30)) "$headstart" link --rate "${rate}mbit" --rtt "${rtt}ms" --buffer "1 BDP" --log "$out/log" \
        --serve "exec $ends iperf3 -s -1 >/dev/null" -- sh -c '
            ping -c 10 -i 0.1 -q "$HEADSTART_OUTSIDE" >"'"$out"'/ping"
            '"$ends"' iperf3 -c "$HEADSTART_OUTSIDE" -R -t '"$seconds"' -O 1 -f m >"'"$out"'/iperf"' 2>"$out/summary" || true
    idle=$(sed -n 's|^rtt.* = [^/]*/\([^/]*\)/.*|\1|p' "$out/ping")
    got=$(sed -n 's|.* \([0-9.]*\) Mbits/sec.*receiver.*|\1|p' "$out/iperf")
    share=$(awk -v got="${got:-0}" -v rate="$rate" 'BEGIN { printf "%.1f %%", 100 * got / (rate * 1448 / 1500) }')
    late=$(python3 - "$out/log" <<'P'
import sys
late = []
for line in open(sys.argv[1]):
    if ",down,departure," in line:
        fields = line.split(",")
        late.append(int(fields[0]) - int(fields[7]))
late.sort()
pick = lambda share: late[min(len(late) - 1, int(share * len(late)))] / 1000
print(f"{pick(0.5):.1f} / {pick(0.99):.1f} / {late[-1] / 1000:.0f}" if late else "-")
P
)
    valid=$(grep -q '^Valid' "$out/summary" && echo yes || echo no)
    echo "| $rate Mbit/s, $rtt ms | ${idle:--} | ${got:--} | $share | $late | $valid | $load |"
}
for path in "25 50" "100 20" "500 20" "1000 20" "1000 2"; do
    for _ in $(seq "$repeats"); do
        # shellcheck disable=SC2086  # two words on purpose
        measure $path
    done
done
