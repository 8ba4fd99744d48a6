"""The appenders of docs/request-log.md, with the log4j of Kafka 4 and of Kafka 3."""

import asyncio
import os
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from kafka_lab.jars import DEFAULT_VERSION, jars, java
from sidecar.formats.cache_folder import cache_folder
from sidecar.requestlog.examined import examine
from tests.docs.markdown import page
from tests.sidecar.requestlog.lines import BY_HAND
from tests.support.command import COMMAND_S

_SMALL: Final = {"256MB": "200KB", "8GB": "600KB", "MaxBackupIndex=32": "MaxBackupIndex=3"}
_MOST_BYTES: Final = 850_000
"""600 KB of old files and the current one, whose last line may be longer."""
_LOGS: Final = """\
public class Logs {
    public static void main(String[] args) {
        var logger = org.slf4j.LoggerFactory.getLogger("kafka.request.logger");
        for (int line = 0; line < 4000; line++) {
            logger.debug(args[0].replace("10342", String.valueOf(10000 + line)));
        }
    }
}
"""


@pytest.mark.parametrize(
    "version", [DEFAULT_VERSION, pytest.param("3.9.1", marks=pytest.mark.versions)]
)
async def test_appenders(tmp_path: Path, version: str) -> None:
    """The lines have milliseconds in UTC, whatever the zone is, and old files are deleted."""
    folder, configuration, program = tmp_path / "logs", tmp_path / "log4j.properties", "Logs.java"
    of_kafka_4, of_kafka_3 = re.findall(
        r"^```properties\n(.*?)^```", page("request-log"), re.DOTALL | re.MULTILINE
    )
    text = of_kafka_3 if version.startswith("3.") else of_kafka_4
    text = text.replace("/var/log/kafka-requests", str(folder))
    for size, small in _SMALL.items():
        text = text.replace(size, small)
    configuration.write_text(text)
    (tmp_path / program).write_text(_LOGS)
    message = BY_HAND[0].partition(b"DEBUG ")[2].rpartition(b" (")[0].decode()
    libraries = await jars(version, cache_folder(os.environ))
    await asyncio.to_thread(
        subprocess.run,
        [
            *(java(os.environ), "-Duser.timezone=Europe/Berlin", "-cp", f"{libraries}/*"),
            f"-Dlog4j2.configurationFile={configuration}",
            f"-Dlog4j.configuration={configuration.as_uri()}",
            *(program, message),
        ],
        cwd=tmp_path,
        check=True,
        timeout=COMMAND_S,
    )
    files = [file.read_bytes() for file in folder.iterdir()]
    assert 1 < len(files) <= 4
    assert sum(map(len, files)) <= _MOST_BYTES
    for lines in map(bytes.splitlines, files):
        found = examine(lines)
        assert (len(lines), 0, False) == (found.read, found.unread, found.in_whole_seconds)
        assert found.last is not None
        assert abs(datetime.now(UTC) - found.last) < timedelta(minutes=5)
