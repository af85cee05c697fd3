"""What a program sees of itself, as JSON. It ends with the number that it is given, or waits."""

from __future__ import annotations

import json
import os
import signal
import sys

print(
    json.dumps(
        {
            "arguments": sys.argv[1:],
            "name": __name__,
            "pid": os.getpid(),
            "variable": os.environ.get("ALKSTORE_VARIABLE"),
            "ours": [name for name in sys.modules if name.partition(".")[0] == "alkstore_django"],
            "settings": "tests.settings" in sys.modules,
            "interrupts": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
            "files": sorted(map(int, os.listdir("/proc/self/fd")))[:3],
        }
    )
)
if sys.argv[1] == "wait":
    signal.pause()
sys.exit(int(sys.argv[1]))
