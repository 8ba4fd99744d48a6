"""Says what it is told to: ``python -m tests.usage_pipeline.cli.says parse replay``."""

import sys

if __name__ == "__main__":
    print(*sys.argv[1:], sep="\n", flush=True)
