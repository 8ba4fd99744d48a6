"""One Spark for all of this folder's tests."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from usage_pipeline.runtime.session import session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives tests on Spark more time: the first starts it, and each plans and compiles."""
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session has two cores and one partition after a shuffle: small frames are quick.

    Its JVM optimises no code, which takes half of a brief run's time; queries are compiled to
    bytecode as in a long one.
    """
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.sql.codegen.wholeStage": "true",
    }
    made = session("local[2]", settings, brief=True)
    yield made
    made.stop()
