"""A real broker's quota callback, and Prometheus, read a sidecar that requires a certificate."""

import os
from pathlib import Path

import trustme

from kafka_lab.callback import CALLBACK_PROPERTIES
from kafka_lab.cluster import Cluster
from sidecar.cli.callback.jar import callback_jar
from sidecar.tls import TlsFiles, client_context
from tests.integration.prometheus import prometheus
from tests.support.clusters import VOLUME_BYTES
from tests.support.daemon import FULL_BYTES, settings, started
from tests.support.documents import Metrics
from tests.support.mounted import MountedSecret
from tests.support.secured import pkcs8
from tests.support.waiting import seen

CALLBACK = "client.quota.callback.sidecar."


class Certificates:
    """A Secret with a CA, and with the certificates of sidecar and broker."""

    def __init__(self, folder: Path) -> None:
        self._scratch = folder / "key"
        self.secret = MountedSecret(folder / "secret")

    def renew(self) -> None:
        """All of them are new at once."""
        authority = trustme.CA()
        files = {"ca.crt": authority.cert_pem.bytes()}
        for name in ("sidecar", "broker"):
            issued = authority.issue_cert("localhost", "127.0.0.1")
            files[f"{name}.crt"] = issued.cert_chain_pems[0].bytes()
            key = pkcs8(issued.private_key_pem.bytes(), self._scratch)
            files[f"{name}.key"] = key.read_bytes()
        self.secret.holds(**files)

    def at(self, name: str) -> str:
        return str(self.secret.folder / name)


async def test_the_callback_follows_a_sidecar_with_mutual_tls(tmp_path: Path) -> None:
    """It reads the factor, also after CA, certificates and keys of both were replaced at once."""
    files = Certificates(tmp_path)
    files.renew()
    cluster = Cluster(
        environ=os.environ,
        brokers=1,
        combined=True,
        volumes=1,
        volume_bytes=VOLUME_BYTES,
        broker_jars=[callback_jar()],
        properties={
            **CALLBACK_PROPERTIES,
            f"{CALLBACK}ssl.ca.file": files.at("ca.crt"),
            f"{CALLBACK}ssl.certificate.file": files.at("broker.crt"),
            f"{CALLBACK}ssl.key.file": files.at("broker.key"),
        },
        properties_of=lambda broker: {f"{CALLBACK}url": f"https://127.0.0.1:{broker.sidecar_port}"},
    )
    async with cluster:
        environ = settings(
            cluster.bootstrap,
            HTTP_LISTEN=f"127.0.0.1:{cluster.brokers[0].sidecar_port}",
            HTTP_SSL_CERTIFICATE_FILE=files.at("sidecar.crt"),
            HTTP_SSL_KEY_FILE=files.at("sidecar.key"),
            HTTP_SSL_CLIENT_CA_FILE=files.at("ca.crt"),
        )
        ca, certificate, key = map(Path, map(files.at, ("ca.crt", "broker.crt", "broker.key")))
        own = TlsFiles(ca, certificate, key)
        async with started(tmp_path, environ) as daemon:
            daemon.tls = client_context(own)
            assert daemon.url.startswith("https://")

            def follows(metrics: Metrics) -> bool:
                return metrics.value("reader_up_to_date", broker=0) == 1.0

            await daemon.decides(1.0)
            await seen("the broker has the factor 1.0", daemon.metrics, follows)
            scraped = tmp_path / "prometheus-tls"
            scraped.mkdir()
            for name, its in (
                ("ca.crt", "ca.crt"),
                ("tls.crt", "broker.crt"),
                ("tls.key", "broker.key"),
            ):
                (scraped / name).symlink_to(files.at(its))
            async with prometheus(cluster, [daemon], tmp_path, scraped) as watching:
                factor = "kafka_throttle_factor"
                await seen("a scrape", lambda: watching.instant(factor))
            files.renew()
            await daemon.logs("read again, for new connections: ")
            daemon.tls = client_context(own)
            await cluster.occupy(0, 0, FULL_BYTES)
            await daemon.decides(0.0)
            await seen("the broker has the factor 0.0", daemon.metrics, follows)
