"""Password, CA, certificate and key change under a running daemon, on a real broker.

The broker ends each session after 3 s, so the sidecar logs in again and again.
"""

import asyncio
import os
from pathlib import Path
from typing import Final

import trustme

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener, Tls
from tests.support.clusters import VOLUME_BYTES
from tests.support.daemon import Daemon, settings, started
from tests.support.mounted import MountedSecret
from tests.support.secured import SCRAM, pkcs8
from tests.support.waiting import seen

ROTATIONS: Final = 6
SESSION_MS: Final = 3000
LOGINS_S: Final = 6.0
"""Two sessions."""

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
        self.renew()

    def renew(self) -> None:
        """A new generation at neither end yet. The CA before is still trusted."""
        self.generation += 1
        self.password = f"password-{self.generation}"
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
        return settings(bootstrap, **{f"KAFKA_ADMIN_{name}": each for name, each in admin.items()})


async def failed_polls(daemon: Daemon) -> float:
    """How many polls have ever failed."""
    text = (await daemon.ask("/metrics")).text
    name = "kafka_throttle_poll_failures_total"
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


async def test_everything_is_rotated_under_a_running_daemon(tmp_path: Path) -> None:
    """No poll fails once a secret is the same at both ends; in between the broker may refuse it."""
    rotation = Rotation(tmp_path)
    tls = rotation.at_the_broker()
    users = {"alice": rotation.password}
    cluster = Cluster(
        environ=os.environ,
        brokers=1,
        combined=True,
        volumes=1,
        volume_bytes=VOLUME_BYTES,
        listeners=[Listener("ROTATING", "SASL_SSL", SCRAM, users, tls)],
        properties={"connections.max.reauth.ms": str(SESSION_MS)},
        super_users=[],
    )
    rotation.in_the_files()
    async with cluster, Admin(cluster.bootstrap) as admin:
        await admin.allow("alice", "DESCRIBE", "BROKER", "kafka-cluster")
        environ = rotation.environ(cluster.bootstrap_of("ROTATING"))
        async with started(tmp_path, environ) as daemon:
            await daemon.decides(1.0)
            for number in range(1, ROTATIONS + 1):
                rotation.renew()
                if number % 2:
                    # The broker refuses the old password until the files follow.
                    await admin.create_scram_user("alice", rotation.password, SCRAM)
                    await asyncio.sleep(LOGINS_S)
                    rotation.in_the_files()
                else:
                    rotation.in_the_files()
                    await admin.create_scram_user("alice", rotation.password, SCRAM)
                await daemon.logs("read again, for new connections", number)
                before = await failed_polls(daemon)
                tls = rotation.at_the_broker()
                pem = {
                    f"{KEYSTORE}certificate.chain": tls.certificate.read_text(),
                    f"{KEYSTORE}key": tls.key.read_text(),
                }
                await admin.set_broker_config(0, pem)
                await asyncio.sleep(LOGINS_S)
                assert before == await failed_polls(daemon), daemon.output
                document = await daemon.get("/v1/brokers")
                assert 0 == document["failed_polls"]
            assert "password-" not in daemon.output
            metrics = await daemon.ask("/metrics")
            assert 'expiry_timestamp_seconds{setting="kafka.admin.ssl.key' in metrics.text
            await seen("the decision", daemon.factor, lambda each: each["source"] == "observation")
