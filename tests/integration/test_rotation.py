"""Every secret changes under a running daemon and quota callback, on a real broker.

Password, client certificate and key, the CA, the broker's own certificate and the token change at
the files and at the broker in either order, some seconds apart. The broker ends each session after
3 s, so the sidecar logs in again and again. ROTATIONS=20 rotates more often, and ROTATION_SEED
changes the orders and delays.
"""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trustme

from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener, Tls
from sidecar.cli.callback.jar import callback_jar
from tests.support.clusters import VOLUME_BYTES
from tests.support.daemon import Daemon, settings, started
from tests.support.mounted import MountedSecret
from tests.support.raw_server import raw_server
from tests.support.secured import SCRAM, pkcs8
from tests.support.waiting import seen

ROTATIONS: Final = int(os.environ.get("ROTATIONS", "2"))
SEED: Final = int(os.environ.get("ROTATION_SEED", "1"))
SESSION_MS: Final = 3000
LOGINS_S: Final = 6.0
"""Two sessions."""
MOST_APART_S: Final = 8.0
POLL_S: Final = 1.0
"""A poll that began before both ends had the new secrets has ended after this."""

KEYSTORE: Final = "listener.name.rotating.ssl.keystore."


class Rotation:
    """What the two ends have: the sidecar in files, the broker in its configuration."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clients = trustme.CA()
        self._authority = trustme.CA()
        self._trusted = b""
        self.secret = MountedSecret(folder / "secret")
        self.client_ca = folder / "clients.pem"
        self._clients.cert_pem.write_to_path(str(self.client_ca))
        self.generation = 0
        self.password = ""
        self.former_token = self.token = "token-0"
        self.renew()

    def renew(self) -> None:
        """A new generation at neither end yet. The CA before is still trusted."""
        self.generation += 1
        self.password = f"password-{self.generation}"
        self.former_token, self.token = self.token, f"token-{self.generation}"
        before, self._authority = self._authority, trustme.CA()
        self._trusted = before.cert_pem.bytes() + self._authority.cert_pem.bytes()

    def at_the_broker(self) -> Tls:
        """A certificate of the new CA, for the same subject: the broker accepts no other."""
        issued = self._authority.issue_cert(
            "127.0.0.1", common_name="b", organization_name="o", organization_unit_name="u"
        )
        certificate = self._folder / f"broker-{self.generation}.pem"
        issued.cert_chain_pems[0].write_to_path(str(certificate))
        key = self._folder / f"broker-{self.generation}-key.pem"
        return Tls(certificate, pkcs8(issued.private_key_pem.bytes(), key), self.client_ca)

    def in_the_files(self) -> None:
        """The new password, CAs, certificate and key, at once."""
        issued = self._clients.issue_cert("alice@example.org")
        self.secret.holds(
            password=f"{self.password}\n".encode(),
            ca=self._trusted,
            cert=issued.cert_chain_pems[0].bytes(),
            key=issued.private_key_pem.bytes(),
            token=self.token.encode(),
        )

    def environ(self, bootstrap: str) -> dict[str, str]:
        """The daemon's settings."""
        admin = {
            "SECURITY_PROTOCOL": "SASL_SSL",
            "SASL_MECHANISM": SCRAM,
            "SASL_USERNAME": "alice",
            "SASL_PASSWORD_FILE": str(self.secret.folder / "password"),
            "SSL_TRUSTSTORE_LOCATION": str(self.secret.folder / "ca"),
            "SSL_KEYSTORE_LOCATION": str(self.secret.folder / "cert"),
            "SSL_KEYSTORE_KEY_LOCATION": str(self.secret.folder / "key"),
        }
        token_file = str(self.secret.folder / "token")
        names = {f"KAFKA_ADMIN_{name}": each for name, each in admin.items()}
        return settings(bootstrap, TOKEN_FILE=token_file, **names)


@dataclass
class Seen:
    """What a daemon's metrics and answers said.

    Attributes:
        polls: how many polls it made.
        failed: how many of its calls to the broker failed, ever, by kind.
        failed_after: how many of them failed although both ends had the new secrets.
        longest_gap_s: the longest time without a whole poll.
        longest_gap_after_s: the same while both ends had the new secrets.
        refused_tokens: how many requests were refused.
        readers: the numbers of brokers whose callbacks asked.
    """

    polls: float = 0.0
    failed: Counter[str] = field(default_factory=Counter)
    failed_after: Counter[str] = field(default_factory=Counter)
    longest_gap_s: float = 0.0
    longest_gap_after_s: float = 0.0
    refused_tokens: int = 0
    readers: set[float] = field(default_factory=set)


