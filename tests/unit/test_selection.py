"""What ``--queue`` and ``--exclude-queue`` mean."""

from __future__ import annotations

import pytest

from alkstore_django.selection import Selection

PRESENT = ["mail", "mail-bulk", "default", "_outbox:orders", "a,b", "odd*", "oddity"]


@pytest.mark.parametrize(
    ("wanted", "excluded", "found"),
    [
        (["urgent"], [], ["urgent"]),
        (["urgent", "mail"], [], ["urgent", "mail"]),
        (["urgent,mail", "default"], [], ["urgent", "mail", "default"]),
        (["mail", "mail"], [], ["mail"]),
        (["*"], [], ["a,b", "default", "mail", "mail-bulk", "odd*", "oddity"]),
        (["mail*"], [], ["mail", "mail-bulk"]),
        (["mail-*,default"], [], ["mail-bulk", "default"]),
        (["oddity", "*"], [], ["oddity", "a,b", "default", "mail", "mail-bulk", "odd*"]),
        (["o*", "*", "oddity"], [], ["odd*", "oddity", "a,b", "default", "mail", "mail-bulk"]),
        (["none*"], [], []),
        (["_outbox:*"], [], ["_outbox:orders"]),
        (["_outbox:orders"], [], ["_outbox:orders"]),
        (["odd\\*"], [], ["odd*"]),
        (["a\\,b"], [], ["a,b"]),
        (["odd\\**"], [], ["odd*"]),
        (["back\\slash"], [], ["back\\slash"]),
        (["*"], ["mail*", "odd\\*,default"], ["a,b", "oddity"]),
        (["mail", "default"], ["default"], ["mail"]),
        (["mail"], ["*"], []),
    ],
)
def test_which_queues(wanted: list[str], excluded: list[str], found: list[str]) -> None:
    assert Selection(wanted, excluded).among(reversed(PRESENT)) == found


@pytest.mark.parametrize("text", ["*a", "a*b", "**", "*,a*b", "a*,b*c"])
def test_a_star_stands_at_the_end(text: str) -> None:
    for wanted, excluded in (([text], []), (["*"], [text])):
        with pytest.raises(ValueError, match=r"--queue takes names, '\*' and 'prefix\*', not"):
            Selection(wanted, excluded)


@pytest.mark.parametrize("text", ["", ",", "a,", " a", "a ,b", "a\x00*", "x" * 192, f"{'x' * 191}*"])
def test_what_can_be_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="queue name"):
        Selection([text])


def test_what_is_named_in_full() -> None:
    selection = Selection(["mail", "*", "a\\,b,gone"], ["gone"])
    assert selection.exact == ["mail", "a,b"]
    assert selection.is_open
    assert not Selection(["mail"], ["*"]).is_open
