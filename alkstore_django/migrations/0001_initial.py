"""honker's tables, created or adopted by one operation, and our own tables beside them."""

from __future__ import annotations

from django.db import migrations, models

import alkstore_django.models.fields
import alkstore_django.sql.functions
from alkstore_django.models.mirror import MirrorTables


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        MirrorTables(
            models=[
                migrations.CreateModel(
                    name="DeadJob",
                    fields=[
                        ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                        ("queue", alkstore_django.models.fields.NameField(max_length=191)),
                        ("payload", alkstore_django.models.fields.LenientTextField()),
                        ("priority", models.BigIntegerField(db_default=0)),
                        ("run_at", models.BigIntegerField(db_default=0)),
                        ("attempts", models.BigIntegerField(db_default=0)),
                        ("max_attempts", models.BigIntegerField(db_default=0)),
                        ("last_error", alkstore_django.models.fields.LenientTextField(null=True)),
                        (
                            "created_at",
                            models.BigIntegerField(db_default=alkstore_django.sql.functions.EpochNow()),
                        ),
                        (
                            "died_at",
                            models.BigIntegerField(db_default=alkstore_django.sql.functions.EpochNow()),
                        ),
                    ],
                    options={
                        "verbose_name": "dead letter",
                        "verbose_name_plural": "dead letters",
                        "db_table": "_honker_dead",
                        "permissions": [("requeue_deadjob", "Can requeue dead letters")],
                    },
                ),
                migrations.CreateModel(
                    name="Job",
                    fields=[
                        ("id", models.BigAutoField(primary_key=True, serialize=False)),
                        ("queue", alkstore_django.models.fields.NameField(max_length=191)),
                        ("payload", alkstore_django.models.fields.LenientTextField()),
                        (
                            "state",
                            alkstore_django.models.fields.NameField(db_default="pending", max_length=16),
                        ),
                        ("priority", models.BigIntegerField(db_default=0)),
                        (
                            "run_at",
                            models.BigIntegerField(db_default=alkstore_django.sql.functions.EpochNow()),
                        ),
                        ("worker_id", alkstore_django.models.fields.NameField(max_length=191, null=True)),
                        ("claim_expires_at", models.BigIntegerField(null=True)),
                        ("attempts", models.BigIntegerField(db_default=0)),
                        ("max_attempts", models.BigIntegerField(db_default=3)),
                        (
                            "created_at",
                            models.BigIntegerField(db_default=alkstore_django.sql.functions.EpochNow()),
                        ),
                        ("expires_at", models.BigIntegerField(null=True)),
                        ("claimed_at", models.BigIntegerField(null=True)),
                    ],
                    options={
                        "db_table": "_honker_live",
                    },
                ),
                migrations.CreateModel(
                    name="Lock",
                    fields=[
                        (
                            "name",
                            alkstore_django.models.fields.NameField(
                                max_length=191, primary_key=True, serialize=False
                            ),
                        ),
                        ("owner", alkstore_django.models.fields.NameField(max_length=191)),
                        ("expires_at", models.BigIntegerField()),
                    ],
                    options={
                        "verbose_name": "lock",
                        "verbose_name_plural": "locks",
                        "db_table": "_honker_locks",
                    },
                ),
                migrations.CreateModel(
                    name="Notification",
                    fields=[
                        ("id", models.BigAutoField(primary_key=True, serialize=False)),
                        ("channel", alkstore_django.models.fields.NameField(max_length=191)),
                        ("payload", alkstore_django.models.fields.LenientTextField()),
                        (
                            "created_at",
                            models.BigIntegerField(db_default=alkstore_django.sql.functions.EpochNow()),
                        ),
                    ],
                    options={
                        "db_table": "_honker_notifications",
                    },
                ),
                migrations.CreateModel(
                    name="RateLimit",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "name",
                                "window_start",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("name", alkstore_django.models.fields.NameField(max_length=191)),
                        ("window_start", models.BigIntegerField()),
                        ("count", models.BigIntegerField(db_default=0)),
                    ],
                    options={
                        "db_table": "_honker_rate_limits",
                    },
                ),
                migrations.CreateModel(
                    name="Result",
                    fields=[
                        ("job_id", models.BigIntegerField(primary_key=True, serialize=False)),
                        ("value", alkstore_django.models.fields.LenientTextField(null=True)),
                        (
                            "created_at",
                            models.BigIntegerField(db_default=alkstore_django.sql.functions.EpochNow()),
                        ),
                        ("expires_at", models.BigIntegerField(null=True)),
                    ],
                    options={
                        "db_table": "_honker_results",
                    },
                ),
                migrations.CreateModel(
                    name="ScheduledTask",
                    fields=[
                        (
                            "name",
                            alkstore_django.models.fields.NameField(
                                max_length=191, primary_key=True, serialize=False
                            ),
                        ),
                        ("queue", alkstore_django.models.fields.NameField(max_length=191)),
                        ("cron_expr", alkstore_django.models.fields.LenientTextField()),
                        ("payload", alkstore_django.models.fields.LenientTextField()),
                        ("priority", models.BigIntegerField(db_default=0)),
                        ("expires_s", models.BigIntegerField(null=True)),
                        ("next_fire_at", models.BigIntegerField()),
                        ("enabled", models.BigIntegerField(db_default=1)),
                        ("max_attempts", models.BigIntegerField(db_default=3)),
                    ],
                    options={
                        "db_table": "_honker_scheduler_tasks",
                    },
                ),
                migrations.CreateModel(
                    name="StreamConsumer",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "name", "topic", blank=True, editable=False, primary_key=True, serialize=False
                            ),
                        ),
                        ("name", alkstore_django.models.fields.NameField(max_length=191)),
                        ("topic", alkstore_django.models.fields.NameField(max_length=191)),
                        ("offset", models.BigIntegerField(db_default=0)),
                    ],
                    options={
                        "db_table": "_honker_stream_consumers",
                    },
                ),
                migrations.CreateModel(
                    name="StreamEvent",
                    fields=[
                        ("offset", models.BigAutoField(primary_key=True, serialize=False)),
                        ("topic", alkstore_django.models.fields.NameField(max_length=191)),
                        ("key", alkstore_django.models.fields.NameField(max_length=191, null=True)),
                        ("payload", alkstore_django.models.fields.LenientTextField()),
                        (
                            "created_at",
                            models.BigIntegerField(db_default=alkstore_django.sql.functions.EpochNow()),
                        ),
                    ],
                    options={
                        "db_table": "_honker_stream",
                    },
                ),
            ],
        ),
        migrations.CreateModel(
            name="QueueControl",
            fields=[
                (
                    "queue",
                    alkstore_django.models.fields.NameField(
                        max_length=191, primary_key=True, serialize=False
                    ),
                ),
                ("paused_at", models.BigIntegerField()),
                ("paused_by", alkstore_django.models.fields.NameField(max_length=255)),
                ("paused_until", models.BigIntegerField(null=True)),
            ],
            options={
                "verbose_name": "paused queue",
                "verbose_name_plural": "paused queues",
                "db_table": "alkstore_queue_controls",
                "permissions": [("pause_queuecontrol", "Can pause and resume queues")],
            },
        ),
        migrations.CreateModel(
            name="ScheduleOptions",
            fields=[
                (
                    "name",
                    alkstore_django.models.fields.NameField(
                        max_length=191, primary_key=True, serialize=False
                    ),
                ),
                ("timezone", models.CharField(max_length=64)),
                ("catch_up", models.CharField(max_length=16)),
                ("owner", models.CharField(max_length=16)),
                ("expression", alkstore_django.models.fields.LenientTextField()),
                ("canonical", alkstore_django.models.fields.LenientTextField()),
                ("last_fire_at", models.BigIntegerField(null=True)),
                ("skipped", models.BigIntegerField(default=0)),
            ],
            options={
                "db_table": "alkstore_schedule_options",
            },
        ),
        migrations.CreateModel(
            name="WorkerProcess",
            fields=[
                (
                    "worker_id",
                    alkstore_django.models.fields.NameField(
                        max_length=191, primary_key=True, serialize=False
                    ),
                ),
                ("host", models.CharField(max_length=255)),
                ("pid", models.BigIntegerField()),
                ("queues", alkstore_django.models.fields.LenientTextField()),
                ("version", models.CharField(max_length=32)),
                ("started_at", models.BigIntegerField()),
                ("heartbeat_at", models.BigIntegerField()),
                ("running", models.IntegerField(default=0)),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "db_table": "alkstore_workers",
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("job_id", models.BigIntegerField()),
                ("queue", alkstore_django.models.fields.NameField(default="", max_length=191)),
                ("kind", models.CharField(max_length=16)),
                ("attempt", models.BigIntegerField(null=True)),
                ("life", models.IntegerField(default=1)),
                ("worker_id", alkstore_django.models.fields.NameField(default="", max_length=191)),
                ("started_at", models.BigIntegerField(null=True)),
                ("ended_at", models.BigIntegerField()),
                ("duration_ms", models.BigIntegerField(null=True)),
                ("error_class", alkstore_django.models.fields.NameField(default="", max_length=255)),
                ("error", alkstore_django.models.fields.LenientTextField(default="")),
                ("traceback", alkstore_django.models.fields.LenientTextField(default="")),
                ("other_id", models.BigIntegerField(null=True)),
            ],
            options={
                "db_table": "alkstore_attempts",
                "indexes": [models.Index(fields=["job_id"], name="alkstore_attempts_job")],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("job_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("queue", alkstore_django.models.fields.NameField(max_length=191)),
                ("task", alkstore_django.models.fields.LenientTextField(default="")),
                ("payload", alkstore_django.models.fields.LenientTextField()),
                ("status", models.CharField(max_length=16)),
                ("priority", models.BigIntegerField()),
                ("attempts", models.BigIntegerField()),
                ("max_attempts", models.BigIntegerField()),
                ("worker_id", alkstore_django.models.fields.NameField(default="", max_length=191)),
                ("enqueued_at", models.BigIntegerField()),
                ("started_at", models.BigIntegerField(null=True)),
                ("finished_at", models.BigIntegerField()),
                ("duration_ms", models.BigIntegerField(null=True)),
                ("expires_at", models.BigIntegerField(null=True)),
            ],
            options={
                "db_table": "alkstore_runs",
                "indexes": [models.Index(fields=["expires_at"], name="alkstore_runs_expiry")],
            },
        ),
    ]
