"""What the shop sells, and who ordered it."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.urls import reverse
from django.utils import timezone


class Product(models.Model):
    name = models.CharField(max_length=60, unique=True)
    price = models.DecimalField(max_digits=8, decimal_places=2, help_text="Euro for 100 g.")
    stock = models.IntegerField(help_text="Packets of 100 g.")

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(condition=models.Q(stock__gte=0), name="shop_product_stock")]

    def __str__(self) -> str:
        return self.name


class Order(models.Model):
    """``receipt_id`` is the id of the task result: the page of the order asks it for news."""

    product = models.ForeignKey(Product, on_delete=models.PROTECT)
    quantity = models.IntegerField(
        "packets of 100 g", default=1, validators=[MinValueValidator(1), MaxValueValidator(100)]
    )
    email = models.EmailField("e-mail", help_text="We send the receipt there.")
    total = models.DecimalField(max_digits=10, decimal_places=2, editable=False)
    placed_at = models.DateTimeField(default=timezone.now, editable=False)
    receipt_id = models.CharField(max_length=64, default="", editable=False)
    receipt_sent_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"Order {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("shop:order", args=[self.pk])
