"""Explains failures of object storage in one line that says what to do.

Arrow reads and writes files, Rust's object_store commits them, and Spark's checkpoints use Hadoop.
Each of them reports the store's answer in its own form, Hadoop in a hundred lines.

Example: "...AWS Error ACCESS_DENIED during HeadBucket operation..." of ``s3://logs`` becomes
``s3://logs: access was refused: ...``.

Source: messages that a server caused in pyarrow 26 (arrow/filesystem/s3_internal.h), in
object_store 0.13 and in hadoop-aws 3.5 (org.apache.hadoop.fs.s3a.S3AUtils.translateException).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sidecar.errors import SidecarError


class ObjectStorageError(SidecarError):
    """A store can't be reached, or refuses access."""


_CAUSES: Final = (
    (
        r"No FileSystem for scheme|\bClass \S+FileSystem not found",
        "Spark has no file system for this scheme: name the folder of its jars with --jars DIR,"
        " or use another path",
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
        "access was refused: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the machine's"
        " role, and its permissions to list, read and write there",
    ),
    (
        r"PermanentRedirect|HTTP status 301|Status Code: 301|AWSRedirectException",
        "the bucket is in another region: set AWS_REGION",
    ),
    (
        r"curlCode: 60|InvalidCertificate|invalid peer certificate",
        "the store's certificate isn't trusted: set the variable SSL_CERT_FILE to the file of"
        " the authority that signed it",
    ),
    (
        r"NETWORK_CONNECTION|Unable to execute HTTP request|UnknownHostException"
        r"|java\.net\.ConnectException|SocketTimeoutException|curlCode",
        "the store doesn't answer: check AWS_ENDPOINT_URL and the network",
    ),
)
"""Patterns of failures, and the messages for the user."""
_BUCKET: Final = re.compile(r"\bbucket '([^']+)'|\bs3a://([^/\s:`']+)")


def cause_of(text: str) -> str | None:
    """Return what to do about a failure of a store; None if the text has another cause."""
    return next((message for pattern, message in _CAUSES if re.search(pattern, text)), None)


@contextmanager
def storage_failures(where: str | None = None) -> Iterator[None]:
    """Raise a failure of a store as an error that explains it; other errors pass through.

    Args:
        where: the store or path for the message; None to take it from the failure's text.

    Raises:
        ObjectStorageError: a store has caused the failure.
    """
    try:
        yield
    except SidecarError:
        raise
    except Exception as error:
        text = str(error)
        message = cause_of(text)
        if message is None:
            raise
        raise ObjectStorageError(f"{where or _bucket(text)}: {message}") from error


def _bucket(text: str) -> str:
    match = _BUCKET.search(text)
    return "object storage" if match is None else f"s3://{match[1] or match[2]}"
