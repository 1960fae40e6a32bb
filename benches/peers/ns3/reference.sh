#!/bin/sh
# Makes every file of reference/ again, one ns-3 process at a time. Takes a quarter of an hour.
# Usage: ./reference.sh [folder]        (default: reference)
# The .csv files come out byte for byte the same; the .json files differ in their wall times.
set -eu
cd "$(dirname "$0")"
folder=${1:-reference}
make
mkdir -p "$folder/fct" "$folder/timeline"

peer() {
    nice ./ns3-peer "$@"
}

# The objects that come in, as one JSON array, and beside it the table of the same runs.
array_and_table() {
    awk 'BEGIN { print "[" } /^\{/ && NR > 1 { print "," } { print } END { print "]" }' >"$folder/$1.json"
    awk -f table.awk "$folder/$1.json" >"$folder/$1.csv"
}

# short SEEDS LOADS CONTROLLERS WINDOWS [OPTION...]: the short plan over every combination.
short() {
    seeds=$1 loads=$2 controllers=$3 windows=$4
    shift 4
    for cc in $controllers; do
        for window in $windows; do
            for load in $loads; do
                for seed in $seeds; do
                    peer --plan=short --duration-s=600 --cc="$cc" --initial-window="$window" \
                        --load="$load" --seed="$seed" --min-rto-s=1 --syn-timeout-s=3 "$@"
                done
            done
        done
    done
}

all_loads='0.05 0.25 0.5 0.6 0.7'
delayed='--ack-every=2 --ack-delay-s=0.2 --hystart=off'
immediate='--ack-every=1 --ack-delay-s=0.2 --hystart=off'

# The set to agree with, and the same with an acknowledgement for every segment.
for cc in cubic newreno; do
    # shellcheck disable=SC2086 # the options are several words
    short '1 2 3' "$all_loads" "$cc" '2 10' $delayed | array_and_table "short-delayed-$cc"
done
short '1 2 3' '0.25 0.6' 'cubic newreno' '2 10' $immediate | array_and_table short-immediate

# Side notes: hybrid slow start; NewReno with byte counting.
short 1 "$all_loads" cubic '2 10' --ack-every=2 --ack-delay-s=0.2 --hystart=on |
    array_and_table short-hystart
short '1 2 3' '0.25 0.6' linuxreno '2 10' $delayed | array_and_table short-linuxreno

# Bulk, with hybrid slow start off and on.
for hystart in off on; do
    peer --plan=bulk --cc=cubic --initial-window=10 --ack-every=2 --hystart=$hystart \
        >"$folder/bulk-hystart-$hystart.json"
done

# Flow by flow, for a comparison that does not average.
for window in 2 10; do
    for every in 1 2; do
        peer --load=0.25 --seed=1 --duration-s=600 --cc=cubic --initial-window=$window \
            --ack-every=$every --fct-log="$folder/fct/cubic-iw$window-ack$every-load0.25-seed1.csv" \
            >/dev/null
    done
done

# One flow alone on the path, with buffers that make it lose: no chance in it at all.
start=$(mktemp)
trap 'rm -f "$start"' EXIT
echo 0 >"$start"
alone() {
    peer --arrivals="$start" --duration-s=1 --hosts=1 "$@"
}
for cc in cubic newreno; do
    for every in 1 2; do
        for window in 2 10; do
            for buffer in 5000 7000 9000 12000 16000 20000 24000 28000 32000 115000; do
                alone --cc=$cc --ack-every=$every --initial-window=$window --buffer-bytes=$buffer
            done
            for buffer in 30000 60000 115000; do
                alone --cc=$cc --ack-every=$every --initial-window=$window --buffer-bytes=$buffer \
                    --flow-bytes=2000000
            done
        done
    done
done | awk -f table.awk >"$folder/alone.csv"

# The same, packet by packet, for a few of them.
timeline() {
    alone --cc="$1" --initial-window="$2" --ack-every="$3" --buffer-bytes="$4" \
        --packet-log="$folder/timeline/$1-iw$2-ack$3-buffer$4.csv" >/dev/null
}
timeline cubic 10 2 115000  # nothing lost
timeline cubic 10 2 20000   # six losses at the end of slow start
timeline cubic 10 1 20000   # the same, acknowledged one by one
timeline cubic 2 2 9000     # two recoveries
timeline cubic 10 1 28000   # the last segment lost: timeout
timeline newreno 10 2 9000  # losses in the initial window, small ssthresh
