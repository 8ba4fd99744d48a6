"""Packages that only an extra installs, in a folder of the cache.

They are not among the locked packages of tests: gssapi has no wheel for Linux, and Amazon's need an
older version of a package that the pipeline needs.

Example: ``PYTHONPATH=await installed(KERBEROS)`` for a command that logs in with Kerberos.
"""

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kafka_lab.cache import filling
from sidecar.formats.cache_folder import cache_folder

KERBEROS: Final = ("gssapi==1.12.0", "decorator==5.3.1")
AWS: Final = (
    *("aws-msk-iam-sasl-signer-python==1.0.2", "boto3==1.44.8", "botocore==1.44.8"),
    *("jmespath==1.1.0", "python-dateutil==2.9.0.post0", "s3transfer==0.19.3", "six==1.17.0"),
)
_DEADLINE_S: Final = 500.0
"""gssapi is compiled once, for minutes."""


async def installed(packages: Sequence[str]) -> Path:
    """The folder with packages and nothing that they depend on."""
    key = hashlib.sha256("|".join((sys.version, *packages)).encode()).hexdigest()[:12]
    target = cache_folder(os.environ) / f"{packages[0]}-{key}"
    async with asyncio.timeout(_DEADLINE_S), filling(target) as folder:
        if folder is not None:
            words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *packages]
            words += ["--target", str(folder)]
            await asyncio.to_thread(subprocess.run, words, check=True, timeout=_DEADLINE_S)
    return target
