"""A real S3 server on loopback, and the pipeline's commands on it.

The server is s3proxy over its memory (tests/integration/s3proxy/pom.xml): S3's protocol with signed
requests, with TLS and without.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import trustme
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate
from deltalake import DeltaTable
from pyarrow import fs

from kafka_lab.ports import Ports
from tests.support.command import Done, command
from tests.support.maven import jars_of
from tests.support.waiting import listens, seen

_POM: Final = Path(__file__).parents[1] / "integration/s3proxy/pom.xml"
KEY, SECRET = "the-key", "hidden-from-all"
RUN_S: Final = 400.0
"""A run of Spark's, on a machine that does other things too."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running S3 server.

    Attributes:
        environ: with which a client finds it and may do all.
        port: on loopback.
        secure_port: the same with TLS.
        ca_file: what signed its certificate, which is for 127.0.0.1.
    """

    environ: Mapping[str, str]
    port: int
    secure_port: int
    ca_file: Path

    def system(self) -> fs.S3FileSystem:
        """Returns a client of the store for the test itself."""
        return fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region="us-east-1",
            endpoint_override=self.environ["AWS_ENDPOINT_URL"],
            allow_bucket_creation=True,
        )

    def put(self, bucket: str, name: str, content: bytes) -> None:
        """Writes a file."""
        with self.system().open_output_stream(f"{bucket}/{name}", compression=None) as file:
            file.write(content)

    def upload(self, folder: Path, place: str) -> None:
        """Writes all files of a folder below a place."""
        fs.copy_files(str(folder), place, fs.LocalFileSystem(), self.system(), use_threads=False)

    def copy(self, place: str, to: str) -> None:
        """Writes all files below a place below another one."""
        fs.copy_files(place, to, self.system(), self.system(), use_threads=False)

    def names(self, place: str) -> list[str]:
        """The names of the files below a place."""
        found = self.system().get_file_info(fs.FileSelector(place, recursive=True))
        return [each.path for each in found if each.type == fs.FileType.File]

    def versions(self, place: str) -> dict[str, int]:
        """The version of each table that readers pin."""
        found: dict[str, int] = json.loads(self.read(f"{place}/_manifest.json"))["tables"]
        return found

    def rows(self, place: str, table: str, version: int | None = None) -> list[dict[str, Any]]:
        """The rows of a table's version as other engines see it; None: the newest."""
        storage = {
            "aws_endpoint": self.environ["AWS_ENDPOINT_URL"],
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
            "aws_region": "us-east-1",
            "allow_http": "true",
        }
        opened = DeltaTable(f"s3://{place}/{table}", version=version, storage_options=storage)
        found: list[dict[str, Any]] = opened.to_pyarrow_table().to_pylist()
        return found

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with self.system().open_input_stream(name) as file:
            return bytes(file.read())

    async def run(self, *words: str, **environ: str) -> Done:
        """A command of the pipeline's, with two cores; an empty variable is none."""
        of_spark = () if words[0] == "report" else ("--master", "local[2]")
        reported = ("pipeline", *words, *of_spark)
        merged = {name: text for name, text in {**self.environ, **environ}.items() if text}
        return await command(*reported, environ=merged, timeout_s=RUN_S)


@contextmanager
def s3_server(folder: Path) -> Iterator[Server]:
    """Starts a server with the buckets "logs" and "tables"; its files are beside the folder."""
    own = asyncio.run(jars_of(_POM))
    with Ports() as ports:
        port, secure_port = ports.reserve(), ports.reserve()
        ca_file = folder.with_suffix(".pem")
        key_store = folder.with_suffix(".p12")
        _certify(ca_file, key_store)
        settings = folder.with_suffix(".properties")
        settings.write_text(
            f"s3proxy.endpoint=http://127.0.0.1:{port}\n"
            f"s3proxy.secure-endpoint=https://127.0.0.1:{secure_port}\n"
            f"s3proxy.keystore-path={key_store}\ns3proxy.keystore-password={SECRET}\n"
            f"s3proxy.authorization=aws-v4\ns3proxy.identity={KEY}\ns3proxy.credential={SECRET}\n"
            "jclouds.provider=transient\njclouds.identity=x\njclouds.credential=x\n"
        )
        java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{own}/*", "org.gaul.s3proxy.Main"]
        with (
            folder.with_suffix(".log").open("wb") as log,
            subprocess.Popen(
                [*java, "--properties", str(settings)], stdout=log, stderr=log
            ) as process,
        ):
            try:
                for each in (port, secure_port):
                    asyncio.run(seen("an S3 server", partial(listens, each)))
                made = Server(_environ(port, folder), port, secure_port, ca_file)
                for bucket in ("logs", "tables"):
                    made.system().create_dir(bucket)
                yield made
            finally:
                process.kill()


def _certify(ca_file: Path, key_store: Path) -> None:
    """Makes an authority, and a server's key with a certificate of it."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(ca_file))
    issued = ca.issue_cert("127.0.0.1")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    certificate = load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    encrypted = BestAvailableEncryption(SECRET.encode())
    key_store.write_bytes(
        pkcs12.serialize_key_and_certificates(b"s3", key, certificate, None, encrypted)
    )


def _environ(port: int, folder: Path) -> dict[str, str]:
    plain = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    return plain | {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        # Else whoever has no key waits for a machine that would issue one.
        "AWS_EC2_METADATA_DISABLED": "true",
        "TMPDIR": str(folder.parent),
    }
