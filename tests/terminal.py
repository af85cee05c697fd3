"""Run a Python program in a terminal of its own: USR1 types a Ctrl-C there, USR2 takes the terminal away."""

from __future__ import annotations

import os
import pty
import signal
import sys


def main() -> int:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])  # noqa: S606
    signal.signal(signal.SIGUSR1, lambda *_: os.write(terminal, b"\x03"))
    signal.signal(signal.SIGUSR2, lambda *_: os.close(terminal))
    try:
        while shown := os.read(terminal, 65536):
            os.write(1, shown)
    except OSError:  # nobody writes there any more, or it is gone
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
