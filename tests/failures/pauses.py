"""A worker that has stopped at a moment: by its own doing, or because the network holds what it sent."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

from tests.failures.homes import Home
from tests.failures.moments import ARMED, BEFORE_ACK, BEFORE_CLAIM, GO, IN_ACK, IN_CLAIM
from tests.processes import Process, Workers
from tests.proxy import Proxy


class Holding(Proxy):
    """Holds what is sent first once the file ``armed`` is there (``before``), or the answer to it."""

    def __init__(self, host: str, port: int, armed: Path, *, before: bool) -> None:
        super().__init__(host, port)
        self.holds = threading.Event()
        self._armed = armed
        self._before = before
        self._link: object = None
        self._go = threading.Event()
        self._passes = True

    def question(self, link: object, data: bytes) -> bool:
        if self._link is None and self._armed.exists():
            self._link = link
            return self._hold() if self._before else True
        return True

    def answer(self, link: object, data: bytes) -> bool:
        return self._hold() if link is self._link and not self._before else True

    def _hold(self) -> bool:
        self.holds.set()
        self._go.wait()
        return self._passes

    def release(self) -> None:
        self._go.set()

    def drop(self) -> None:
        """What is held is lost, and so is its connection."""
        self._passes = False
        self._go.set()

    def close(self) -> None:
        self.drop()
        super().close()


class Pause:
    """Where a victim stops. Started by ``victim``, it is there when ``reached``."""

    def __init__(self, home: Home, moment: str, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._proxy: Holding | None = None
        changes: dict[str, str] = {}
        if home.server is not None and moment in (BEFORE_CLAIM, IN_CLAIM, BEFORE_ACK, IN_ACK):
            before = moment in (BEFORE_CLAIM, BEFORE_ACK)
            self._proxy = Holding(home.server.host, home.server.port, folder / ARMED, before=before)
            self._proxy.open()
            changes["PORT"] = str(self._proxy.port)
        self._environment = {
            **home.reached(settings="tests.failures.victim", **changes),
            "ALKSTORE_MOMENT": moment,
            "ALKSTORE_PAUSE": str(folder),
            "ALKSTORE_PAUSE_IN_NETWORK": str(int(self._proxy is not None)),
        }

    def victim(self, workers: Workers, *arguments: object) -> Process:
        """Its only connection is the clerk's: what is held is a packet of that one."""
        return workers.start("--no-scheduler", *arguments, **self._environment)

    @property
    def reached(self) -> bool:
        return self._proxy.holds.is_set() if self._proxy else (self._folder / ARMED).exists()

    def end(self) -> None:
        """Let the victim go on."""
        (self._folder / GO).touch()
        if self._proxy is not None:
            self._proxy.release()

    def forget(self) -> None:
        """The victim is dead: nothing that it sent and that is held goes on."""
        if self._proxy is not None:
            self._proxy.drop()

    def __enter__(self) -> Pause:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        (self._folder / GO).touch()
        if self._proxy is not None:
            self._proxy.close()
