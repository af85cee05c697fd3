"""The e-mail backend of the shop: Django's file backend behind a post office with two bad habits."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from django.core.mail import EmailMessage
from django.core.mail.backends.filebased import EmailBackend as FileBackend
from django.utils import timezone

NO_SUCH_DOMAIN = ".invalid"
"""Addresses that end so are always refused: nobody can ever have that domain (RFC 2606)."""

GREYLISTING = "@greylist.example"
"""Addresses that end so are refused the first time, and taken from then on: "greylisting" (RFC 6647)."""


class Refused(Exception):
    """What the receiving mail server answered: an SMTP code with its text."""


class EmailBackend(FileBackend):
    """Writes each mail into a file of its own."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Raises ``Refused``; then none of the messages was sent."""
        for message in email_messages:
            for address in message.recipients():
                self.knock(address)
        return super().send_messages(email_messages) or 0

    def knock(self, address: str) -> None:
        domain = address.rpartition("@")[2]
        if domain.endswith(NO_SUCH_DOMAIN):
            raise Refused(f"550 5.1.2 {domain}: there is no such domain")
        if address.endswith(GREYLISTING) and not self.is_known(address):
            raise Refused("451 4.7.1 greylisted: we do not know you yet, try again later")

    def is_known(self, address: str) -> bool:
        """Whether the other side has heard of the address before; now it has."""
        known = Path(self.file_path).with_name("greylist")
        known.mkdir(exist_ok=True)
        try:
            (known / sha256(address.encode()).hexdigest()).touch(exist_ok=False)
        except FileExistsError:
            return True
        return False

    def open(self) -> bool:
        # Django's own name has the second and id(self) in it, which two mails may share.
        if self.stream is not None:
            return False
        name = f"{timezone.now():%Y%m%d-%H%M%S}-{uuid4().hex[:8]}.log"
        self.stream = (Path(self.file_path) / name).open("ab")
        return True
