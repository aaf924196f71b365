"""The main job, on a real model: record, verify, and see the reference itself move.

make demo
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STORE = HERE.parents[1] / "build" / "demo"


def main() -> None:
    shutil.rmtree(STORE, ignore_errors=True)
    say("1. Record reference outputs: base and two adapters, batch sizes 1 and 3.")
    goldens("record")
    say("2. Run the same again at batch size 3: nothing moves.")
    goldens("verify", "--batch-size", "3")
    (alone,) = (p.name for p in (STORE / "demo").iterdir() if p.name.endswith("-bs1"))
    say(
        "3. Hold batch size 3 to the goldens of batch size 1: same code, same machine, other words."
    )
    goldens("verify", "--batch-size", "3", "--against", alone)
    say(f"The goldens are readable files: {os.path.relpath(STORE)}")


def say(line: str) -> None:
    print(f"\n== {line}", flush=True)


def goldens(*arguments: str) -> None:
    print(f"$ goldens {' '.join(arguments)}", flush=True)
    # A demo's own store may be written everywhere, CI included.
    environment = {**os.environ, "CI": ""}
    command = [sys.executable, "-m", "snapshot.cli", *arguments]
    code = subprocess.run(command, cwd=HERE, env=environment, check=False).returncode
    if code:
        sys.exit(f"goldens {arguments[0]} ended with exit code {code}")


if __name__ == "__main__":
    main()
