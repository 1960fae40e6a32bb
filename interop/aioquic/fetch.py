"""Fetches URL over HTTP/3 with aioquic as it comes and writes the body to FILE.

usage: fetch.py URL FILE
"""

import asyncio
import ssl
import sys
from urllib.parse import urlsplit

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated


class Client(QuicConnectionProtocol):
    """One request at a time."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.body = bytearray()
        self.status = None
        self.done = asyncio.get_running_loop().create_future()

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated) and not self.done.done():
            self.done.set_exception(ConnectionError(event.reason_phrase or f"code {event.error_code}"))
        for part in self.http.handle_event(event):
            if isinstance(part, HeadersReceived):
                self.status = int(dict(part.headers)[b":status"])
            elif isinstance(part, DataReceived):
                self.body += part.data
            if getattr(part, "stream_ended", False) and not self.done.done():
                self.done.set_result(None)

    async def get(self, url):
        stream = self._quic.get_next_available_stream_id()
        headers = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", url.netloc.encode()),
            (b":path", (url.path or "/").encode()),
        ]
        self.http.send_headers(stream, headers, end_stream=True)
        self.transmit()
        await asyncio.wait_for(self.done, 100)


async def main(address, file):
    url = urlsplit(address)
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
    async with connect(url.hostname, url.port, configuration=configuration, create_protocol=Client) as client:
        await client.get(url)
        if client.status != 200:
            sys.exit(f"status {client.status}, expected 200")
        with open(file, "wb") as out:
            out.write(client.body)


if len(sys.argv) != 3:
    sys.exit(__doc__)
asyncio.run(main(sys.argv[1], sys.argv[2]))
