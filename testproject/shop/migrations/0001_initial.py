from __future__ import annotations

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Product",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60, unique=True)),
                ("price", models.DecimalField(decimal_places=2, help_text="Euro for 100 g.", max_digits=8)),
                ("stock", models.IntegerField(help_text="Packets of 100 g.")),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("stock__gte", 0)), name="shop_product_stock")
                ],
            },
        ),
        migrations.CreateModel(
            name="Order",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "quantity",
                    models.IntegerField(
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100),
                        ],
                        verbose_name="packets of 100 g",
                    ),
                ),
                (
                    "email",
                    models.EmailField(
                        help_text="We send the receipt there.", max_length=254, verbose_name="e-mail"
                    ),
                ),
                ("total", models.DecimalField(decimal_places=2, editable=False, max_digits=10)),
                ("placed_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("receipt_id", models.CharField(default="", editable=False, max_length=64)),
                ("receipt_sent_at", models.DateTimeField(editable=False, null=True)),
                (
                    "product",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="shop.product"),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
    ]
