//! Examples at the end of `--help`: lines that can be typed. A test parses each of them.

/// Examples of `headstart` itself.
#[cfg(feature = "network")]
pub const ALL: &str = "\
Begin with (each command explains itself with -h and --help):
  headstart demo                            see it work: half a minute
  headstart race --rate 50mbit --rtt 30ms   which fast start is best on my path
  headstart serve site --history h          serve with it

Exit codes: 0 done, 1 failed, 2 refused, 3 (`link --strict`) not in real time.";

/// Examples of `headstart` itself, where the simulator is all that was built.
#[cfg(not(feature = "network"))]
pub const ALL: &str = "\
Begin with:
  headstart race --rate 50mbit --rtt 30ms   which fast start is best on my path
  headstart trace halfback                  one flow, packet by packet
  headstart sweep --load 5%,25%,50%         the same over several loads
  headstart reproduce halfback --quick      a paper's claims, figure by figure

Each command explains itself with -h and --help. Exit codes: 0 done, 1 failed on
the way, 2 refused.";

/// Examples of `headstart race`.
pub const RACE: &str = "\
Examples:
  headstart race --rate 50mbit --rtt 30ms --buffer 0.5BDP --load 40%   my path
  headstart race --schemes iw10,halfback,wise-start --background 2     three schemes with two long flows
  headstart race --transport quic --schemes iw10,halfback              over the real QUIC stack, in virtual time
  headstart race --duration 20s --repeats 2                            a first look";

/// Examples of `headstart sweep`.
pub const SWEEP: &str = "\
Every combination of the lists is run once, and what was run before is kept: an interrupted sweep goes on.

Examples:
  headstart sweep --load 5%,25%,50% --rtt 20ms,60ms --schemes iw10,jump-start
  headstart sweep --load 5%..50%:5% --schemes iw10,headstart         ranges, with their step
  headstart sweep --transport tcp,quic --load 10%,50% --schemes iw10,headstart";

/// Examples of `headstart trace`.
pub const TRACE: &str = "\
Examples:
  headstart trace halfback                    one flow, alone on the path
  headstart trace wise-start --flow 30        the thirty-first of a run: schemes with a history know its peer by then
  headstart trace iw10 --buffer 20p --out t   with losses; its files go to the folder t";

/// Examples of `headstart explore`.
pub const EXPLORE: &str = "\
Examples:
  headstart explore                                     the page opens in the browser
  headstart explore --path lte --schemes iw10,halfback  where it begins
  headstart explore --no-open --port 8000               the address only; remotely: ssh -L 8000:127.0.0.1:8000

The first answer to a change has one seed of a short simulated time, and seeds are added while you look. The page shows the
`headstart race` with the same numbers. The page is for this machine, and for those who have its address.";

/// Examples of `headstart reproduce`.
pub const REPRODUCE: &str = "\
Examples:
  headstart reproduce --list                            papers and figures
  headstart reproduce halfback --quick                  a paper, cut down
  headstart reproduce halfback --figure 12,beyond       two figures in full
  headstart reproduce wisestart --quick --check         fail where an outcome is not the one on record";

/// Examples of `headstart assess`.
pub const ASSESS: &str = "\
Examples:
  headstart assess headstart --quick                    every criterion, in about half a minute
  headstart assess iw10,suss --figure load,queues       two schemes, the criteria of two plans

Loss, time and fairness of others, active queues, satellites, outages, a concurrent call: each bound stands in the column `accepted`, and the
plans in experiments/assessment.toml. What no run can show is answered in words by a scheme's author.";

/// Examples of `headstart history`.
pub const HISTORY: &str = "\
Examples:
  headstart history show peers.history                  how many, how old, how fast
  headstart history export peers.history > peers.csv    every record
  headstart history merge a.history b.history --into valkey://localhost:6379/
  headstart history prune peers.history --older-than 1h";

/// Examples of `headstart ab`.
pub const AB: &str = "\
Examples:
  headstart ab headstart.log                            of `serve --rollout 10%`: its lines on standard output
  headstart ab before.txt after.txt                     /metrics, read twice
  headstart ab headstart.log --most-harm 2% --format json";

/// Examples of `headstart downlink`.
pub const DOWNLINK: &str = "\
Examples:
  headstart downlink                                    who says what
  headstart downlink --rate 50mbit --access dsl         a rate that you know
  headstart downlink --format json                      for a program";

