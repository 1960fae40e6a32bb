#!/usr/bin/env bash
# Independent clients fetch a page with every scheme through the emulated path, and a browser loads
# a page with subresources.
#
# Installs missing tools (Debian packages as root, PyPI in a virtual environment, Go modules,
# crates). Prints a matrix; `interop/run.sh FILE` also writes it there. Fails if any test failed or
# could not run.
set -euo pipefail
cd "$(dirname "$0")/.."

headstart=${HEADSTART:-target/release/headstart}
work=${INTEROP_FOLDER:-target/interop}
matrix=${1:-}
rate=25mbit rtt=40ms buffer=104p
mkdir -p "$work"
work=$(cd "$work" && pwd)
failures=0
pids=()

say() { printf '%s\n' "$*" >&2; }
stop() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
}
trap stop EXIT

# Tools of each client. A client that cannot be installed counts as failed, never as passed.
install() { # COMMAND PACKAGE...
    local command=$1
    shift
    command -v "$command" >/dev/null && return
    say "interop: installing $*"
    apt-get install -y -qq --no-install-recommends "$@" >"$work/apt.log" 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"; } >>"$work/apt.log" 2>&1 || true
    command -v "$command" >/dev/null
}

have_aioquic() {
    [ -x "$work/venv/bin/python" ] || python3 -m venv "$work/venv" || return
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check -r interop/aioquic/requirements.txt
}
have_ngtcp2() { install gtlsclient ngtcp2-client; }
have_quic_go() {
    install go golang-go || return
    (cd interop/quic-go && go build -o "$work/quic-go" .)
}
have_quiche() {
    # bindgen reads BoringSSL's headers through libclang.
    install cmake cmake || return
    ls /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so* >/dev/null 2>&1 ||
        apt-get install -y -qq --no-install-recommends libclang1 libclang-common-14-dev >"$work/apt.log" 2>&1 || true
    CFLAGS=-g0 CXXFLAGS=-g0 CMAKE_TOOLCHAIN_FILE=$PWD/interop/quiche/unity.cmake CARGO_TARGET_DIR="$work/quiche" \
        cargo build --quiet --manifest-path interop/quiche/Cargo.toml
}

