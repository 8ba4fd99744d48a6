"""Other sidecars' proxies get certificates of another CA."""

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme

from sidecar.peers.addresses import Address
from sidecar.peers.trust import Trust
from tests.sidecar.kafka.servers import hang, server_context
from tests.support.raw_server import raw_server


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Whoever is trusted gets it."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    await writer.drain()


async def answered(trust: Trust, context: ssl.SSLContext) -> dict[str, str]:
    """The answer of a server with this certificate."""
    async with raw_server(answer, context) as address:
        return await trust.get(Address(f"https://{address}"), "/v1", dict, deadline_s=60.0)


async def test_a_sidecar_that_hangs() -> None:
    """The request ends at its deadline."""
    async with raw_server(hang) as address:
        with pytest.raises(TimeoutError):
            await Trust().get(Address(f"http://{address}"), "/v1", dict, deadline_s=0.1)


async def test_a_ca_that_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request to a proxy of the new CA succeeds, and one of an unknown CA never does."""
    file = tmp_path / "ca.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    first, second = trustme.CA(), trustme.CA()
    first.cert_pem.write_to_path(str(file))
    trust = Trust()
    assert {} == await answered(trust, server_context(first))
    second.cert_pem.write_to_path(str(file))
    assert {} == await answered(trust, server_context(second))
    with pytest.raises(ssl.SSLCertVerificationError):
        await answered(trust, server_context(trustme.CA()))
