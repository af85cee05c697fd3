"""A system check for outboxes: whether an event can be a part of the transaction that it speaks of."""

from __future__ import annotations

from importlib.util import find_spec

import django
from django.apps import apps
from django.core.checks import CheckMessage, Warning, register
from django.db import router
from django.utils.module_loading import autodiscover_modules


@register("alkstore")
def check_outboxes(app_configs: object = None, **kwargs: object) -> list[CheckMessage]:
    """W008: an outbox in another database than the models of the app that declares it."""
    if django.VERSION < (6, 0) and find_spec("django_tasks") is None:
        return []  # E003 speaks of it
    from . import outbox

    autodiscover_modules("outbox")
    found: list[CheckMessage] = []
    for declared in outbox.declared():
        app = apps.get_containing_app_config(declared.func.__module__)
        models = app.get_models() if app is not None else ()
        homes = {router.db_for_write(model) for model in models if model._meta.managed}
        if app is not None and homes and declared.alias not in homes:
            home = sorted(homes)[0]
            found.append(
                Warning(
                    f"The outbox {declared.name!r} is in database {declared.alias!r}, the models "
                    f"of {app.label!r} in {home!r}: an event is no part of a transaction there.",
                    hint=f"Declare it with using={home!r}, and run manage.py alkrelay --database {home}; or "
                    f"take enqueue_on_commit(..., using={home!r}), which may lose an event.",
                    obj=declared.module_path,
                    id="alkstore_django.W008",
                )
            )
    return found
