from __future__ import annotations

from django import forms

from .models import Order, Product


class ProductField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Product) -> str:
        return f"{obj.name}, {obj.price} € ({obj.stock or 'none'} left)"


class OrderForm(forms.ModelForm):
    product = ProductField(Product.objects.all(), label="Tea", empty_label="Choose a tea")

    class Meta:
        model = Order
        fields = ["product", "quantity", "email"]
        widgets = {
            "quantity": forms.NumberInput(attrs={"min": 1, "max": 100}),
            "email": forms.EmailInput(attrs={"autocomplete": "email"}),
        }
