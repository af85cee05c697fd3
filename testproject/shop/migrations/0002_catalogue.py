"""What is on the shelf when the shop opens."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import migrations

SHELF = [
    ("Assam", "6.40", 40),
    ("Darjeeling", "9.80", 30),
    ("Earl Grey", "5.90", 60),
    ("Gyokuro", "24.50", 3),
    ("Oolong", "12.20", 25),
    ("Sencha", "8.60", 50),
]


def fill(apps: Any, schema_editor: Any) -> None:
    product = apps.get_model("shop", "Product")
    for name, price, stock in SHELF:
        product.objects.using(schema_editor.connection.alias).create(
            name=name, price=Decimal(price), stock=stock
        )


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
