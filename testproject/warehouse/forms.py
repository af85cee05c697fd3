from __future__ import annotations

from django import forms

from .models import Parcel


class ParcelForm(forms.ModelForm):
    """Checks what the shop says of an order."""

    class Meta:
        model = Parcel
        fields = ["order_number", "tea", "packets", "event_id"]

    @classmethod
    def of(cls, message: dict[str, object], event_id: str) -> ParcelForm:
        """Raises ``KeyError`` and ``TypeError`` for what is no message of an order."""
        return cls(
            {
                "order_number": message["order"],
                "tea": message["tea"],
                "packets": message["packets"],
                "event_id": event_id,
            }
        )
