"""Settings of the example shop. What alkstore_django needs is marked; the rest is any Django project.

The shop keeps its SQLite file and its mails in ``ALKSTORE_DATA_DIR`` (default: ``data`` beside
``manage.py``). With ``ALKSTORE_DEMO=1`` it is the shop of the last ``manage.py demo``.
"""

from __future__ import annotations

import os
from pathlib import Path

import django

from .databases import chosen

BASE_DIR = Path(__file__).resolve().parents[1]
DEMO = os.environ.get("ALKSTORE_DEMO") == "1"
DATA_DIR = Path(os.environ.get("ALKSTORE_DATA_DIR") or BASE_DIR / "data").resolve()
if DEMO:
    DATA_DIR /= "demo"
DATA_DIR.mkdir(parents=True, exist_ok=True)

SECRET_KEY = "not a secret: this shop sells nothing"
DEBUG = True
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]

# alkstore_django: the app, the backend of django.tasks, and on SQLite the options in databases.py.
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "alkstore_django",
    "shop",
    "warehouse",
]
TASKS = {
    "default": {
        "BACKEND": "alkstore_django.backends.AlkstoreBackend",
        "QUEUES": ["default", "mail"],
    }
}
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")

DATABASES = {"default": chosen(DATA_DIR, demo=DEMO)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Django's file backend, behind a post office that refuses some addresses.
MAIL_DIR = DATA_DIR / "mail"
DEFAULT_FROM_EMAIL = "The tea counter <orders@tea.example>"
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": "shop.mailer.EmailBackend", "OPTIONS": {"file_path": MAIL_DIR}}}
else:
    EMAIL_BACKEND = "shop.mailer.EmailBackend"
    EMAIL_FILE_PATH = MAIL_DIR

# Where the shop sends its events, and what they are signed with: its own runserver has the warehouse, too.
WAREHOUSE_URL = os.environ.get("ALKSTORE_WAREHOUSE_URL") or "http://127.0.0.1:8000/warehouse/hooks/"
WAREHOUSE_SECRET = "whsec_bm90IGEgc2VjcmV0OiB0aGlzIHNob3Agc2VsbHMgbm90aGluZw=="

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
if django.VERSION >= (6, 0):
    # Nothing inline, nothing from elsewhere; this holds for the admin pages, too.
    MIDDLEWARE.append("django.middleware.csp.ContentSecurityPolicyMiddleware")
    SECURE_CSP = {"default-src": ["'self'"], "base-uri": ["'none'"], "form-action": ["'self'"]}

ROOT_URLCONF = "project.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "static/"
USE_TZ = True
TIME_ZONE = "UTC"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "alkstore_django": {"level": "INFO"},
        "django": {"handlers": ["console"], "level": "INFO", "propagate": False},
    },
}
