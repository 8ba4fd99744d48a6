"""The work of ``history import``: reads files or Prometheus, and writes a volume history.

Example: two weeks of three volumes, read every five minutes, become 336 files of an hour each. If
one of them is there already, nothing is written.
"""

import gzip
import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import click

from sidecar.api.bearer_token import read_token
from sidecar.cli.sidecar_client import Address
from sidecar.errors import SidecarError
from sidecar.history.folder import file_name
from sidecar.history.imports.combined import Combined, combine
from sidecar.history.imports.csv_table import csv_points
from sidecar.history.imports.df_log import df_points
from sidecar.history.imports.points import NAMES, DataError, Point
from sidecar.history.imports.prometheus import prometheus_points
from sidecar.history.imports.volume_names import VolumeNames
from sidecar.history.volume_line import to_line
from sidecar.http import AnswerTooLongError, HttpError, failure_of, request_blocking
from sidecar.logs import printable

ORIGIN: Final = "imported"
DEADLINE_S: Final = 60.0
"""For a query over weeks, Prometheus needs seconds."""
LONGEST_ANSWER: Final = 64 << 20
"""The bytes of 11,000 steps (Prometheus' own limit) of 200 series, which take 1.3 GB of memory."""
_YEARS_S: Final = (946_684_800.0, 4_102_444_800.0)
"""2000 to 2100, in epoch seconds. A number beyond that is a date without separators or an error."""
_SCHEMES: Final = ("http://", "https://")
_UTF_16: Final = (BOM_UTF16_LE, BOM_UTF16_BE)
"""The begin of a file that Grafana makes for Excel."""
_MOST_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Sources:
    """What to read.

    Attributes:
        prometheus: files with an answer of Prometheus, or URLs.
        csv_files: CSV files.
        df_files: logs of df.
        zone: the zone of times without an offset from UTC; None to refuse them.
        token_file: the file with the bearer token for a URL; None sends none.
    """

    prometheus: Sequence[str]
    csv_files: Sequence[str]
    df_files: Sequence[str]
    zone: tzinfo | None = None
    token_file: Path | None = None


def run(sources: Sources, names: VolumeNames, out: Path, *, overwrite: bool) -> None:
    """Read, combine, write and report.

    Raises:
        SidecarError: something can't be read or written, or there would be no reading.
    """
    combined = combine(map(_checked, _points(sources, names)), names, ORIGIN)
    for line in _left_out(combined):
        click.echo(printable(line), err=True)
    if not combined.observations:
        raise SidecarError(
            "there is no reading: a reading needs the total and the available bytes of a volume"
            f" that --match fits. {NAMES[0].upper()}{NAMES[1:]}."
        )
    files: dict[str, bytearray] = {}
    for each in combined.observations:
        name = f"{file_name(ORIGIN, each.observed_at)}.gz"
        files.setdefault(name, bytearray()).extend(to_line(each, ORIGIN, each.observed_at))
    try:
        _write(out, files, overwrite=overwrite)
    except OSError as error:
        raise SidecarError(f"{out} can't be written: {error.strerror or error}") from error
    click.echo(printable(_summary(combined, len(files), out)))


def _points(sources: Sources, names: VolumeNames) -> Iterator[Point]:
    for source in sources.prometheus:
        if source.startswith(_SCHEMES):
            yield from prometheus_points(*_fetch(source, sources.token_file), _warn)
        else:
            yield from prometheus_points(Path(source).name, _content(source), _warn)
    for source in sources.csv_files:
        yield from csv_points(Path(source).name, _text(source), sources.zone, names.labels)
    for source in sources.df_files:
        yield from df_points(Path(source).name, _text(source), sources.zone)


def _warn(text: str) -> None:
    click.echo(f"Warning: {printable(text)}", err=True)


def _checked(point: Point) -> Point:
    if not _YEARS_S[0] <= point.at < _YEARS_S[1]:
        raise DataError(
            f"{point.place}: its time, {point.at:.15g} s since 1970, is not between the years 2000"
            " and 2100; write a date as 2026-01-05T08:00:00Z"
        )
    return point


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise SidecarError(f"{file} can't be read: {error.strerror}") from error


