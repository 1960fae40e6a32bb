#!/usr/bin/env python3
"""A site of 200 objects by four servers as they are, which Chromium loads over HTTP/3 through
`headstart proxy`.

The servers are nginx, Node's `http`, Python's `wsgiref` and Java's `com.sun.net.httpserver`; those
that are not installed are NOT RUN. Between browser and proxy is `headstart link`. Each load has a
fresh profile. Each server has a fresh proxy for each scheme, so that the first load is a first
contact; later ones are of a known peer. A load counts if all objects came whole, over h3.
`tools/measure-serve.py --proxies` has the rates and processor times.

Needs Chromium and openssl (Debian: chromium, nginx, nodejs, default-jdk-headless).
"""

import argparse
import base64
import hashlib
import html
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PROXY, RELAY, ORIGIN = 7443, 7444, 7445
OBJECTS = 200
#: Requests at once for a server with one thread, whose backlog is five connections.
MOST = {"Python (wsgiref)": 4}

NODE = """
const fs = require('fs'), path = require('path');
const types = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.svg': 'image/svg+xml' };
require('http').createServer((request, answer) => {
    const file = path.join('.', request.url === '/' ? 'index.html' : request.url);
    answer.setHeader('Content-Type', types[path.extname(file)]);
    fs.createReadStream(file).pipe(answer);
}).listen(PORT, '127.0.0.1');
"""
WSGI = """
import mimetypes, pathlib
from wsgiref.simple_server import make_server
def site(environment, start):
    file = pathlib.Path('.' + (environment['PATH_INFO'].removesuffix('/') or '/index.html'))
    body = file.read_bytes()
    start('200 OK', [('Content-Type', mimetypes.guess_type(file.name)[0]), ('Content-Length', str(len(body)))])
    return [body]
make_server('127.0.0.1', PORT, site).serve_forever()
"""
JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.file.*;
import java.util.Map;
import java.util.concurrent.Executors;
public class Site {
    static final Map<String, String> TYPES =
        Map.of("html", "text/html", "css", "text/css", "js", "text/javascript", "svg", "image/svg+xml");
    public static void main(String[] words) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", PORT), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            var path = exchange.getRequestURI().getPath();
            var file = Path.of("." + (path.equals("/") ? "/index.html" : path));
            var name = file.toString();
            exchange.getResponseHeaders().set("Content-Type", TYPES.get(name.substring(name.lastIndexOf('.') + 1)));
            exchange.sendResponseHeaders(200, Files.size(file));
            try (var body = exchange.getResponseBody()) { Files.copy(file, body); }
        });
        server.start();
    }
}
"""
ACCOUNT = """
addEventListener('load', () => {
    const parts = performance.getEntriesByType('resource'), page = performance.getEntriesByType('navigation')[0];
    const account = {
        ms: page.loadEventStart - page.startTime,
        bytes: [page, ...parts].reduce((sum, part) => sum + part.decodedBodySize, 0),
        objects: 1 + parts.filter(part => part.decodedBodySize > 0).length,
        protocols: [...new Set([page, ...parts].map(part => part.nextHopProtocol))],
    };
    document.body.insertAdjacentHTML('beforeend', '<pre id=account></pre>');
    document.getElementById('account').textContent = JSON.stringify(account);
});
"""


def site(folder):
    """The bytes of a page with style sheets, scripts and pictures of 1 kB to 40 kB."""
    folder.mkdir()
    (folder / "account.js").write_text(ACCOUNT)
    page = ["<!doctype html><meta charset=utf-8><title>200 objects</title><script src=/account.js></script>"]
    for number in range(OBJECTS - 2):
        filling = "x" * (1000 + number * 7919 % 39_000 if number % 4 == 0 else 1000 + number * 31 % 2000)
        if number < 10:
            name, text, tag = f"{number}.css", f"/* {filling} */", "<link rel=stylesheet href=/{}>"
        elif number < 30:
            name, text, tag = f"{number}.js", f"/* {filling} */", "<script src=/{} defer></script>"
        else:
            name, tag = f"{number}.svg", "<img src=/{} width=9 height=9 alt=''>"
            text = f"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><!-- {filling} --></svg>"
        (folder / name).write_text(text)
        page.append(tag.format(name))
    (folder / "index.html").write_text("\n".join(page))
    return sum(file.stat().st_size for file in folder.iterdir())


def certificate(folder):
    """Makes one, and says the hash of its key as Chromium wants it."""
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "10"]
    files = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subprocess.run(["openssl", "req", "-x509", *curve, *names, *files], check=True, capture_output=True)
    words = ["openssl", "pkey", "-in", folder / "key.pem", "-pubout", "-outform", "DER"]
    return base64.b64encode(hashlib.sha256(subprocess.run(words, check=True, capture_output=True).stdout).digest()).decode()


def origins(folder):
    """Commands, to be run in the folder of the site."""
    (folder / "Site.java").write_text(JAVA.replace("PORT", str(ORIGIN)))
    (folder / "nginx.conf").write_text(
        f"daemon off; error_log {folder}/error; pid {folder}/pid; events {{}}\n"
        "http { types { text/html html; text/css css; text/javascript js; image/svg+xml svg; } access_log off;\n"
        + "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        + f"server {{ listen 127.0.0.1:{ORIGIN}; root {folder}/site; }} }}\n"
    )
    return {
        "nginx": ["nginx", "-c", folder / "nginx.conf"],
        "Node": ["node", "-e", NODE.replace("PORT", str(ORIGIN))],
        "Python (wsgiref)": ["python3", "-c", WSGI.replace("PORT", str(ORIGIN))],
        "Java (com.sun.net.httpserver)": ["java", folder / "Site.java"],
    }


def wait_for(port):
    for _ in range(300):
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"measure-proxy.py: nobody listens on port {port}")


def load(options, folder, key):
    """The page's own account."""
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as profile:
        words = [options.browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
                 f"--origin-to-force-quic-on=127.0.0.1:{RELAY}", f"--ignore-certificate-errors-spki-list={key}",
                 "--dump-dom", f"https://127.0.0.1:{RELAY}/"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=180)
    found = re.search(r"<pre id=\"account\">(.*?)</pre>", done.stdout)
    if not found:
        raise SystemExit(f"measure-proxy.py: no page: {done.stdout[-300:]} {done.stderr[-600:]}")
    return json.loads(html.unescape(found[1]))


