"""A project that knows ``django.tasks`` alone comes from Django's own backend to ours by its settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.documentation.markdown import ROOT, Page
from tests.documentation.readers import for_this_django

GUIDE = Page(ROOT / "docs" / "from-django-tasks-db.md")

TASKS = """
from django.contrib.auth.models import Group
from django.tasks import task


@task
def total(prices, *, factor=1):
    return {"total": sum(prices) * factor}


@task(priority=5)
async def shout(word):
    return word.upper()


@task(takes_context=True)
def keep(context, name):
    Group.objects.create(name=f"{name} {context.attempt}")
    return context.task_result.id
"""

TESTS = """
from django.contrib.auth.models import Group
from django.tasks import TaskResultStatus
from django.tasks.exceptions import InvalidTask
from django.tasks.signals import task_finished, task_started
from django.test import TestCase

from shop.tasks import keep, shout, total


class TestTasks(TestCase):
    def test_a_value(self):
        result = total.enqueue([1, 2], factor=3)
        self.assertEqual(result.status, TaskResultStatus.SUCCESSFUL)
        self.assertEqual(result.return_value, {"total": 9})
        self.assertEqual((result.args, result.kwargs, result.attempts), ([[1, 2]], {"factor": 3}, 1))

    def test_a_coroutine(self):
        self.assertEqual(shout.using(priority=7).enqueue("a").return_value, "A")

    async def test_awaited(self):
        self.assertEqual((await total.aenqueue([1])).return_value, {"total": 1})

    def test_what_it_writes(self):
        result = keep.enqueue("Staff")
        self.assertEqual(result.return_value, result.id)
        self.assertEqual(list(Group.objects.values_list("name", flat=True)), ["Staff 1"])

    def test_what_is_refused(self):
        with self.assertRaises(TypeError):
            total.enqueue({1, 2})
        with self.assertRaises(InvalidTask):
            total.using(priority=101)

    def test_signals(self):
        heard = []
        receive = lambda sender, task_result, **kwargs: heard.append(task_result.status)
        for signal in (task_started, task_finished):
            signal.connect(receive)
            self.addCleanup(signal.disconnect, receive)
        total.enqueue([1])
        self.assertEqual(heard, ["RUNNING", "SUCCESSFUL"])
"""


class Project:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        call_command("startproject", "mysite", str(directory), verbosity=0)
        self.write("shop/__init__.py", "")
        self.write("shop/tasks.py", TASKS)
        self.write("shop/tests.py", TESTS)
        self.settings = directory / "mysite" / "settings.py"
        self.add('INSTALLED_APPS += ["shop"]')
        self.add('SILENCED_SYSTEM_CHECKS = ["alkstore_django.W003"]')

    def write(self, path: str, text: str) -> None:
        (self.directory / path).parent.mkdir(exist_ok=True)
        translated = for_this_django(text)
        if translated != text:  # the backport
            translated = translated.replace("InvalidTask", "InvalidTaskError")
        (self.directory / path).write_text(translated)

    def add(self, settings: str) -> None:
        with self.settings.open("a") as file:
            file.write(f"\n{for_this_django(settings)}\n")

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=self.directory,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "mysite.settings", "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_its_tests_pass_before_and_after(project: Project) -> None:
    assert "Ran 6 tests" in project.manage("test")

    project.add('INSTALLED_APPS += ["alkstore_django"]')
    for block in GUIDE.blocks:
        if block.mark == "settings":
            project.add(block.text)
        elif block.mark == "file":
            project.write(block.value, block.text)
    assert "Ran 6 tests" in project.manage("test")

    project.manage("migrate", "-v", "0")
    project.manage("shell", "-v", "0", "-c", "from shop.tasks import keep; keep.enqueue('Staff')")
    names = ("shell", "-v", "0", "-c", "from shop.tasks import Group; print([*Group.objects.values_list()])")
    assert "[]" in project.manage(*names)
    project.manage("alkworker", "--batch")
    assert "'Staff 1'" in project.manage(*names)
