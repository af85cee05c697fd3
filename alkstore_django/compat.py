"""One set of names for ``django.tasks`` (Django 6.0 and newer) and the ``django-tasks`` backport (5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import django

NATIVE = django.VERSION >= (6, 0)

if NATIVE:
    from django.tasks import DEFAULT_TASK_BACKEND_ALIAS as DEFAULT_TASK_BACKEND_ALIAS
    from django.tasks import DEFAULT_TASK_QUEUE_NAME as DEFAULT_TASK_QUEUE_NAME
    from django.tasks import TaskContext as TaskContext
    from django.tasks import TaskResult as TaskResult
    from django.tasks import TaskResultStatus as TaskResultStatus
    from django.tasks import signals as signals
    from django.tasks import task as task
    from django.tasks import task_backends as task_backends
    from django.tasks.backends.base import BaseTaskBackend as BaseTaskBackend
    from django.tasks.base import TASK_REFRESH_ATTRS as TASK_REFRESH_ATTRS
    from django.tasks.base import Task as Task
    from django.tasks.base import TaskError as TaskError
    from django.tasks.exceptions import InvalidTask as InvalidTask
    from django.tasks.exceptions import TaskResultDoesNotExist as TaskResultDoesNotExist
    from django.tasks.exceptions import TaskResultMismatch as TaskResultMismatch
    from django.tasks.signals import task_enqueued as task_enqueued
    from django.tasks.signals import task_finished as task_finished
    from django.tasks.signals import task_started as task_started
else:  # pragma: no cover - one of the two branches runs in each environment
    from django_tasks import DEFAULT_TASK_BACKEND_ALIAS as DEFAULT_TASK_BACKEND_ALIAS
    from django_tasks import DEFAULT_TASK_QUEUE_NAME as DEFAULT_TASK_QUEUE_NAME
    from django_tasks import TaskContext as TaskContext
    from django_tasks import TaskResult as TaskResult
    from django_tasks import TaskResultStatus as TaskResultStatus
    from django_tasks import signals as signals
    from django_tasks import task as task
    from django_tasks import task_backends as task_backends
    from django_tasks.backends.base import BaseTaskBackend as BaseTaskBackend
    from django_tasks.base import TASK_REFRESH_ATTRS as TASK_REFRESH_ATTRS
    from django_tasks.base import Task as Task
    from django_tasks.base import TaskError as TaskError
    from django_tasks.exceptions import InvalidTaskError as InvalidTask  # noqa: F401 - renamed on purpose
    from django_tasks.exceptions import TaskResultDoesNotExist as TaskResultDoesNotExist
    from django_tasks.exceptions import TaskResultMismatch as TaskResultMismatch
    from django_tasks.signals import task_enqueued as task_enqueued
    from django_tasks.signals import task_finished as task_finished
    from django_tasks.signals import task_started as task_started

DEFAULT_TASK_PRIORITY = 0

if TYPE_CHECKING:
    from typing import TypeAlias

    AnyTask: TypeAlias = Task[..., Any]
    AnyTaskResult: TypeAlias = TaskResult[..., Any]
    AnyTaskContext: TypeAlias = TaskContext[..., Any]
else:
    AnyTask, AnyTaskResult, AnyTaskContext = Task, TaskResult, TaskContext
