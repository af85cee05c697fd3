"""A table for what tasks tell of their own runs."""

from __future__ import annotations

from django.db import migrations, models

import alkstore_django.models.fields


class Migration(migrations.Migration):
    dependencies = [("alkstore_django", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Metadata",
            fields=[
                ("job_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("value", alkstore_django.models.fields.LenientTextField()),
            ],
            options={"db_table": "alkstore_metadata"},
        ),
    ]