fetch_aioquic() { "$work/venv/bin/python" interop/aioquic/fetch.py "$1" "$2"; }
fetch_quic_go() { "$work/quic-go" "$1" "$2"; }
fetch_quiche() { "$work/quiche/debug/interop-quiche" "$1" "$2"; }
fetch_ngtcp2() {
    local folder=$work/download port=${1#https://127.0.0.1:}
    rm -rf "$folder"
    mkdir "$folder"
    gtlsclient -q --no-quic-dump --no-http-dump --exit-on-all-streams-close --download="$folder" \
        127.0.0.1 "${port%%/*}" "$1" && mv "$folder"/* "$2"
}

# A page with subresources, one request each.
make_site() {
    local site=$work/site
    rm -rf "$site"
    mkdir -p "$site"
    head -c 200000 /dev/urandom >"$site/page.bin"
    for number in 1 2 3 4 5 6; do head -c $((number * 12000)) /dev/urandom >"$site/part-$number.bin"; done
    { printf '/* '; head -c 20000 /dev/zero | tr '\0' x; printf ' */ body { color: #123456 }\n'; } >"$site/style.css"
    { printf '// '; head -c 40000 /dev/zero | tr '\0' y; printf '\nwindow.scripted = true\n'; } >"$site/script.js"
    cat >"$site/index.html" <<'HTML'
<!doctype html><meta charset=utf-8><title>interop</title>
<link rel=stylesheet href=style.css><script src=script.js></script>
<p id=result>not loaded</p>
<img src=part-1.bin><img src=part-2.bin><img src=part-3.bin><img src=part-4.bin><img src=part-5.bin><img src=part-6.bin>
<script>
onload = () => {
    const page = performance.getEntriesByType('navigation')[0]
    const parts = performance.getEntriesByType('resource')
    const protocols = new Set([page, ...parts].map(entry => entry.nextHopProtocol))
    const styled = getComputedStyle(document.body).color === 'rgb(18, 52, 86)'
    document.getElementById('result').textContent = JSON.stringify({
        load_ms: Math.round(page.loadEventStart - page.startTime), parts: parts.length,
        bytes: parts.reduce((sum, entry) => sum + entry.encodedBodySize, page.encodedBodySize),
        protocols: [...protocols].sort(), styled, scripted: window.scripted === true,
    })
}
</script>
HTML
}

# Waits for a certain event, on a loaded host too.
wait_until() { # COMMAND...
    for _ in $(seq 1200); do
        "$@" && return
        sleep 0.05
    done
    return 1
}

# A port for the server outside the ephemeral range: it is bound again for each scheme, and free in
# between.
free_port() {
    python3 - <<'PYTHON'
import os, socket
for number in range(10000):
    port = 20000 + (os.getpid() + number) % 10000
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            continue
        print(port)
        break
PYTHON
}
port=$(free_port)
relayed=
server=

serve() { # SCHEME [OPTION...]; whether it serves
    local scheme=$1
    shift
    : >"$work/server.err"
    XDG_DATA_HOME=$work/data "$headstart" serve "$work/site" --scheme "$scheme" --listen "127.0.0.1:$port" --no-tcp "$@" \
        >"$work/server.out" 2>"$work/server.err" &
    server=$!
    pids+=("$server")
    wait_until serves_or_ended && grep -q 'https://' "$work/server.err"
}
serves_or_ended() { grep -q 'https://' "$work/server.err" || ! kill -0 "$server" 2>/dev/null; }
end_server() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
}

# Fetches cold and hot. The duration is not reported: it is mostly the client's process start.
try() { # CLIENT SCHEME
    local client=$1 scheme=$2
    for _ in cold hot; do
        rm -f "$work/got"
        if ! timeout 120 bash -c "$(declare -f "fetch_$client"); work=$work; fetch_$client https://127.0.0.1:$relayed/page.bin $work/got" \
            >"$work/$client.log" 2>&1; then
            say "interop: $client, $scheme: $(tail -n 2 "$work/$client.log")"
            return 1
        fi
        if ! cmp -s "$work/site/page.bin" "$work/got"; then
            say "interop: $client, $scheme: the page that came is not the one that was sent"
            return 1
        fi
        sleep 0.2
    done
}

clients=()
# One at a time, where two of these scripts run.
exec 9>"$work/lock"
flock 9
for client in aioquic ngtcp2 quic_go quiche; do
    if "have_$client"; then
        clients+=("$client")
    else
        say "interop: $client could not be had; see $work/apt.log"
        failures=$((failures + 1))
    fi
done
exec 9>&-
if [ "$matrix" = --prepare ]; then exit $((failures > 0)); fi
[ -x "$headstart" ] || { say "interop: $headstart is missing: cargo build --release --features full"; exit 1; }
make_site
: >"$work/relay.out"
"$headstart" link --udp "127.0.0.1:$port" --rate $rate --rtt $rtt --buffer $buffer --quiet \
    >"$work/relay.out" 2>"$work/relay.err" &
pids+=("$!")
# The relay prints its address once it is ready.
wait_until grep -q '^127.0.0.1:[0-9]' "$work/relay.out" || { say "interop: no relay: $(cat "$work/relay.err")"; exit 1; }
relayed=$(cut -d: -f2 "$work/relay.out")

lines=()
emit() { lines+=("$1"); printf '%s\n' "$1"; }
head_line="| scheme |" rule="|---|"
for client in "${clients[@]}"; do
    head_line+=" ${client//_/-} |"
    rule+="---|"
done
emit "$head_line what they started from |"
emit "$rule---|"
# Wide enough for one line each.
for scheme in $(COLUMNS=400 "$headstart" schemes | awk 'NR > 2 && $1 ~ /^[a-z]/ { print $1 }'); do
    if ! serve "$scheme"; then
        if grep -q 'is not available over QUIC' "$work/server.err"; then
            emit "| $scheme |$(printf ' refused |%.0s' "${clients[@]}") refused by name |"
        else
            say "interop: no server with $scheme: $(cat "$work/server.err")"
            failures=$((failures + 1))
        fi
        continue
    fi
    row="| $scheme |"
    for client in "${clients[@]}"; do
        if try "$client" "$scheme"; then
            row+=" passed |"
        else
            row+=" **failed** |"
            failures=$((failures + 1))
        fi
    done
    end_server
    # The server must have run this scheme, and no other.
    if grep -o 'scheme=[a-z0-9-]*' "$work/server.out" | sort -u | grep -qvx "scheme=$scheme"; then
        say "interop: the server ran something else than $scheme"
        failures=$((failures + 1))
    fi
    sources=$(grep -o 'source=[a-z-]*' "$work/server.out" | cut -d= -f2 | sort | uniq -c | awk '{ print $2 " (" $1 ")" }' | paste -sd, - || true)
    emit "$row ${sources//,/, } |"
done

emit ""
emit "| browser | scheme | cold | hot | parts | protocol |"
emit "|---|---|---|---|---|---|"
browser=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$browser" ] && install chromium chromium; then browser=$(command -v chromium); fi
load() { # says the page's own account
    # A profile of its own: processes of the previous browser may still be ending.
    local key profile
    profile=$(mktemp -d "$work/profile.XXXXXX")
    key=$(openssl x509 -in "$work/data/headstart/identity.pem" -pubkey -noout | openssl pkey -pubin -outform der |
        openssl dgst -sha256 -binary | base64)
    timeout 180 "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$profile" \
        --origin-to-force-quic-on="127.0.0.1:$relayed" --ignore-certificate-errors-spki-list="$key" \
        --dump-dom "https://127.0.0.1:$relayed/" 2>"$work/browser.log" | grep -o '{"load_ms".*}' | sed 's/&quot;/"/g'
    rm -rf "$profile" 2>/dev/null || true
}
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
median() { sort -n | sed -n "$(((loads + 1) / 2))p"; }
loads=3
good='"parts":8.*"protocols":\["h3"\],"styled":true,"scripted":true'
for scheme in iw10 jump-start halfback s-cubic wise-start; do
    if [ -z "$browser" ]; then
        say "interop: there is no chromium"
        failures=$((failures + 1))
        break
    fi
    : >"$work/cold" && : >"$work/hot"
    for _ in $(seq $loads); do
        # A server just started has no records; the second fetch is from the same address as the
        # first.
        serve "$scheme" || break
        for visit in cold hot; do
            found=$(load || true)
            if ! grep -q "$good" <<<"$found"; then
                say "interop: chromium, $scheme, $visit: found \`$found\`; $(tail -n 2 "$work/browser.log")"
                continue
            fi
            field load_ms <<<"$found" >>"$work/$visit"
            sleep 0.2
        done
        end_server
    done
    if [ "$(cat "$work/cold" "$work/hot" | wc -l)" -ne $((2 * loads)) ]; then
        failures=$((failures + 1))
        emit "| chromium | $scheme | **failed** | | | |"
        continue
    fi
    emit "| chromium | $scheme | $(median <"$work/cold") ms | $(median <"$work/hot") ms | 8 | h3 |"
done

if [ -n "$matrix" ]; then printf '%s\n' "${lines[@]}" >"$matrix"; fi
if [ "$failures" -gt 0 ]; then
    say "interop: $failures failures"
    exit 1
fi
say "interop: everything passed"
