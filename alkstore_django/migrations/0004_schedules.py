"""What schedules need beyond honker's columns, and a table for the runs of those that must not overlap."""

from __future__ import annotations

from django.db import migrations, models

import alkstore_django.models.fields


class Migration(migrations.Migration):
    dependencies = [("alkstore_django", "0003_unique_keys")]

    operations = [
        migrations.AlterModelOptions(
            "scheduledtask",
            {
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "permissions": [
                    ("pause_scheduledtask", "Can pause and resume schedules"),
                    ("run_scheduledtask", "Can run schedules now"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ScheduledJob",
            fields=[
                ("job_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("schedule", alkstore_django.models.fields.NameField(db_index=True, max_length=191)),
            ],
            options={"db_table": "alkstore_scheduled_jobs"},
        ),
        migrations.AddField("scheduleoptions", "overlap", models.BooleanField(default=True)),
        migrations.AddField(
            "scheduleoptions", "problem", alkstore_django.models.fields.LenientTextField(default="")
        ),
        migrations.AddField(
            "scheduleoptions", "broken", alkstore_django.models.fields.LenientTextField(null=True)
        ),
        migrations.AddField("scheduleoptions", "withdrawn", models.BooleanField(default=False)),
        migrations.AddField("scheduleoptions", "declared_enabled", models.BooleanField(default=True)),
    ]
