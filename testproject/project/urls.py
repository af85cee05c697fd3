from __future__ import annotations

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("admin/", admin.site.urls),
    path("favicon.ico", RedirectView.as_view(url=static("shop/leaf.svg"))),
    path("warehouse/", include("warehouse.urls")),
    path("", include("shop.urls")),
]
