"""``python -m snapshot.cli`` is ``goldens``."""

from snapshot.cli import main

main()
