from __future__ import annotations

from django.urls import path

from . import views

app_name = "shop"
urlpatterns = [
    path("", views.counter, name="counter"),
    path("orders/", views.orders, name="orders"),
    path("orders/<int:pk>/", views.order, name="order"),
]
