"""The folder with the tables, on this machine's disk or in object storage: one way for both.

Parquet files are written and read by Arrow, in workers too, which get the folder with their task.
What else is in it are small files, of the driver alone: each is there whole or not at all, and one
that must not be there yet is made in one step (S3: ``If-None-Match``).

Example: ``Folder.of("s3://tables/kafka").create("_commits/7.json", b"{}")`` is True once.
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
    """There can be no tables there."""


@dataclass(frozen=True)
class Folder:
    """The folder with the tables.

    Attributes:
        address: absolute where it is on this machine.
    """

    address: Address

    @classmethod
    def of(cls, text: str) -> "Folder":
        """From what a person says.

        Raises:
            FolderError: no tables can be there.
            SecretInPathError: it holds credentials.
        """
        if text.startswith(_HDFS):
            raise FolderError(
                f"{text}: tables lie on a disk that all of Spark's machines see, or in object"
                " storage, not in HDFS: give --out such a folder"
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
        """Where it is on this machine's disk; None in object storage."""
        return None if self.address.store else Path(self.address.path)

    @property
    def options(self) -> dict[str, str]:
        """Of its store, for deltalake."""
        return options_of(self.address)

    def uri(self, path: str) -> str:
        """Of a file or a table in it, as deltalake and people take it."""
        return f"{self.address}/{path}"

    def check_store(self) -> None:
        """Refuses a store that is not there.

        Raises:
            FolderError: there is no such bucket.
            ObjectStorageError: it can't be reached, or refuses.
        """
        if self.here is not None:
            return
        with storage_failures(str(self)):
            system, root = located(Address(self.address.store, "", self.address.options))
            found = system.get_file_info(root)
        if found.type == fs.FileType.NotFound:
            raise FolderError(f"{self}: there is no such bucket: make it, or correct its name")

    def open_output(self, path: str) -> "pa.NativeFile":
        """Begins a file, whose folders are made; it is there once it is closed.

        Raises:
            OSError: it can't be written.
        """
        system, inner = self.inner(path)
        if self.here is not None:
            system.create_dir(inner.rpartition("/")[0], recursive=True)
        return system.open_output_stream(inner)

    def open_input(self, path: str) -> "pa.NativeFile":
        """Opens a file to read from any place of it.

        Raises:
            OSError: it can't be read.
        """
        system, inner = self.inner(path)
        return system.open_input_file(inner)

    def sizes(self, path: str) -> dict[str, int]:
        """The files in a folder and below, by their paths in this one; bytes."""
        with storage_failures(self.uri(path)):
            system, inner = self.inner(path)
            found = system.get_file_info(
                fs.FileSelector(inner, allow_not_found=True, recursive=True)
            )
        return {
            path + info.path[len(inner) :]: info.size
            for info in found
            if info.type == fs.FileType.File
        }

    def names(self, path: str = "") -> list[str]:
        """Of what is in a folder, sorted; empty for none."""
        with storage_failures(self.uri(path)):
            system, inner = self.inner(path)
            found = system.get_file_info(fs.FileSelector(inner, allow_not_found=True))
        return sorted(info.base_name for info in found)

    def read(self, path: str) -> bytes | None:
        """A small file; None for none."""
        with storage_failures(self.uri(path)):
            try:
                with self.open_input(path) as opened:
                    return bytes(opened.read())
            except FileNotFoundError:
                return None

    def create(self, path: str, content: bytes) -> bool:
        """Writes a small file; False, and nothing is written, when there is one already."""
        from obstore.exceptions import AlreadyExistsError  # noqa: PLC0415 - of the driver alone

        with storage_failures(self.uri(path)):
            try:
                self._store.put(path, content, mode="create")
            except AlreadyExistsError:
                return False
            return True

    def replace(self, path: str, content: bytes) -> None:
        """Writes a small file in place of the one that is there, if any."""
        with storage_failures(self.uri(path)):
            self._store.put(path, content)

    def remove(self, path: str) -> None:
        """Removes a file, if it is there."""
        with storage_failures(self.uri(path)):
            system, inner = self.inner(path)
            try:
                system.delete_file(inner)
            except FileNotFoundError:
                return

    def inner(self, path: str) -> tuple[fs.FileSystem, str]:
        """The file system of a file or folder in it, and where it is there."""
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
                    f"nothing can be written to {self}: {error}; give --out another folder"
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
        """Workers make their own connections."""
        return {"address": self.address}
