"""Makes all that a release publishes, in ``dist/``: ``make release VERSION=0.1.0 REPOSITORY_URL=https://...``.

Everything is made from the commit that is checked out, unpacked into a folder of its own. There the
metadata gets the addresses that only a published project has: all of them start with
REPOSITORY_URL, and there is no other place for them. The same commit gives the same bytes with the
same tools, Debian packages and base image. Times are those of the commit.

Example: version 0.1.0 at https://git.example.org/team/throttle-sidecar turns the README's
``docs/install.md`` into https://git.example.org/team/throttle-sidecar/blob/v0.1.0/docs/install.md.
"""

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

CALLBACK: Final = "throttle-sidecar-quota-callback"
PLATFORMS: Final = ("amd64", "arm64")

_URL: Final = re.compile(r"https://[^/\s]+(?:/[^/\s]+)+")
_LINK: Final = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)\s]+)\)")
_VERSIONS: Final = {
    "sidecar/__init__.py": r'__version__ = "(.*)"',
    "usage_pipeline/pyproject.toml": r'(?m)^version = "(.*)"',
    "deploy/helm/throttle-sidecar/Chart.yaml": r"(?m)^version: (.*)",
    "deploy/quota-callback/pom.xml": rf"<artifactId>{CALLBACK}</artifactId>\s*<version>(.*)<",
    "Dockerfile": r'image\.version="(.*?)"',
}
"""Where a version stands, and as what."""

_MAVEN: Final = (
    "compiler:compile",
    "jar:jar",
    "source:jar-no-fork",
    "org.cyclonedx:cyclonedx-maven-plugin:makeBom",
)


class RefusedError(Exception):
    """A reason why nothing is made, for the person who types the command."""


def section(changelog: str, version: str) -> str:
    """What the changelog says about a version, without the heading.

    Raises:
        RefusedError: it says nothing.
    """
    heading = rf"^## \[?{re.escape(version)}\]?(?: [^\n]*)?$"
    found = re.search(heading + r"\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise RefusedError(
            f"CHANGELOG.md says nothing about {version}: rename its section 'Unreleased' to"
            f" '{version}' and the date"
        )
    return found[1].strip() + "\n"


def absolute(markdown: str, url: str, version: str) -> str:
    """A page of the root folder whose links work elsewhere: each leads to the version's tag.

    Raises:
        RefusedError: a link is still relative, since its form is unknown here.
    """

    def whole(link: re.Match[str]) -> str:
        image, text, path = link.groups()
        return f"{image}{text}({url}/{'raw' if image else 'blob'}/v{version}/{path})"

    changed = _LINK.sub(whole, markdown)
    tokens = [child for token in MarkdownIt().parse(changed) for child in token.children or ()]
    targets = [str(token.attrs.get("href") or token.attrs.get("src") or "") for token in tokens]
    if left := [each for each in targets if each and not re.match("https?:|#", each)]:
        raise RefusedError(f"these links are relative: {', '.join(left)}")
    return changed


def check(root: Path, version: str, url: str) -> None:
    """Compare the checkout with what is to be released.

    Raises:
        RefusedError: it is not the checkout of this version, or the address is missing.
    """
    if not _URL.fullmatch(url):
        raise RefusedError(
            f"REPOSITORY_URL is {url!r}: set it to the address of the public repository, such as"
            " https://HOST/OWNER/NAME, without a slash at its end. All links start with it"
        )
    for name, pattern in _VERSIONS.items():
        found = re.search(pattern, (root / name).read_text())
        if found is None or found[1] != version:
            raise RefusedError(f"VERSION is {version!r}, but {name} has {found and found[1]!r}")
    section((root / "CHANGELOG.md").read_text(), version)
    if changed := _output(["git", "status", "--porcelain"], root).splitlines():
        raise RefusedError(
            f"git shows changes: commit or remove them first, such as{changed[0][2:]}"
        )


