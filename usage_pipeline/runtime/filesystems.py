"""Arrow's file system for a path, with short deadlines and the path's options.

A store that doesn't answer times out after half a minute. Clients of stores are cached, because
workers open many files of the same store.

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
    """Return the file system of an address, and the path in it."""
    if not at.store:
        return fs.LocalFileSystem(), at.path
    system, root = _system(at.store, at.options, _from_environment())
    return system, root.rstrip("/") + at.path


def open_input(path: str, options: str = "") -> BufferedIOBase:
    """Open a file for random access; the caller closes it.

    Raises:
        OSError: the file can't be opened.
    """
    # Options are not parsed from the path, because a file's name may contain "?" and "@".
    store, separator, name = path.partition("://")
    host, slash, name = name.partition("/")
    at = (
        Address(store + separator + host, slash + name, options) if separator else Address("", path)
    )
    system, inner = located(at)
    opened: BufferedIOBase = system.open_input_file(inner)
    return opened


def options_of(at: Address) -> dict[str, str]:
    """Return the options and deadlines for libraries on Rust's object_store: deltalake, obstore.

    Like Arrow, these libraries read all other options from the environment.
    """
    if not at.store:
        return {}
    options = _parsed(at.options)
    endpoint = _endpoint(options) if at.store.startswith("s3:") else None
    settings = {
        "connect_timeout": f"{CONNECT_S:g}s",
        "timeout": f"{ANSWER_S:g}s",
        "aws_region": options.get("region"),
        "aws_endpoint": endpoint,
        "allow_http": "true" if endpoint is not None and endpoint.startswith("http:") else None,
    }
    return {name: value for name, value in settings.items() if value is not None}


@lru_cache(maxsize=16)
def _system(store: str, options: str, endpoint: str | None) -> tuple[fs.FileSystem, str]:
    """Return a store's file system, and the path of its root."""
    system, root = fs.FileSystem.from_uri(Address(store, "/", options).uri)
    if not isinstance(system, fs.S3FileSystem):
        return system, root
    # The same store with shorter deadlines than a URI allows: its own add up to 99 s.
    settings: dict[str, Any] = _parsed(options)
    settings.pop("region", None)
    for name in _FLAGS & settings.keys():
        settings[name] = settings[name].lower() in {"1", "true"}
    impatient = fs.S3FileSystem(
        region=system.region,
        connect_timeout=CONNECT_S,
        request_timeout=ANSWER_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        # Arrow reads the endpoint from the environment only if it parses a URI.
        **{"endpoint_override": endpoint, **settings},
    )
    return impatient, root


def _parsed(options: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(options[1:]).items()}


def _endpoint(options: dict[str, str]) -> str | None:
    endpoint = options.get("endpoint_override")
    if endpoint is None:
        return _from_environment()
    return endpoint if "://" in endpoint else f"{options.get('scheme', 'https')}://{endpoint}"


def _from_environment() -> str | None:
    return next(filter(None, map(os.environ.get, _ENDPOINTS)), None)
