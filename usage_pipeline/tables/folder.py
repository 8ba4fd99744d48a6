"""The folder of the tables, on this machine's disk or in object storage.

Arrow reads and writes Parquet files in the driver and in workers, which receive the folder with
their task. Only the driver writes the other, small files. It writes each of them atomically, and
can create a file only if it does not exist (S3: ``If-None-Match``).

Example: ``Folder.parse("s3://tables/kafka").create("_commits/7.json", b"{}")`` is True once.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pyarrow import fs

from sidecar.errors import SidecarError
from usage_pipeline.runtime.addresses import Address, address_of
from usage_pipeline.runtime.filesystems import ANSWER_S, ATTEMPTS, located, options_of
from usage_pipeline.runtime.object_storage import storage_failures

if TYPE_CHECKING:
    import pyarrow as pa
    from obstore.store import ObjectStore

_RETRIES_S: Final = 30.0
_HDFS: Final = ("hdfs://", "viewfs://", "webhdfs://")


class FolderError(SidecarError):
    """The path can't be a folder of tables."""


@dataclass(frozen=True)
class Folder:
    """The folder of the tables.

    Attributes:
        address: its address; absolute on this machine.
    """

    address: Address

    @classmethod
    def parse(cls, text: str) -> "Folder":
        """Create the folder from an option.

        Raises:
            FolderError: the path can't be a folder of tables.
            SecretInPathError: the path contains credentials.
        """
        if text.startswith(_HDFS):
            raise FolderError(
                f"{text}: tables can't be in HDFS; use --out with a disk that all of Spark's"
                " machines share, or with object storage"
            )
        if text.startswith("file:"):
            text = urlsplit(text).path
        address = address_of(text)
        path = address.path.rstrip("/") if address.store else str(Path(text).absolute())
        return cls(Address(address.store, path, address.options))

    def __str__(self) -> str:
        return str(self.address)

    @property
    def here(self) -> Path | None:
        """The path on this machine's disk; None in object storage."""
        return None if self.address.store else Path(self.address.path)

    @property
    def options(self) -> dict[str, str]:
        """The options of the store for deltalake."""
        return options_of(self.address)

    def uri(self, path: str) -> str:
        """Return the URI of a file or table in it, for deltalake and for messages."""
        return f"{self.address}/{path}"

    def check_store(self) -> None:
        """Check that the store exists.

        Raises:
            FolderError: the bucket does not exist.
            ObjectStorageError: the store is not reachable, or refuses access.
        """
        if self.here is not None:
            return
        with storage_failures(str(self)):
            system, root = located(Address(self.address.store, "", self.address.options))
            info = system.get_file_info(root)
        if info.type == fs.FileType.NotFound:
            raise FolderError(f"{self}: the bucket does not exist; create it or correct its name")

    def open_output(self, path: str) -> "pa.NativeFile":
        """Open a new file, and create its folders. It exists once it is closed.

        Raises:
            OSError: the file can't be written.
        """
        system, inner = self.inner(path)
        if self.here is not None:
            system.create_dir(inner.rpartition("/")[0], recursive=True)
        return system.open_output_stream(inner)

    def sizes(self, path: str) -> dict[str, int]:
        """Return the files below a folder: path in this folder -> size in bytes."""
        with storage_failures(self.uri(path)):
            system, inner = self.inner(path)
            infos = system.get_file_info(
                fs.FileSelector(inner, allow_not_found=True, recursive=True)
            )
        return {
            path + info.path[len(inner) :]: info.size
            for info in infos
            if info.type == fs.FileType.File
        }

    def names(self, path: str = "") -> list[str]:
        """Return the sorted names in a folder; none if it does not exist."""
        with storage_failures(self.uri(path)):
            system, inner = self.inner(path)
            infos = system.get_file_info(fs.FileSelector(inner, allow_not_found=True))
        # On a disk, obstore writes "a" as "a#1" first. A process that is killed leaves "a#1".
        return sorted(info.base_name for info in infos if "#" not in info.base_name)

    def read(self, path: str) -> bytes | None:
        """Read a small file; return None if it does not exist."""
        with storage_failures(self.uri(path)):
            system, inner = self.inner(path)
            try:
                with system.open_input_file(inner) as opened:
                    return bytes(opened.read())
            except FileNotFoundError:
                return None

    def create(self, path: str, content: bytes) -> bool:
        """Create a small file; return False without a change if it exists."""
        from obstore.exceptions import AlreadyExistsError  # noqa: PLC0415 - of the driver alone

        with storage_failures(self.uri(path)):
            try:
                self._store.put(path, content, mode="create")
            except AlreadyExistsError:
                return False
            return True

    def replace(self, path: str, content: bytes) -> None:
        """Write or replace a small file."""
        with storage_failures(self.uri(path)):
            self._store.put(path, content)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        with storage_failures(self.uri(path)):
            system, inner = self.inner(path)
            try:
                system.delete_file(inner)
            except FileNotFoundError:
                return

    def inner(self, path: str) -> tuple[fs.FileSystem, str]:
        """Return the file system of a file or folder, and its path there."""
        system, root = located(self.address)
        return system, f"{root}/{path}".rstrip("/")

    @cached_property
    def _store(self) -> "ObjectStore":
        from obstore.store import LocalStore, from_url  # noqa: PLC0415 - of the driver alone

        if self.here is not None:
            try:
                return LocalStore(self.here, mkdir=True)
            except Exception as error:
                raise FolderError(
                    f"{self} is not writable ({error}); use another folder for --out"
                ) from error
        # Of names that a type checker does not know, since they depend on the store.
        options: dict[str, Any] = dict(self.options)
        store: ObjectStore = from_url(
            str(self),
            config={name: options[name] for name in options if name.startswith("aws_")},  # type: ignore[call-overload]  # see above
            client_options={name: options[name] for name in options if not name.startswith("aws_")},
            retry_config={
                "max_retries": ATTEMPTS,
                "retry_timeout": timedelta(seconds=_RETRIES_S + ANSWER_S),
            },
        )
        return store

    def __getstate__(self) -> dict[str, object]:
        """Pickle without the connections, which each worker opens itself."""
        return {"address": self.address}
