# Makes comma-separated rows from ns3-peer's JSON objects, read in any number, one member per line.
# Only what repeats exactly is in the table: wall times stay in the JSON.

function member(name) {
    return (name in value) ? value[name] : ""
}

function milliseconds(name) {
    return sprintf("%.3f", 1000 * member(name))
}

BEGIN {
    print "cc,hystart,initial_window,load,seed,flow_bytes,buffer_bytes,ack_every,flows,finished," \
        "fct_mean_ms,fct_p50_ms,fct_p99_ms,fct_without_handshake_mean_ms,loss_percent," \
        "packets_dropped,packets_forwarded,recoveries,timeouts"
}

match($0, /"[a-z0-9_]+": /) {
    name = substr($0, RSTART + 1, RLENGTH - 4)
    text = substr($0, RSTART + RLENGTH)
    gsub(/[",]/, "", text)
    value[name] = text
}

/"packets_per_wall_s"/ {
    print member("cc") "," member("hystart") "," member("initial_window_segments") "," \
        member("load") "," member("seed") "," member("flow_bytes") "," member("buffer_bytes") "," \
        member("ack_every_segments") "," member("flows") "," member("finished") "," \
        milliseconds("fct_mean_s") "," milliseconds("fct_p50_s") "," milliseconds("fct_p99_s") "," \
        milliseconds("fct_without_handshake_mean_s") "," sprintf("%.4f", 100 * member("loss")) "," \
        member("packets_dropped") "," member("packets_forwarded") "," \
        member("recoveries") "," member("timeouts")
    delete value
}
