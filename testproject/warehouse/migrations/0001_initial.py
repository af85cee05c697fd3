from __future__ import annotations

import django.core.validators
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Parcel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("order_number", models.PositiveBigIntegerField(db_index=True, verbose_name="order")),
                ("tea", models.CharField(max_length=60)),
                (
                    "packets",
                    models.PositiveIntegerField(
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="packets of 100 g",
                    ),
                ),
                ("event_id", models.CharField(max_length=191, verbose_name="event")),
                ("packed_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
    ]