def _text(file: str) -> str:
    content = _content(file)
    try:
        return content.decode("utf-16" if content.startswith(_UTF_16) else "utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{file}, line {line}: it is not text in UTF-8") from error


def _fetch(url: str, token_file: Path | None) -> tuple[str, bytes]:
    """Return the address without the query, and the answer."""
    # A password with a slash ends before the "@", so urlsplit takes it for a part of the host.
    if "@" in url.partition("?")[0]:
        raise SidecarError("a URL with a user or a password; a token comes from --token-file")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        # The exception may repeat a part of a password, which is taken for a port.
        raise SidecarError("--prometheus: not a URL: its host or port is not valid") from None
    address = f"{parts.scheme}://{parts.netloc}{parts.path}"
    headers = {"Accept": "application/json"}
    if token_file is not None:
        headers["Authorization"] = f"Bearer {read_token(token_file)}"
        if Address(parts.scheme, parts.hostname or "", 0).exposes:
            click.echo(f"Warning: the token is sent to {address} unencrypted: use https.", err=True)
    try:
        response = request_blocking(
            "GET",
            # A query of PromQL has braces and quotes, which a shell's user does not encode. If the
            # URL is encoded, its "+" is a space; otherwise it is one of the query, as in ".+".
            quote(url, safe="%:/?&=,@[]" + "+" * ("{" not in url)),
            headers=headers,
            deadline_s=DEADLINE_S,
            longest_answer=LONGEST_ANSWER,
        )
    except AnswerTooLongError as error:
        raise SidecarError(
            f"the answer of {address} is longer than {LONGEST_ANSWER:,} bytes: query fewer series,"
            " a longer step or a shorter time"
        ) from error
    except (OSError, HttpError, ValueError) as error:
        raise SidecarError(f"{address}: {failure_of(error, DEADLINE_S)}") from error
    if response.status != 200:
        start = printable(response.body[:200].decode(errors="replace"))
        raise SidecarError(f"{address} answered {response.status} {response.reason}: {start}")
    return address, response.body


def _write(out: Path, files: Mapping[str, bytes | bytearray], *, overwrite: bool) -> None:
    """Write each file beside its place, and then move all of them there."""
    out.mkdir(parents=True, exist_ok=True)
    there = [name for name in files if (out / name).exists()]
    if there and not overwrite:
        raise SidecarError(
            f"{out} has {_count(len(there), 'file')} of the same hours, such as {there[0]}: import"
            " all brokers and times by one command, or choose another --out. With --overwrite, all"
            " readings in these files are lost, also those of other brokers"
        )
    beside = {name: out / f"{name}.tmp" for name in files}
    try:
        for name, lines in files.items():
            with beside[name].open("wb") as target:
                target.write(gzip.compress(lines, 6, mtime=0))
                target.flush()
                os.fsync(target.fileno())
        for name, path in beside.items():
            path.replace(out / name)
    finally:
        for path in beside.values():
            path.unlink(missing_ok=True)


def _left_out(combined: Combined) -> Iterator[str]:
    for series, count in combined.unmapped.most_common(_MOST_SHOWN):
        yield (
            f"Left out, because no --match fits, or it is not total or available bytes: {series},"
            f" {_count(count, 'value')}"
        )
    if len(combined.unmapped) > _MOST_SHOWN:
        yield f"Left out too: {len(combined.unmapped) - _MOST_SHOWN:,} other series"
    for (broker, log_dir), count in sorted(combined.unpaired.items()):
        yield (
            f"Left out of broker {broker} {log_dir}: {_count(count, 'value')} without total or"
            " available bytes of the same time"
        )


def _summary(combined: Combined, files: int, out: Path) -> str:
    readings = combined.readings
    first, last = (
        datetime.fromtimestamp(combined.observations[at].observed_at, UTC).strftime(
            "%Y-%m-%d %H:%M:%S"
        )
        for at in (0, -1)
    )
    brokers = {broker for broker, _ in readings}
    return (
        f"{_count(readings.total(), 'reading')} of {_count(len(readings), 'volume')} of"
        f" {_count(len(brokers), 'broker')} from {first} to {last} UTC: {_count(files, 'file')}"
        f" in {out}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
