"""Run one measurement in a process of its own: for a peak of its own, or for one thread."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


def run_child(
    module: str, request: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> Any:
    """Run ``python -m module`` with a request as JSON and return the JSON it prints last.

    Raises:
        CalledProcessError: The process failed; what it said stands on standard error.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, json.dumps(request)],
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
