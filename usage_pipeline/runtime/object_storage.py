"""What is wrong with object storage, in a line that says what to do.

Arrow reads and writes files, Rust's object_store commits them, and Spark's checkpoints go by
Hadoop; each says in words of its own what the store has answered, Hadoop in a hundred lines.

Example: "...AWS Error ACCESS_DENIED during HeadBucket operation..." of ``s3://logs`` is
``s3://logs: access was refused: ...``.

Source: the messages of pyarrow 26 (arrow/filesystem/s3_internal.h), of object_store 0.13 and of
hadoop-aws 3.5 (org.apache.hadoop.fs.s3a.S3AUtils.translateException), as a server gave cause for
them.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sidecar.errors import SidecarError


class ObjectStorageError(SidecarError):
    """A store can't be reached, or refuses."""


@dataclass(frozen=True, slots=True)
class _Cause:
    """What went wrong: what is said then, and the message to a person."""

    sign: re.Pattern[str]
    message: str


_CAUSES: Final = tuple(
    _Cause(re.compile(sign), message)
    for sign, message in (
        (
            r"No FileSystem for scheme|\bClass \S+FileSystem not found",
            "Spark has no file system of this kind: give its jars with --jars DIR, or another"
            " place",
        ),
        (
            r"NoSuchBucket|NO_SUCH_BUCKET|UnknownStoreException",
            "there is no such bucket: make it, or correct its name",
        ),
        (
            r"NoAuthWithAWSException|NoAwsCredentials",
            "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,"
            " or give the machine a role",
        ),
        (
            r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY_ID|InvalidAccessKeyId"
            r"|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch|Status Code: 40[13]",
            "access was refused: look at AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, at the"
            " machine's role, and whether it may list, read and write there",
        ),
        (
            r"PermanentRedirect|HTTP status 301|Status Code: 301|AWSRedirectException",
            "the bucket is in another region: name it with AWS_REGION",
        ),
        (
            r"curlCode: 60|InvalidCertificate|invalid peer certificate",
            "its certificate isn't trusted: name the file of the authority that signed it in the"
            " variable SSL_CERT_FILE",
        ),
        (
            r"NETWORK_CONNECTION|Unable to execute HTTP request|UnknownHostException"
            r"|java\.net\.ConnectException|SocketTimeoutException|curlCode",
            "the store doesn't answer: look at AWS_ENDPOINT_URL and at the network",
        ),
    )
)
_BUCKET: Final = re.compile(r"\bbucket '([^']+)'|\bs3a://([^/\s:`']+)")


def cause_of(said: str) -> str | None:
    """What to do about a store, by what was said; None when that is of something else."""
    return next((cause.message for cause in _CAUSES if cause.sign.search(said)), None)


@contextmanager
def storage_failures(where: str | None = None) -> Iterator[None]:
    """What a store is to blame for becomes a refusal; all else is as it was.

    Args:
        where: whose failure it is then; None: by what was said.

    Raises:
        ObjectStorageError: a store is to blame.
    """
    try:
        yield
    except SidecarError:
        raise
    except Exception as error:
        said = str(error)
        message = cause_of(said)
        if message is None:
            raise
        raise ObjectStorageError(f"{where or _bucket(said)}: {message}") from error


def _bucket(said: str) -> str:
    found = _BUCKET.search(said)
    return "object storage" if found is None else f"s3://{found[1] or found[2]}"
