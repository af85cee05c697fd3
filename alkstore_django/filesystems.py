"""On what kind of file system a file is: locks, and so SQLite, cannot be trusted over a network."""

from __future__ import annotations

import re
from pathlib import Path

NETWORK = {
    *("9p", "drvfs", "fuse.vmhgfs-fuse", "prl_fs", "vboxsf"),  # of the machine's own host
    *("afs", "cifs", "coda", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"),
    *("beegfs", "ceph", "fuse.ceph", "fuse.glusterfs", "glusterfs", "gpfs", "lustre"),
    *("fuse.gcsfuse", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
}
"""Types of file systems that several machines, or a machine and its host, may write to."""

MOUNTS = Path("/proc/self/mountinfo")


def network_type(path: str | Path, mounts: Path = MOUNTS) -> str | None:
    """The type of the file system of ``path``, if it is one of a network; ``None`` where nobody says."""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:  # not Linux
        return None
    file = Path(path).resolve()
    found = ""
    depth = -1
    for line in lines:
        before, _, after = line.partition(" - ")
        if not after:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split(" ")[4]))
        # Of two at the same place the later one lies on top.
        if file.is_relative_to(point) and len(point.parts) >= depth:
            found, depth = after.split(" ")[0], len(point.parts)
    return found if found in NETWORK else None
