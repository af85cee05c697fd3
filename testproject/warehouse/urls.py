from __future__ import annotations

from django.urls import path

from . import views

app_name = "warehouse"
urlpatterns = [path("hooks/", views.hooks, name="hooks")]
