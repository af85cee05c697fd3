"""honker's side of ``HonkerQueue``: each line of input is a call, each line of output its answer."""

from __future__ import annotations

import json
import sys

import honker

JOB = ("id", "payload", "worker_id", "attempts", "claim_expires_at")


class Desk:
    """The queues that are open, by the number that each was given."""

    def __init__(self):
        self.queues = {}

    def open(self, path, name, options):
        number = len(self.queues) + 1
        self.queues[number] = honker.open(path).queue(name, **options)
        return number

    def call(self, number, method, args, keywords):
        queue = self.queues[number]
        target = queue.db if method == "query" else queue
        return plain(getattr(target, method)(*args, **keywords))

    def close(self, number):
        self.queues[number].db.close()


def plain(value):
    if isinstance(value, honker.Job):
        return {name: getattr(value, name) for name in JOB}
    return [plain(item) for item in value] if isinstance(value, list) else value


desk = Desk()
for line in sys.stdin:
    verb, *arguments = json.loads(line)
    try:
        answer = {"answer": getattr(desk, verb)(*arguments)}
    except Exception as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)
