"""The wheel holds the package, the whole package and nothing but the package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

import alkstore_django

ROOT = Path(__file__).parents[1]


def test_the_installed_files_are_those_of_the_repository() -> None:
    try:
        installed = distribution("alkstore-django")
    except PackageNotFoundError:
        pytest.skip("alkstore-django is not installed")
    if "editable" in (installed.read_text("direct_url.json") or ""):
        pytest.skip("alkstore-django is installed editable")
    wheel = {
        str(file): file.read_binary()
        for file in installed.files or []
        if "__pycache__" not in file.parts and ".dist-info" not in file.parts[0]
    }
    source = {
        file.relative_to(ROOT).as_posix(): file.read_bytes()
        for file in (ROOT / "alkstore_django").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert sorted(wheel) == sorted(source)
    assert wheel == source
    assert "alkstore_django/py.typed" in wheel
    assert installed.version == alkstore_django.__version__
