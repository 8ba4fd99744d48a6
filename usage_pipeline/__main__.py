"""``python -m usage_pipeline pipeline ...``: the pipeline's commands where Spark runs."""

from usage_pipeline.cli import main

if __name__ == "__main__":
    main()