def address(folder: Path, version: str, url: str) -> None:
    """Put the public addresses into the metadata of an unpacked checkout."""
    readme = folder / "README.md"
    readme.write_text(absolute(readme.read_text(), url, version))
    links = {
        "Homepage": url,
        "Source": f"{url}/tree/v{version}",
        "Documentation": f"{url}/blob/v{version}/docs/README.md",
        "Changelog": f"{url}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }
    table = "\n[project.urls]\n" + "".join(f'{key} = "{value}"\n' for key, value in links.items())
    for name in ("pyproject.toml", "usage_pipeline/pyproject.toml"):
        with (folder / name).open("a") as project:
            project.write(table)
    with (folder / "deploy/helm/throttle-sidecar/Chart.yaml").open("a") as chart:
        chart.write(f"home: {url}\nsources:\n  - {links['Source']}\n")
    pom = folder / "deploy/quota-callback/pom.xml"
    scm = f"<scm><url>{links['Source']}</url><connection>scm:git:{url}.git</connection></scm>"
    text = pom.read_text()
    pom.write_text(text.replace("  <licenses>", f"  <url>{url}</url>\n  {scm}\n  <licenses>", 1))


def make(source: Path, out: Path, version: str, environ: Mapping[str, str]) -> None:
    """Make everything but the sums and the notes.

    Args:
        source: an unpacked checkout with its addresses.
        out: an empty folder.
        version: of everything.
        environ: with SOURCE_DATE_EPOCH, REVISION and REPOSITORY_URL; BUILDAH and IMAGE_OPTIONS
            replace ``buildah`` and add options to ``buildah build``.
    """
    callback = source / "deploy/quota-callback"
    _run(["mvn", "--quiet", "--batch-mode", *_MAVEN], callback, environ)
    jar = f"{CALLBACK}-{version}"
    for made, name in (
        (f"target/{CALLBACK}.jar", f"{jar}.jar"),
        (f"target/{CALLBACK}-sources.jar", f"{jar}-sources.jar"),
        ("pom.xml", f"{jar}.pom"),
        ("target/bom.json", f"{jar}.cdx.json"),
    ):
        shutil.copy(callback / made, out / name)
    hatchling = [sys.executable, "-m", "hatchling", "build", "--directory", str(out), "--target"]
    _run([*hatchling, "wheel", "--target", "sdist"], source, environ)
    _run([*hatchling, "wheel"], source / "usage_pipeline", environ)
    packages = sorted(map(str, (*out.glob("*.whl"), *out.glob("*.tar.gz"))))
    _run([sys.executable, "-m", "twine", "check", "--strict", *packages], source, environ)
    for lock, project, name in (
        ("requirements.txt", "pyproject.toml", "throttle-sidecar"),
        ("requirements-pipeline.txt", "usage_pipeline/pyproject.toml", "throttle-sidecar-pipeline"),
    ):
        bom = out / f"{name}-{version}.cdx.json"
        reproducible = [
            "--output-reproducible",
            "--output-format",
            "JSON",
            "--mc-type",
            "application",
        ]
        words = ["requirements", *reproducible, "--pyproject", project, "--output-file", str(bom)]
        # The warning: a list of locked packages doesn't say which needs which.
        python = [sys.executable, "-W", "ignore", "-m", "cyclonedx_py"]
        _run([*python, *words, lock], source, environ)
        document = json.loads(bom.read_text())
        document["metadata"]["component"]["version"] = version  # which pyproject.toml calls dynamic
        bom.write_text(json.dumps(document, indent=2) + "\n")
    _chart(source / "deploy/helm/throttle-sidecar", out, environ)
    _image(source, out / f"throttle-sidecar-{version}.oci.tar", version, environ)


def _chart(chart: Path, out: Path, environ: Mapping[str, str]) -> None:
    """Package the chart, and pack it again: Helm 3 writes the present time into it."""
    helm = Path(sys.executable).with_name("helm")
    _run([str(helm), "package", str(chart), "--destination", str(out)], chart, environ)
    (package,) = out.glob("throttle-sidecar-*.tgz")
    with tempfile.TemporaryDirectory() as unpacked:
        shutil.unpack_archive(package, unpacked, "gztar", filter="data")
        _pack(Path(unpacked), package, environ, "--use-compress-program=gzip -n")


def _image(source: Path, archive: Path, version: str, environ: Mapping[str, str]) -> None:
    """Build the image for all platforms, and write it as an archive in OCI's layout."""
    buildah = shlex.split(environ.get("BUILDAH", "buildah"))
    # Older versions of buildah don't know on what they build.
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    arguments = {
        "BUILDPLATFORM": f"linux/{machine}",
        "REVISION": environ["REVISION"],
        "SOURCE": environ["REPOSITORY_URL"],
    }
    options = [word for pair in arguments.items() for word in ("--build-arg", "=".join(pair))]
    options += ["--format", "oci", "--timestamp", environ["SOURCE_DATE_EPOCH"]]
    options += ["--build-context", f"callback={source / 'deploy/quota-callback/target'}"]
    options += shlex.split(environ.get("IMAGE_OPTIONS", ""))
    name = f"localhost/throttle-sidecar-release:{version}"
    _run([*buildah, "manifest", "create", name], source, environ)
    try:
        for each in PLATFORMS:
            wanted = ["--platform", f"linux/{each}", "--manifest", name]
            _run([*buildah, "build", "--quiet", *options, *wanted, "."], source, environ)
        with tempfile.TemporaryDirectory() as layout:
            target = f"oci:{layout}:{version}"
            _run([*buildah, "manifest", "push", "--quiet", "--all", name, target], source, environ)
            _pack(Path(layout), archive, environ)
    finally:
        _run([*buildah, "manifest", "rm", name], source, environ)


def _pack(folder: Path, archive: Path, environ: Mapping[str, str], *options: str) -> None:
    """Pack a folder's files by name, all of the same time and owner."""
    owner = ["--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX", "--format=ustar"]
    when = f"--mtime=@{environ['SOURCE_DATE_EPOCH']}"
    names = sorted(path.name for path in folder.iterdir())
    words = ["tar", "--create", "--file", str(archive), "--sort=name", when, *owner, *options]
    _run([*words, "--", *names], folder, environ)


def release(root: Path, version: str, environ: Mapping[str, str]) -> Path:
    """Check, and make all of it.

    Returns:
        The folder with everything; what it had before is removed.

    Raises:
        RefusedError: a check or a step failed; then the folder is as it was.
    """
    url = environ.get("REPOSITORY_URL", "")
    check(root, version, url)
    time_s = _output(["git", "log", "-1", "--format=%ct"], root).strip()
    revision = _output(["git", "rev-parse", "HEAD"], root).strip()
    environ = {**environ, "SOURCE_DATE_EPOCH": time_s, "REVISION": revision}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        source.mkdir()
        archive = Path(folder) / "source.tar"
        _run(["git", "archive", "--output", str(archive), "HEAD"], root, environ)
        shutil.unpack_archive(archive, source, filter="data")
        address(source, version, url)
        out = root / "dist.new"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        try:
            make(source, out, version, environ)
            notes = section((source / "CHANGELOG.md").read_text(), version)
            (out / "release-notes.md").write_text(absolute(notes, url, version))
            sums = {each.name: hashlib.sha256(each.read_bytes()) for each in sorted(out.iterdir())}
            lines = [f"{digest.hexdigest()}  {name}\n" for name, digest in sums.items()]
            (out / "SHA256SUMS").write_text("".join(lines))
            shutil.rmtree(root / "dist", ignore_errors=True)
            out.rename(root / "dist")
        finally:
            shutil.rmtree(out, ignore_errors=True)
    return root / "dist"


def _output(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(  # noqa: S603 - git, with words of this file
        command, cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def _run(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
    print("+", shlex.join(map(str, command)), flush=True)
    done = subprocess.run(command, cwd=folder, env=environ, check=False)  # noqa: S603 - as above
    if done.returncode != 0:
        raise RefusedError(f"{command[0]} failed with exit code {done.returncode}")


if __name__ == "__main__":
    try:
        made = release(Path.cwd(), os.environ.get("VERSION", ""), os.environ)
    except RefusedError as reason:
        sys.exit(f"No release is made: {reason}.")
    print((made / "SHA256SUMS").read_text(), end="")
