from __future__ import annotations

from dataclasses import asdict

import pytest
from django.conf import settings as project
from django.test import override_settings

from alkstore_django.conf import KEYS, Defaults, settings


def test_without_the_setting_the_defaults_hold() -> None:
    assert not hasattr(project, "ALKSTORE")
    assert {key: getattr(settings, key) for key in KEYS} == asdict(Defaults())
    assert settings.VISIBILITY_TIMEOUT == 60
    assert settings.RESULT_TTL == 7 * 24 * 3600


def test_it_is_read_each_time() -> None:
    with override_settings(ALKSTORE={"VISIBILITY_TIMEOUT": 5}):
        assert settings.VISIBILITY_TIMEOUT == 5
        assert settings.RESULT_TTL == Defaults.RESULT_TTL
    assert settings.VISIBILITY_TIMEOUT == Defaults.VISIBILITY_TIMEOUT


def test_none_is_a_value() -> None:
    with override_settings(ALKSTORE={"RESULT_TTL": None}):
        assert settings.RESULT_TTL is None


def test_a_key_that_does_not_exist() -> None:
    with pytest.raises(AttributeError, match="ALKSTORE has no key 'RESULT_TLL'; it knows IMPORTS"):
        _ = settings.RESULT_TLL
