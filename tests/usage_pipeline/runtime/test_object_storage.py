"""What is wrong with object storage, in one line; the integration tests have a real server."""

import pytest

from sidecar.errors import SidecarError
from usage_pipeline.runtime.object_storage import ObjectStorageError, storage_failures


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (
            "When getting information for key 'x' in bucket 'logs': AWS Error ACCESS_DENIED during"
            " HeadObject operation: No response body.",
            "s3://logs: access was refused",
        ),
        (
            "An error occurred while calling o7.text.\n: java.nio.file.AccessDeniedException:"
            " s3a://logs/x: org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException: No AWS Creden",
            "s3://logs: there are no credentials",
        ),
        ("AWS Error UNKNOWN (HTTP status 301)", "object storage: the bucket is in another region"),
        (
            "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 60, SSL peer"
            " certificate or SSH remote key was not OK",
            "object storage: the store's certificate isn't trusted",
        ),
        (
            'UnsupportedFileSystemException: No FileSystem for scheme "gs"',
            "object storage: Spark has no file system for this scheme",
        ),
    ],
)
def test_a_store_that_is_to_blame(raised: str, expected: str) -> None:
    """The message names the store or path, the cause and what to do."""
    with pytest.raises(ObjectStorageError) as refused, storage_failures():
        raise OSError(raised)
    assert expected == str(refused.value)[: len(expected)]
    assert "\n" not in str(refused.value)
    with (
        pytest.raises(ObjectStorageError, match=r"^s3://mine/x: "),
        storage_failures("s3://mine/x"),
    ):
        raise OSError(raised)


@pytest.mark.parametrize("error", [OSError("No space left"), SidecarError("AccessDenied by us")])
def test_what_is_no_stores_doing_is_as_it_was(error: Exception) -> None:
    """Other failures, and the pipeline's own errors, pass whatever their text is."""
    with pytest.raises(type(error)) as raised, storage_failures():
        raise error
    assert error is raised.value