class Watch:
    """Scrapes a daemon's metrics and uses its tokens."""

    def __init__(self, daemon: Daemon, rotation: Rotation) -> None:
        self._daemon = daemon
        self._rotation = rotation
        self.seen = Seen()
        self.agrees = True

    async def look(self) -> None:
        """One scrape."""
        metrics = await self._daemon.metrics()
        name = "kafka_throttle_poll_failures_total"
        seen_now = self.seen
        seen_now.polls = metrics.value("poll_duration_seconds_count") or 0.0
        seen_now.failed = Counter(
            {
                dict(labels)["kind"]: int(count)
                for (key, labels), count in metrics.samples.items()
                if key == name and count
            }
        )
        seen_now.readers.add(metrics.value("readers") or 0.0)
        gap_s = time.time() - (metrics.value("last_success_timestamp_seconds") or 0.0)
        seen_now.longest_gap_s = max(seen_now.longest_gap_s, gap_s)
        if self.agrees:
            seen_now.longest_gap_after_s = max(seen_now.longest_gap_after_s, gap_s)

    async def use_tokens(self) -> None:
        """A client that has the newest token already, and one that still has the former."""
        for token in (self._rotation.token, self._rotation.former_token):
            answer = await self._daemon.ask("/v1/override", "DELETE", token)
            self.seen.refused_tokens += answer.status_code != 200

    async def run(self) -> None:
        """Scrape until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(0.1)


class Proxy:
    """A proxy before the sidecar that wants the token, as one with TLS would.

    Attributes:
        token: the token.
        former: the one before.
        asked: how many requests it passed on.
        refused: how many it refused.
    """

    def __init__(self, token: str) -> None:
        self.token = self.former = token
        self.asked = 0
        self.refused = 0

    @asynccontextmanager
    async def between(self, port: int, daemon: Daemon) -> AsyncIterator[None]:
        """Pass requests of the port on to a daemon."""
        host, _, to = daemon.address.partition(":")

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            accepted = [f"Bearer {each}\r\n".encode() for each in (self.token, self.former)]
            if not any(each in head for each in accepted):
                self.refused += 1
                writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
                return
            self.asked += 1
            ours, theirs = await asyncio.open_connection(host, int(to))
            try:
                theirs.write(head)
                while data := await ours.read(1 << 16):
                    writer.write(data)
            finally:
                theirs.transport.abort()

        async with raw_server(handle, port=port):
            yield


@pytest.mark.timeout(120 + 40 * ROTATIONS)
async def test_everything_is_rotated_under_a_running_daemon(tmp_path: Path) -> None:
    """No poll fails once the secrets are the same at both ends, and no token is refused.

    If the files change first, no poll fails at all. If the broker changes first, polls fail from
    the end of the session until the files change.
    """
    chance = random.Random(SEED)
    rotation = Rotation(tmp_path)
    tls = rotation.at_the_broker()
    cluster = Cluster(
        environ=os.environ,
        brokers=1,
        combined=True,
        volumes=1,
        volume_bytes=VOLUME_BYTES,
        listeners=[Listener("ROTATING", "SASL_SSL", SCRAM, {"alice": rotation.password}, tls)],
        broker_jars=[callback_jar()],
        properties={
            **CALLBACK_PROPERTIES,
            "client.quota.callback.sidecar.token.file": str(rotation.secret.folder / "token"),
            "connections.max.reauth.ms": str(SESSION_MS),
        },
        properties_of=asks_its_sidecar,
        super_users=[],
    )
    rotation.in_the_files()
    async with cluster, Admin(cluster.bootstrap) as admin:
        await admin.allow("alice", "DESCRIBE", "BROKER", "kafka-cluster")

        async def at_the_broker() -> None:
            await admin.create_scram_user("alice", rotation.password, SCRAM)
            new = rotation.at_the_broker()
            pem = {
                f"{KEYSTORE}certificate.chain": new.certificate.read_text(),
                f"{KEYSTORE}key": new.key.read_text(),
            }
            await admin.set_broker_config(0, pem)

        async with started(tmp_path, rotation.environ(cluster.bootstrap_of("ROTATING"))) as daemon:
            await daemon.decides(1.0)
            proxy = Proxy(rotation.token)
            watch = Watch(daemon, rotation)
            async with proxy.between(cluster.brokers[0].sidecar_port, daemon):
                await seen("the callback asks", lambda: proxy.asked > 0)
                watching = asyncio.create_task(watch.run())
                for number in range(1, ROTATIONS + 1):
                    rotation.renew()
                    is_file_first = chance.random() < 0.5
                    apart_s = chance.uniform(0.0, MOST_APART_S)
                    failed = watch.seen.failed
                    watch.agrees = is_file_first
                    if is_file_first:
                        rotation.in_the_files()
                        proxy.token, proxy.former = rotation.token, rotation.former_token
                        await watch.use_tokens()
                        await asyncio.sleep(apart_s)
                        await at_the_broker()
                    else:
                        await at_the_broker()
                        await asyncio.sleep(apart_s)
                        proxy.token, proxy.former = rotation.token, rotation.former_token
                        rotation.in_the_files()
                        await watch.use_tokens()
                        # A poll that began with the old secrets may still fail.
                        await asyncio.sleep(POLL_S)
                        await watch.look()
                        failed = watch.seen.failed
                    watch.agrees = True
                    await asyncio.sleep(LOGINS_S)
                    await watch.look()
                    await watch.use_tokens()
                    brokers = partial(daemon.get, "/v1/brokers")
                    await seen("a poll", brokers, lambda each: each["failed_polls"] == 0)
                    watch.seen.failed_after += watch.seen.failed - failed
                    first = "files" if is_file_first else "broker"
                    print(f"{number}: {first} first by {apart_s:.1f} s: {watch.seen}")
                watching.cancel()
            # On a busy machine a poll may miss its deadline of 2 s at any time.
            del watch.seen.failed_after["timeout"]
            assert not watch.seen.failed_after, daemon.output
            assert (0, {1.0}) == (watch.seen.refused_tokens, watch.seen.readers)
            assert 0 == proxy.refused
            assert "password-" not in daemon.output
            assert "token-" not in daemon.output
            metrics = await daemon.ask("/metrics")
            assert 'expiry_timestamp_seconds{setting="kafka.admin.ssl.key' in metrics.text
            await seen("the decision", daemon.factor, lambda each: each["source"] == "observation")
