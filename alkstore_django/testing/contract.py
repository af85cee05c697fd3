"""``BackendContract``: what any backend of ``django.tasks`` must do, as tests.

Django's own tests are about the two backends that it has, which run tasks in the call or never. This is
about those that keep tasks for a worker. It knows nothing of any backend but its author's hooks::

    class TestMyBackend(BackendContract, TransactionTestCase):
        def run_enqueued(self):
            Worker(burst=True).run()

The default backend of ``TASKS`` must be the one that is tested (``alias`` names another), with
``"QUEUES": []``. ``alkstore_django`` need not be installed as an app. A backend is only asked for what its
``supports_...`` flags say, and to refuse the rest.
"""

from __future__ import annotations

from .contract_enqueueing import EnqueueContract
from .contract_results import ResultContract
from .contract_running import RunContract
from .contract_signalling import SignalContract


class BackendContract(EnqueueContract, RunContract, SignalContract, ResultContract):
    """A mixin for ``TransactionTestCase``; ``Hooks`` says what is to be filled in."""
