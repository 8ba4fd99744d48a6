"""A Kerberos realm of its own: MIT's KDC on a loopback port, and keytabs.

Example: ``async with realm(folder) as kerberos`` starts it, and
``await kerberos.keytab("alice", folder / "alice.keytab")`` adds a principal.
"""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_lab.ports import Ports
from tests.support.waiting import seen

REALM: Final = "EXAMPLE.ORG"
_KDC: Final = "/usr/sbin/krb5kdc"
_CONFIG: Final = """
[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
[realms]
{realm} = {{
    kdc = 127.0.0.1:{port}
    kdc_listen = 127.0.0.1:{port}
    kdc_tcp_listen = 127.0.0.1:{port}
    database_name = {folder}/principals
    key_stash_file = {folder}/stash
}}
"""


@dataclass(frozen=True, slots=True)
class Realm:
    """A realm that runs.

    Attributes:
        config: the file that clients and brokers need.
    """

    config: Path

    async def keytab(self, principal: str, file: Path) -> None:
        """Makes a new key of a principal, and a keytab with that key alone."""
        await asyncio.to_thread(file.unlink, missing_ok=True)
        known = await _run(self.config, "kadmin.local", "listprincs", principal)
        if principal not in known:
            await _run(self.config, "kadmin.local", "addprinc", "-randkey", principal)
        await _run(self.config, "kadmin.local", "ktadd", "-k", str(file), principal)


@asynccontextmanager
async def realm(folder: Path) -> AsyncIterator[Realm]:
    """Starts a KDC; its files are in the folder."""
    assert shutil.which(_KDC), "the KDC is missing: tools/prerequisites krb5kdc"
    config = await asyncio.to_thread(_configured, folder)
    await _run(config, "kdb5_util", "create", "-s", "-P", "master")
    log = folder / "kdc.log"
    with log.open("wb") as output:
        kdc = await asyncio.create_subprocess_exec(
            *(_KDC, "-n"), env=_environ(config), stdout=output, stderr=output
        )
    try:
        await seen("the KDC", log.read_text, lambda text: "starting" in text)
        yield Realm(config)
    finally:
        kdc.kill()
        await kdc.wait()


def _configured(folder: Path) -> Path:
    folder.mkdir()
    config = folder / "krb5.conf"
    with Ports() as ports:
        config.write_text(_CONFIG.format(realm=REALM, port=ports.reserve(), folder=folder))
    return config


def _environ(config: Path) -> dict[str, str]:
    return {
        "KRB5_CONFIG": str(config),
        "KRB5_KDC_PROFILE": str(config),
        "PATH": "/usr/sbin:/usr/bin",
    }


async def _run(config: Path, *words: str) -> str:
    done = await asyncio.to_thread(
        subprocess.run, words, env=_environ(config), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
