"""A form that comes back, on top of what others have changed since it was shown.

Each field is sent with the value that it was shown with, in a hidden field (``initial-NAME``, as Django has
them): so what somebody has typed can be told from what somebody else has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.translation import gettext

from . import display

Fields = Mapping[str, forms.Field]


def rebased(
    fields: Fields, sent: Any, stored: Mapping[str, Any], units: Collection[Collection[str]]
) -> tuple[QueryDict, set[str]]:
    """What was sent, with the stored value where a field was left as it was shown; and the fields that others
    have changed beside what was typed into them, or into another of their unit: fields that only make sense
    together.

    The hidden fields then say what is stored: who sends the form again has seen it. Where none was sent, by
    a script, a field was shown as it is stored.
    """
    data = sent.copy()
    typed, changed = set(), set()
    for name, field in fields.items():
        stored_value = _value(field, stored.get(name))
        sent_value = _value(field, field.widget.value_from_datadict(sent, {}, name))
        shown_value = _value(field, sent[f"initial-{name}"]) if f"initial-{name}" in sent else stored_value
        text = _text(stored.get(name))
        data[f"initial-{name}"] = text
        if sent_value not in (shown_value, stored_value):
            typed.add(name)
        else:
            data[name] = text
            if sent_value != shown_value:
                continue  # both have changed it, to the same
        if stored_value != shown_value:
            changed.add(name)
    return data, {
        name
        for name in changed
        if any(name in unit and not typed.isdisjoint(unit) for unit in [[name], *units])
    }


def told(field: forms.Field, stored: Any) -> str:
    """What is said beside a field that others have changed to that."""
    value = dict(getattr(field, "choices", ())).get(stored, stored)
    if isinstance(value, bool):
        value = gettext("yes") if value else gettext("no")
    text = gettext(
        "Somebody has changed this since the form was shown, to: %(value)s. Save again if what stands here "
        "is right."
    )
    return text % {"value": display.line(_text(value)) or gettext("nothing")}


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _value(field: forms.Field, value: Any) -> Any:
    """As the field understands it; browsers send other line breaks than they were given."""
    try:
        return field.to_python("\n".join(value.splitlines()) if isinstance(value, str) else value)
    except ValidationError:
        return value
