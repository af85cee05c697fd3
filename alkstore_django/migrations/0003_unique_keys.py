"""A table for the keys of unique tasks."""

from __future__ import annotations

from django.db import migrations, models

import alkstore_django.models.fields


class Migration(migrations.Migration):
    dependencies = [("alkstore_django", "0002_metadata")]

    operations = [
        migrations.CreateModel(
            name="UniqueKey",
            fields=[
                (
                    "digest",
                    alkstore_django.models.fields.NameField(max_length=64, primary_key=True, serialize=False),
                ),
                ("job_id", models.BigIntegerField()),
                ("stamp", models.BigIntegerField()),
                ("holds_until", models.BigIntegerField(null=True)),
            ],
            options={"db_table": "alkstore_unique_keys"},
        ),
    ]
