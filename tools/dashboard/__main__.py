"""Writes the dashboard's JSON where it is committed."""

from tools.dashboard.document import FILE, document

if __name__ == "__main__":
    FILE.write_text(document(), encoding="utf-8")
