"""Other hosts: network namespaces with one cable each to this one, which can be pulled out."""

from __future__ import annotations

import os
import subprocess
from types import TracebackType


class Host:
    """``address`` is this machine as seen from there; ``within`` runs a command there."""

    def __init__(self, number: int) -> None:
        self._name = f"alkstore-{os.getpid()}-{number}"
        self._cable = f"alk{os.getpid() % 10**7}-{number}"
        net = f"10.{200 + os.getpid() // 256 % 50}.{os.getpid() % 256}"
        self.address, self._there = f"{net}.{4 * number + 1}", f"{net}.{4 * number + 2}"
        self.within = ("ip", "netns", "exec", self._name)

    def __enter__(self) -> Host:
        far = f"{self._cable}x"
        try:
            ip("netns", "add", self._name)
            ip("link", "add", self._cable, "type", "veth", "peer", "name", far, "netns", self._name)
            ip("address", "add", f"{self.address}/30", "dev", self._cable)
            ip("-n", self._name, "address", "add", f"{self._there}/30", "dev", far)
            ip("-n", self._name, "link", "set", "lo", "up")
            ip("-n", self._name, "link", "set", far, "up")
            self.plug_in()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def pull_out(self) -> None:
        """Nothing passes any more, in neither direction, and nobody is told."""
        ip("link", "set", self._cable, "down")

    def plug_in(self) -> None:
        ip("link", "set", self._cable, "up")

    def _remove(self) -> None:
        for thing in (["link", "delete", self._cable], ["netns", "delete", self._name]):
            subprocess.run(["ip", *thing], stderr=subprocess.DEVNULL)


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stdout}"
