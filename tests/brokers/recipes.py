"""The recipes, as they stand in the documentation."""

from __future__ import annotations

from pathlib import Path

from tests.documentation.markdown import ROOT, Page

OURS = {
    'exchange="shop"': 'exchange="alkstore_tests"',
    '"shop.orders"': '"alkstore_tests.orders"',
    '"shop:orders"': '"alkstore_tests:orders"',
}
"""What the tests delete on a broker must be nobody else's."""


def recipe(*words: str) -> str:
    """The code of the one block that has all the words, but for the names on the broker."""
    blocks = Page(ROOT / "docs" / "brokers.md").blocks
    found = [block.text for block in blocks if all(word in block.text for word in words)]
    (code,) = found
    for name, own in OURS.items():
        code = code.replace(name, own)
    return code


def install(directory: Path, code: str) -> None:
    """As the module ``recipe``, for whoever has the directory in its path."""
    (directory / "recipe.py").write_text(code)