def measure(options, folder, expected, key, scheme, most):
    """Load times in milliseconds."""
    words = ["proxy", "--upstream", f"http://127.0.0.1:{ORIGIN}", "--listen", f"127.0.0.1:{PROXY}", "--scheme", scheme]
    words += ["--most-per-upstream", str(most)] if most else []
    words += ["--certificate", folder / "cert.pem", "--key", folder / "key.pem", "--quiet"]
    path = ["link", "--rate", options.rate, "--rtt", options.rtt, "--buffer", "1bdp", "--quiet"]
    path += ["--udp", f"127.0.0.1:{PROXY}", "--listen", f"127.0.0.1:{RELAY}"]
    with open(folder / "log", "w") as log:
        programs = [subprocess.Popen([options.headstart, *some], stdout=log, stderr=log) for some in [words, path]]
    try:
        wait_for(PROXY)
        times = []
        for _ in range(options.loads):
            account = load(options, folder, key)
            if (account["objects"], account["bytes"], account["protocols"]) != (OBJECTS, expected, ["h3"]):
                raise SystemExit(f"measure-proxy.py: expected {OBJECTS} objects of {expected} bytes by h3: {account}")
            times.append(account["ms"])
        return times
    finally:
        for program in programs:
            program.kill()
            program.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headstart", nargs="?", default="./target/release/headstart")
    parser.add_argument("--browser", default=shutil.which("chromium"))
    parser.add_argument("--loads", type=int, default=6, help="of each server with each scheme, the first one apart")
    parser.add_argument("--schemes", default="headstart,iw10")
    parser.add_argument("--rate", default="25mbit")
    parser.add_argument("--rtt", default="50ms")
    options = parser.parse_args()
    if not options.browser or options.loads < 2:
        sys.exit("measure-proxy.py: NOT RUN: it needs Chromium, and two loads")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        expected, key = site(folder / "site"), certificate(folder)
        print(f"{OBJECTS} objects, {expected} bytes, {options.rate}, {options.rtt}")
        print("| origin | scheme | first load (ms) | later ones, median (ms) | least and greatest (ms) |\n|---|---|--:|--:|--:|")
        for server, words in origins(folder).items():
            if not shutil.which(words[0]):
                print(f"{server}: NOT RUN: it is not installed")
                continue
            with open(folder / "origin.log", "w") as log:
                origin = subprocess.Popen(words, cwd=folder / "site", stdout=log, stderr=log)
            try:
                wait_for(ORIGIN)
                for scheme in options.schemes.split(","):
                    first, *later = measure(options, folder, expected, key, scheme, MOST.get(server))
                    later.sort()
                    middle = later[len(later) // 2]
                    print(f"| {server} | {scheme} | {first:.0f} | {middle:.0f} | {later[0]:.0f} to {later[-1]:.0f} |", flush=True)
            finally:
                origin.terminate()
                origin.wait()


if __name__ == "__main__":
    main()
