"""Tables for the fencing tokens of locks and for the lengths of rate limits' windows."""

from __future__ import annotations

from django.db import migrations, models

import alkstore_django.models.fields


class Migration(migrations.Migration):
    dependencies = [("alkstore_django", "0004_schedules")]

    operations = [
        migrations.AlterModelOptions(
            "lock",
            {
                "verbose_name": "lock",
                "verbose_name_plural": "locks",
                "permissions": [("release_lock", "Can release locks by force")],
            },
        ),
        migrations.CreateModel(
            name="LockToken",
            fields=[
                (
                    "name",
                    alkstore_django.models.fields.NameField(
                        max_length=191, primary_key=True, serialize=False
                    ),
                ),
                ("token", models.BigIntegerField()),
            ],
            options={"db_table": "alkstore_lock_tokens"},
        ),
        migrations.CreateModel(
            name="RatePeriod",
            fields=[
                (
                    "name",
                    alkstore_django.models.fields.NameField(
                        max_length=191, primary_key=True, serialize=False
                    ),
                ),
                ("seconds", models.BigIntegerField()),
            ],
            options={"db_table": "alkstore_rate_periods"},
        ),
    ]
