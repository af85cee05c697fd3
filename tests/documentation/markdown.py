"""The documentation as pages of Markdown: what is prose, what is code, and what the tests do with each.

A comment that readers do not see, before a block of code, says what it is: ``<!-- file: shop/tasks.py -->``
(a module), ``<!-- settings -->`` (settings of the project), ``<!-- output: alkstatus -->`` (what a command
prints), ``<!-- not run: why -->``. Without one, a block of Python is run. ``<!-- test ... -->`` holds code
of the test's own. A line ``call()  # -> value`` is an answer, ``call()  # -> ValueError: text`` an error.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LANGUAGES = ("python", "console", "text", "json", "ini", "yaml", "dockerfile")
MARKS = ("file", "settings", "output", "not run", "test")

_COMMENT = re.compile(r"<!-- (?P<mark>[a-z ]+?)(?:: (?P<value>.*?))? -->")
_ANSWER = re.compile(r"^(?P<indent> *)(?P<call>\S.*?)  # -> (?P<value>.+)$", re.MULTILINE)
_ERROR = re.compile(r"[A-Z]\w+: ")


def expect(value: object, answer: str) -> None:
    """A value is the one that the page shows."""
    assert value == literal_eval(answer), f"{value!r} is not {answer}"


def expect_error(call: Callable[[], object], answer: str) -> None:
    """A call raises the error that the page shows."""
    try:
        value = call()
    except Exception as error:
        assert f"{type(error).__name__}: {error}" == answer, f"{error!r} is not {answer}"
    else:
        raise AssertionError(f"{value!r}, and no {answer}")


def _check(line: re.Match[str]) -> str:
    indent, call, value = line.groups()
    if _ERROR.match(value):
        return f"{indent}expect_error(lambda: ({call}), {value!r})"
    return f"{indent}expect(({call}), {value!r})"


@dataclass(frozen=True)
class Block:
    """A fenced block, or a hidden one; ``line`` is that of its first line of code."""

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""
    value: str = ""

    @property
    def where(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def problem(self) -> str:
        """Why the tests would not know what to do with it; empty if they do."""
        if self.language not in LANGUAGES:
            return f"the language {self.language!r} is none of {', '.join(LANGUAGES)}"
        if self.mark and self.mark not in MARKS:
            return f"the mark {self.mark!r} is none of {', '.join(MARKS)}"
        if self.mark in ("file", "output", "not run") and not self.value:
            return f"the mark {self.mark!r} says no more"
        if self.mark not in ("", "output") and self.language != "python":
            return f"{self.mark!r} is for Python"
        return ""

    @property
    def code(self) -> str:
        """Python to run, its lines numbered as in the page, its answers turned into checks."""
        return "\n" * (self.line - 1) + _ANSWER.sub(_check, self.text)

    @property
    def commands(self) -> list[str]:
        """What stands after ``manage.py`` in each line of it."""
        text = re.sub(r'[\[\]",]+', " ", self.text) if self.language == "dockerfile" else self.text
        return re.findall(r"^.*\bmanage\.py +(.+)$", text, re.MULTILINE)


class Page:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text()
        self.blocks = list(_blocks(path, self.text))

    def __str__(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def prose(self) -> str:
        """The page without its blocks and comments, its lines kept."""
        kept, fenced, hidden = [], False, False
        for line in self.text.splitlines():
            hidden = hidden or line.startswith("<!--")
            is_fence = line.startswith("```")
            kept.append("" if fenced or hidden or is_fence else line)
            fenced ^= is_fence
            hidden = hidden and not line.endswith("-->")
        return "\n".join(kept)

    @property
    def anchors(self) -> set[str]:
        """What links may point to, as GitHub makes it of headings."""
        headings = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    @property
    def links(self) -> list[str]:
        return re.findall(r"\]\(([^)\s]+)\)", self.prose)


def pages() -> list[Page]:
    """The README first."""
    return [Page(path) for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))]


def _blocks(path: Path, text: str) -> Iterator[Block]:
    """Raises ``ValueError`` for what would hide a block from the tests."""
    lines = text.splitlines()
    mark, value, number = "", "", 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if line.lstrip().startswith(("```", "~~~")):
            end = next((i for i in range(number, len(lines)) if lines[i] == "```"), None)
            if end is None or not line.startswith("```"):
                raise ValueError(f"{path.name}:{number}: a fence is indented, of ~~~, or never closed")
            yield Block(path, number + 1, line[3:], "\n".join(lines[number:end]), mark, value)
            mark, value, number = "", "", end + 1
        elif line == "<!-- test":
            end = lines.index("-->", number)
            yield Block(path, number + 1, "python", "\n".join(lines[number:end]), "test")
            number = end + 1
        elif line.lstrip().startswith("<!--"):
            found = _COMMENT.fullmatch(line)
            if found is None or mark:
                raise ValueError(f"{path.name}:{number}: a comment that says nothing to the tests")
            mark, value = found["mark"], found["value"] or ""
        elif line and mark:
            raise ValueError(f"{path.name}:{number}: the mark {mark!r} belongs to no block")
    if mark:
        raise ValueError(f"{path.name}: the mark {mark!r} belongs to no block")