/// Examples of `headstart measure`.
pub const MEASURE: &str = "\
Examples:
  tcpdump -s 128 -w download.pcap tcp                   while a large file is downloaded
  headstart measure download.pcap
  headstart measure ping.txt qlogs/1f.qlog             the server's qlog of a download, and a ping of its client
  headstart race $(headstart measure download.pcap)
  while sleep 0.2; do ss -tin dst 192.0.2.7; done > ss.txt";

/// Examples of `headstart link`.
pub const LINK: &str = "\
Examples:
  headstart link --rate 25mbit --rtt 50ms --buffer 104p -- curl https://example.org/
  headstart link --rate 25mbit --rtt 50ms --udp 127.0.0.1:4433
  headstart link --loss 1% --jitter 2ms --serve server -- client
  headstart link --log log.csv --rtt 20ms -- ping -c 3 100.64.0.1";

/// Examples of `headstart show-link`.
pub const SHOW_LINK: &str = "\
Example:
  headstart show-link log.csv --out pictures";

/// Examples of `headstart page`.
pub const PAGE: &str = "\
Examples:
  headstart page                                               a search page over cable: about a minute
  headstart page --shape news --path lte --schemes iw10,headstart,wise-start
  headstart page saved.har --repeats 8                         a page that your browser saved (developer tools, network, save as HAR)
  headstart page page.html --http h3,h2,h1                     one saved \"complete\", and the kernel's TCP beside (root)

Every visit is by a browser with an empty cache; on a returning visit the server knows the address. docs/pages.md says how a page is
replayed, and what was found.";

/// Examples of `headstart demo`.
pub const DEMO: &str = "\
Examples:
  headstart demo --schemes iw10,halfback,wise-start --repeats 2
  headstart demo --rate 100mbit --rtt 30ms --buffer 1BDP --size 300kB";

/// Examples of `headstart serve`.
pub const SERVE: &str = "\
Examples:
  headstart serve site                                              https://localhost:4433/, for this machine only
  headstart serve site --listen 0.0.0.0:443 --certificate chain.pem --key key.pem
  headstart serve site --history peers.history --metrics 127.0.0.1:9100 --rollout 10%
  headstart serve --generate --allow-scheme-choice                  for `headstart get --compare`";

/// Examples of `headstart proxy`.
pub const PROXY: &str = "\
Examples:
  headstart proxy --upstream http://127.0.0.1:8080                  https://localhost:4433/, for this machine only
  headstart proxy --upstream http://a:8080 --upstream http://b:8080 --check /health
  headstart proxy --upstream http://127.0.0.1:8080 --listen 0.0.0.0:443 --certificate chain.pem --key key.pem \\
    --history peers.history --metrics 127.0.0.1:9100 --rollout 10%";

/// Examples of `headstart get`.
pub const GET: &str = "\
Examples:
  headstart get https://localhost:4433/ --repeat 5
  headstart get https://localhost:4433/page --hint 50mbit --access dsl
  headstart get https://localhost:4433/bytes/100000 --compare slow-start,wise-start --repeat 10 --format csv
  headstart get https://localhost:4433/ --connect 127.0.0.1:5000    through a `headstart link --udp`";

/// Examples of `headstart tcp`.
pub const TCP: &str = "\
Examples:
  headstart tcp attach --cgroup /system.slice/nginx.service --percent 10
  headstart tcp status
  headstart tcp trace --count 20
  headstart tcp stats --prometheus
  headstart tcp set --stop
  headstart tcp detach
  headstart tcp run --scheme jump-start --stats -- python3 -m http.server";

/// Examples of `headstart paths`.
pub const PATHS: &str = "\
Examples:
  headstart paths
  headstart race --path lte --load 40%                  other options override the path";

/// Examples of `headstart examples`.
pub const EXAMPLES: &str = "\
Examples:
  headstart examples
  headstart race --har page.har --load 20%
  headstart serve site";

/// Examples of `headstart completions`.
pub const COMPLETIONS: &str = "\
Examples:
  headstart completions bash                            into ~/.local/share/bash-completion/completions/headstart
  headstart completions zsh                             into a folder of $fpath, as _headstart
  headstart completions fish                            into ~/.config/fish/completions/headstart.fish";

/// Examples of `headstart man`.
pub const MAN: &str = "\
Example:
  headstart man ~/.local/share/man/man1";

/// Examples of `headstart schemes`.
pub const SCHEMES: &str = "\
--schemes and --scheme take these names. `needs` is what a scheme must know before its first byte: without a history, a hint or a router it starts as slow start does.

Parameters other than the defaults follow in parentheses: --schemes 'halfback(additional=25%),wise-start(kappa=30)'. Names are read without regard to case and hyphens.

  headstart schemes halfback";
