#!/usr/bin/env python3
"""Replays conformance vectors against slow start in Python: docs/conformance.md has their form.

An example of a reader for another stack: slow start (RFC 5681 with RFC 3465's L unlimited) from ten
segments, up to the first loss, over vectors/iw10.txt.
"""

import pathlib
import sys

INITIAL_WINDOW = 10


class SlowStart:
    def __init__(self, packet, **_):
        self.packet = packet
        self.window = INITIAL_WINDOW * packet
        self.limited_below = 0

    def sent(self, packets, limit):
        if limit == "limited":
            self.limited_below = max(packets) + 1

    def acked(self, packets):
        if max(packets) < self.limited_below:  # The window was the limit, so that it may grow.
            self.window += len(packets) * self.packet


def replay(text):
    compared, scheme = 0, None
    for number, line in enumerate(text.splitlines(), 1):
        event, _, answer = line.partition(" -> ")
        kind, *words = event.split(" ") if event and event[0] != "#" else [""]
        expected = dict(pair.split("=") for pair in answer.split())
        if kind == "begin":
            known = dict(word.split("=") for word in words)
            scheme = SlowStart(packet=int(known["packet"]))
        elif kind in ("sent", "acked") and scheme:
            packets = [int(packet) for packet in words[1].split(",")]
            scheme.sent(packets, words[2]) if kind == "sent" else scheme.acked(packets)
        elif kind == "lost":
            scheme = None  # What follows is recovery and the base controller.
        if expected and scheme:
            compared += 1
            if int(expected["window"]) != scheme.window:
                sys.exit(f"line {number}: found a window of {scheme.window}, expected {expected['window']}")
    return compared


text = (pathlib.Path(__file__).parent.parent / "vectors/iw10.txt").read_text()
compared = replay(text)
if compared < 50:
    sys.exit(f"conformance.py: {compared} answers were compared, expected 50 at least")
print(f"conformance.py: {compared} windows of slow start, all as in vectors/iw10.txt")
