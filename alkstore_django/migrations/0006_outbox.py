"""Tables for the lines in which events of a key stand, and for messages that were taken in."""

from __future__ import annotations

from django.db import migrations, models

import alkstore_django.models.fields
import alkstore_django.sql.functions


class Migration(migrations.Migration):
    dependencies = [
        ("alkstore_django", "0005_locks_and_rate_limits"),
    ]

    operations = [
        migrations.CreateModel(
            name="InboxMessage",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "source", "message_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("source", alkstore_django.models.fields.NameField(max_length=191)),
                ("message_id", alkstore_django.models.fields.NameField(max_length=191)),
                (
                    "received_at",
                    models.BigIntegerField(
                        db_default=alkstore_django.sql.functions.EpochNow(), db_index=True
                    ),
                ),
            ],
            options={
                "db_table": "alkstore_inbox",
            },
        ),
        migrations.CreateModel(
            name="OutboxKey",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "queue", "event_key", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("queue", alkstore_django.models.fields.NameField(max_length=191)),
                ("event_key", alkstore_django.models.fields.NameField(max_length=191)),
                ("sequence", models.BigIntegerField()),
                ("waiting", models.BigIntegerField()),
                ("touched_at", models.BigIntegerField()),
            ],
            options={
                "db_table": "alkstore_outbox_keys",
            },
        ),
        migrations.CreateModel(
            name="OutboxEvent",
            fields=[
                ("job_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("queue", alkstore_django.models.fields.NameField(max_length=191)),
                ("event_key", alkstore_django.models.fields.NameField(max_length=191)),
                ("sequence", models.BigIntegerField(null=True)),
            ],
            options={
                "db_table": "alkstore_outbox_events",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("queue", "event_key", "sequence"), name="alkstore_outbox_line"
                    )
                ],
            },
        ),
    ]
