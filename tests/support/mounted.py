"""A Secret as Kubernetes mounts it: each file is a link through ``..data``, which is swapped."""

from pathlib import Path


class MountedSecret:
    """A folder with a Secret's files.

    Attributes:
        folder: the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._generation = 0
        folder.mkdir()

    def holds(self, **files: bytes) -> None:
        """A new generation of all files, swapped in at once; the one before is removed."""
        before = self.folder / f"..{self._generation}"
        self._generation += 1
        target = self.folder / f"..{self._generation}"
        target.mkdir()
        for name, content in files.items():
            (target / name).write_bytes(content)
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        link = self.folder / "..new"
        link.symlink_to(target.name)
        link.rename(self.folder / "..data")
        for name in files if before.is_dir() else ():
            (before / name).unlink()
        if before.is_dir():
            before.rmdir()
