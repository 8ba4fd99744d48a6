#!/usr/bin/env python3
"""What spark-submit runs: the command line, ``pipeline run --request-logs ... --out ...``.

Example: ``spark-submit --master spark://host:7077 submit.py pipeline usage --out tables``.
"""

from usage_pipeline.cli import main

if __name__ == "__main__":
    main()
