"""TLS of the API on a real socket: clients, peers, commands, and files that change."""

import asyncio
import logging
import socket
import ssl
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner

from sidecar import __version__
from sidecar.api.connections import Connections
from sidecar.cli.doctor.sidecars import ask_sidecars
from sidecar.cli.health import command as health
from sidecar.cli.sidecar_client import Address as Named
from sidecar.cli.sidecar_client import Request, request_all
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.tokens import Tokens
from sidecar.daemon.api_tls import ApiTls
from sidecar.daemon.reload import Credentials, Reload
from sidecar.daemon.secret_files import SecretFiles, stamps_of
from sidecar.errors import SettingsError
from sidecar.http import HttpError, Response, request
from sidecar.peers.addresses import Address
from sidecar.settings import HostPort, load, secret_files
from sidecar.tls import TlsFiles, client_context
from tests.sidecar.api.build import TOKEN, FakeSidecar, until
from tests.sidecar.api.live import serving
from tests.support.mounted import MountedSecret
from tests.support.waiting import SEEN_S

SSL = "SIDECAR_HTTP_SSL_"


class Scene:
    """A sidecar's files in one mounted Secret, and the part of the daemon that follows them."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.volume = MountedSecret(folder / "secret")
        self.authority = trustme.CA()
        self.files: dict[str, bytes] = {}
        self.certify(None)
        self.files["ca"] = self.files["clients"] = self.authority.cert_pem.bytes()
        self.volume.holds(**self.files)
        at = {name: self.volume.folder / name for name in ("ca", "cert", "key", "clients")}
        variables = {"CA": "ca", "CERTIFICATE": "cert", "KEY": "key", "CLIENT_CA": "clients"}
        environ = {"SIDECAR_STORAGE_CHECK_INTERVAL": "0s"} | {
            f"{SSL}{variable}_FILE": str(at[name])
            for variable, name in variables.items()
            if name in names
        }
        settings = load(environ=environ).settings
        self.tls = ApiTls.of(settings)
        credentials = Credentials(Tokens(None, lambda: 0.0), None, {}, self.tls)
        failures = CapabilityFailures([])
        reload = Reload(
            lambda: load(environ=environ).settings, credentials, None, [], failures, settings
        )
        self.watch = SecretFiles(reload, stamps_of(secret_files(settings)))
        self.own = TlsFiles(at["ca"], at["cert"], at["key"])

    def certify(self, until: datetime | None) -> None:
        """A new certificate with its key."""
        issued = self.authority.issue_cert("localhost", not_after=until)
        self.files["cert"] = issued.cert_chain_pems[0].bytes()
        self.files["key"] = issued.private_key_pem.bytes()

    async def changes(self) -> None:
        """The files are swapped, and looked at twice."""
        self.volume.holds(**self.files)
        for _ in range(2):
            await self.watch.look(settled=True)


async def get(address: HostPort, path: str, context: ssl.SSLContext) -> Response:
    """One request over TLS, for a minute at most."""
    async with asyncio.timeout(SEEN_S):
        url = f"https://localhost:{address.port}{path}"
        return await request("GET", url, headers={}, ssl_context=context, address=address.host)


def mutual(folder: Path) -> Scene:
    return Scene(folder, "ca", "cert", "key", "clients")


async def test_a_client_certificate_is_needed_for_all_but_probes(tmp_path: Path) -> None:
    """Without one, the refusal names the setting; one of another CA ends the handshake."""
    scene = mutual(tmp_path)
    trusting = client_context(TlsFiles(scene.own.ca))
    stranger = client_context(TlsFiles(scene.own.ca))
    trustme.CA().issue_cert("x").configure_cert(stranger)
    async with serving(FakeSidecar(), tls=scene.tls.context) as server:
        for path in ("/v1/throttle-factor", "/metrics", "/", "/healthz/", "//healthz"):
            response = await get(server.address, path, trusting)
            assert 403 == response.status
            assert b"SIDECAR_HTTP_SSL_CLIENT_CA_FILE" in response.body
            with pytest.raises((ssl.SSLError, HttpError)):
                await get(server.address, path, stranger)
        assert 200 == (await get(server.address, "/healthz?verbose", trusting)).status
        assert 503 == (await get(server.address, "/readyz", trusting)).status
        known = client_context(scene.own)
        assert 200 == (await get(server.address, "/v1/throttle-factor", known)).status


async def test_new_files_are_for_new_connections(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An open connection continues; a certificate without its key changes nothing, logged once."""
    caplog.set_level(logging.INFO)
    scene = mutual(tmp_path)
    async with asyncio.timeout(SEEN_S), serving(FakeSidecar(), tls=scene.tls.context) as server:
        before = client_context(scene.own)
        port = server.address.port
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=before, server_hostname="localhost"
        )
        scene.authority = trustme.CA()
        scene.files["ca"] = scene.files["clients"] = scene.authority.cert_pem.bytes()
        scene.certify(datetime(2031, 1, 1, tzinfo=UTC))
        key, scene.files["key"] = scene.files["key"], b"half a key"
        await scene.changes()
        await scene.changes()
        assert 200 == (await get(server.address, "/v1/throttle-factor", before)).status
        assert 1 == caplog.text.count("continues with what it read before")
        scene.files["key"] = key
        await scene.changes()
        with pytest.raises(ssl.SSLCertVerificationError):
            await get(server.address, "/healthz", before)
        after = client_context(scene.own)
        assert 200 == (await get(server.address, "/v1/throttle-factor", after)).status
        writer.write(b"GET /v1/throttle-factor HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.transport.abort()
    assert (
        datetime(2031, 1, 1, tzinfo=UTC).timestamp()
        == scene.tls.expiries["http.ssl.certificate.file"]
    )
    assert {"http.ssl.ca.file", "http.ssl.client.ca.file"} < scene.tls.expiries.keys()


async def test_peers_follow(tmp_path: Path) -> None:
    """A sidecar presents its own certificate to another one, and trusts the newest CA alone."""
    scene = mutual(tmp_path)
    async with serving(FakeSidecar(), tls=scene.tls.context) as server:
        peer = Address(f"https://localhost:{server.address.port}", "127.0.0.1")
        other = ApiTls(scene.own).trust
        stranger = ApiTls(TlsFiles(scene.own.ca)).trust
        path = "/v1/throttle-factor"
        assert 1 == (await other.get(peer, path, dict, deadline_s=SEEN_S))["generation"]
        with pytest.raises(HttpError, match="it answers 403"):
            await stranger.get(peer, path, dict, deadline_s=SEEN_S)
        scene.authority = trustme.CA()
        scene.files["ca"] = scene.files["clients"] = scene.authority.cert_pem.bytes()
        former = scene.tls.server
        assert former is not None
        assert 1 == (await scene.tls.trust.get(peer, path, dict, deadline_s=SEEN_S))["generation"]
        scene.certify(None)
        await scene.changes()
        assert 1 == (await other.get(peer, path, dict, deadline_s=SEEN_S))["generation"]
    async with serving(FakeSidecar(), tls=lambda: former) as server:
        peer = Address(f"https://localhost:{server.address.port}", "127.0.0.1")
        with pytest.raises(ssl.SSLCertVerificationError):
            await scene.tls.trust.get(peer, path, dict, deadline_s=SEEN_S)


async def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They need the CA, and under mutual TLS a certificate; ``health`` needs neither."""
    scene = mutual(tmp_path)
    async with serving(FakeSidecar(), tls=scene.tls.context) as server:
        port = server.address.port

        def problem(tls: TlsFiles, scheme: str = "https") -> str:
            at = Named(scheme, "localhost", port, tls=tls)
            (answer,) = request_all([at], [Request("GET", "/v1/throttle-factor")])
            return answer.problem or ""

        assert "" == await asyncio.to_thread(problem, scene.own)
        assert "CERTIFICATE_VERIFY_FAILED" in await asyncio.to_thread(problem, TlsFiles())
        refused = await asyncio.to_thread(problem, TlsFiles(scene.own.ca))
        assert refused.startswith("This sidecar requires a client certificate")
        assert "write https://" in await asyncio.to_thread(problem, TlsFiles(), "http")
        strange = TlsFiles(scene.own.ca, tmp_path / "certificate", tmp_path / "key")
        issued = trustme.CA().issue_cert("x")
        issued.cert_chain_pems[0].write_to_path(tmp_path / "certificate")
        issued.private_key_pem.write_to_path(tmp_path / "key")
        # The server's alert may be lost when it closes the connection.
        refused = await asyncio.to_thread(problem, strange)
        assert "the certificate of this client" in refused or "UNKNOWN_CA" in refused
        gone = TlsFiles(tmp_path / "gone")
        assert f"the CA file {gone.ca} can't be used" in await asyncio.to_thread(problem, gone)
        monkeypatch.setenv("SIDECAR_HTTP_LISTEN", f"0.0.0.0:{port}")
        monkeypatch.setenv(f"{SSL}CERTIFICATE_FILE", str(scene.own.certificate))
        result = await asyncio.to_thread(CliRunner().invoke, health, [])
        assert f"https://localhost:{port} is alive\n" == result.output


@pytest.mark.slow
async def test_doctor_asks_over_mutual_tls(tmp_path: Path) -> None:
    """With the CA and the certificate, at two addresses, and with no metrics at the API's port."""
    scene = mutual(tmp_path)
    async with serving(FakeSidecar(), tls=scene.tls.context) as server:
        at = Named("https", "localhost", server.address.port, tls=scene.own)
        also = replace(at, host="LOCALHOST")
        (found,) = await asyncio.to_thread(ask_sidecars, [at, also], TOKEN)
    assert (__version__, "accepted") == (found.version, found.token)
    assert found.clock_ahead_s is not None
    assert abs(found.clock_ahead_s) < SEEN_S


async def test_handshakes_count_as_connections() -> None:
    """Clients that connect and send nothing make room for others, as idle ones of HTTP do."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.issue_cert("localhost").configure_cert(context)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(trusting)
    connections = Connections(2)
    async with serving(FakeSidecar(), connections, lambda: context) as server:
        silent = [socket.create_connection(server.address) for _ in range(3)]
        silent[0].settimeout(SEEN_S)
        assert b"" == await asyncio.to_thread(silent[0].recv, 1)
        assert 2 == len(connections)
        assert 200 == (await get(server.address, "/healthz", trusting)).status
        for each in silent:
            with closing(each):
                pass
        await until(lambda: not len(connections))


async def test_a_stop_closes_all_connections() -> None:
    """Neither one in its handshake nor a client that does not answer the end of TLS stays open."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.issue_cert("localhost").configure_cert(context)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(trusting)
    connections = Connections(9)
    async with serving(FakeSidecar(), connections, lambda: context) as server:
        silent = socket.create_connection(server.address)
        raw = socket.create_connection(server.address)
        idle = await asyncio.to_thread(trusting.wrap_socket, raw, server_hostname="localhost")
        await until(lambda: 2 == len(connections))
    assert 0 == len(connections)
    for each in (silent, idle):
        with closing(each):
            pass


def test_a_start_with_wrong_files(tmp_path: Path) -> None:
    """A key or CAs for clients need a certificate, and a file must be there."""
    limit = {"SIDECAR_STORAGE_CHECK_INTERVAL": "0s"}
    for name in ("KEY", "CLIENT_CA"):
        with pytest.raises(SettingsError, match=f"needs {SSL}CERTIFICATE_FILE"):
            _ = load(environ={f"{SSL}{name}_FILE": "x", **limit}).settings
    missing = str(tmp_path / "missing")
    settings = load(environ={f"{SSL}CERTIFICATE_FILE": missing, **limit}).settings
    with pytest.raises(SettingsError, match=f"the certificate file {missing} or its key can't be"):
        ApiTls.of(settings)
