"""Other sidecars' proxies get certificates of another CA."""

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme

from sidecar.peers.trust import Trust
from tests.sidecar.kafka.servers import raw_server, server_context


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Whoever is trusted gets it."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    await writer.drain()


async def status(trust: Trust, context: ssl.SSLContext) -> int:
    """The status of a request to a server with this certificate."""
    async with raw_server(answer, context) as address:
        url = f"https://{address}/v1"
        return (await trust.get(url, wait_s=1, longest_answer=1000, address=None)).status


async def test_a_ca_that_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request to a proxy of the new CA succeeds, and one of an unknown CA never does."""
    file = tmp_path / "ca.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    first, second = trustme.CA(), trustme.CA()
    first.cert_pem.write_to_path(str(file))
    trust = Trust()
    assert 200 == await status(trust, server_context(first))
    second.cert_pem.write_to_path(str(file))
    assert 200 == await status(trust, server_context(second))
    with pytest.raises(ssl.SSLCertVerificationError):
        await status(trust, server_context(trustme.CA()))
