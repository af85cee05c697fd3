"""Three pages: order, see the orders, see one of them."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from .checkout import SoldOut, place
from .forms import OrderForm
from .models import Order
from .parcels import parcel_of, parcels_of
from .receipts import receipt_of


def counter(request: HttpRequest) -> HttpResponse:
    """The order form."""
    form = OrderForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            return redirect(place(form.save(commit=False)))
        except SoldOut as error:
            form.add_error("quantity", str(error))
    return render(request, "shop/counter.html", {"form": form})


@require_safe
def orders(request: HttpRequest) -> HttpResponse:
    page = Paginator(Order.objects.select_related("product"), 25).get_page(request.GET.get("page"))
    parcels = parcels_of(page)
    found = [(order, receipt_of(order), parcels.get(order.pk)) for order in page]
    return render(request, "shop/orders.html", {"page": page, "orders": found})


@require_safe
def order(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(Order.objects.select_related("product"), pk=pk)
    context = {"order": found, "receipt": receipt_of(found), "parcel": parcel_of(found)}
    return render(request, "shop/order.html", context)
