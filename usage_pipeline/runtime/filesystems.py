"""The file systems that paths are in, for Arrow, with short deadlines and their options.

A store that doesn't answer times out after half a minute. Workers open many files of one store, so
its client is kept.

Example: ``located(address_of("s3://logs/kafka"))`` is Arrow's S3 and ``logs/kafka``.
"""

import os
from functools import lru_cache
from io import BufferedIOBase
from typing import Any, Final
from urllib.parse import parse_qs

from pyarrow import fs

from usage_pipeline.runtime.addresses import Address

CONNECT_S: Final = 5.0
ANSWER_S: Final = 10.0
ATTEMPTS: Final = 3
_FLAGS: Final = {
    "allow_bucket_creation",
    "allow_bucket_deletion",
    "check_directory_existence_before_creation",
    "force_virtual_addressing",
}
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def located(at: Address) -> tuple[fs.FileSystem, str]:
    """The file system of an address, and its path there."""
    if not at.store:
        return fs.LocalFileSystem(), at.path
    system, root = _system(at.store, at.options, _from_environment())
    return system, root.rstrip("/") + at.path


def open_input(path: str, options: str = "") -> BufferedIOBase:
    """Opens a file to read from any place of it; to be closed by the caller.

    Raises:
        OSError: it can't be opened.
    """
    # Not of the whole: a file's name may have a "?" in it, and an "@".
    store, separator, name = path.partition("://")
    host, slash, name = name.partition("/")
    at = (
        Address(store + separator + host, slash + name, options) if separator else Address("", path)
    )
    system, inner = located(at)
    opened: BufferedIOBase = system.open_input_file(inner)
    return opened


def options_of(at: Address) -> dict[str, str]:
    """The same options and deadlines for what is built on Rust's object_store: deltalake, obstore.

    What is not named here they take from the environment, as Arrow does.
    """
    if not at.store:
        return {}
    named = _parsed(at.options)
    endpoint = _endpoint(named) if at.store.startswith("s3:") else None
    found = {
        "connect_timeout": f"{CONNECT_S:g}s",
        "timeout": f"{ANSWER_S:g}s",
        "aws_region": named.get("region"),
        "aws_endpoint": endpoint,
        "allow_http": "true" if endpoint is not None and endpoint.startswith("http:") else None,
    }
    return {name: value for name, value in found.items() if value is not None}


@lru_cache(maxsize=16)
def _system(store: str, options: str, endpoint: str | None) -> tuple[fs.FileSystem, str]:
    """A store's file system, and its root there."""
    system, root = fs.FileSystem.from_uri(Address(store, "/", options).uri)
    if not isinstance(system, fs.S3FileSystem):
        return system, root
    # The same store with shorter waits than a URI can ask for: its own add up to 99 s.
    named: dict[str, Any] = _parsed(options)
    named.pop("region", None)
    for name in _FLAGS & named.keys():
        named[name] = named[name].lower() in {"1", "true"}
    impatient = fs.S3FileSystem(
        region=system.region,
        connect_timeout=CONNECT_S,
        request_timeout=ANSWER_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        # Arrow reads it from the environment only with a URI.
        **{"endpoint_override": endpoint, **named},
    )
    return impatient, root


def _parsed(options: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(options[1:]).items()}


def _endpoint(named: dict[str, str]) -> str | None:
    endpoint = named.get("endpoint_override")
    if endpoint is None:
        return _from_environment()
    return endpoint if "://" in endpoint else f"{named.get('scheme', 'https')}://{endpoint}"


def _from_environment() -> str | None:
    return next(filter(None, map(os.environ.get, _ENDPOINTS)), None)
