"""What Prometheus reads, by ``prometheus_client``: the sums of one process, or of several.

Several processes on one port share a folder, ``PROMETHEUS_MULTIPROC_DIR``; see docs/run/deploy.md.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from typing_extensions import override

from modeshift.observing import Report

BUCKETS = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800)
REGISTRY = CollectorRegistry()
STEPS = Histogram(
    "modeshift_step_seconds", "Steps by node", ["node"], buckets=BUCKETS, registry=REGISTRY
)
MODELS = Histogram(
    "modeshift_model_seconds", "Model calls", ["model"], buckets=BUCKETS, registry=REGISTRY
)
TOKENS = Counter(
    "modeshift_tokens",
    "Tokens of answers; input is all of it",
    ["model", "kind"],
    registry=REGISTRY,
)
CALLS = Counter(
    "modeshift_calls",
    "Calls of tools by effect and state: done, failed, refused, unknown",
    ["effect", "state"],
    registry=REGISTRY,
)
REFUSALS = Counter("modeshift_refusals", "Requests refused", ["status"], registry=REGISTRY)


@contextmanager
def listen(kind: str, names: Mapping[str, str], report: Report) -> Iterator[None]:
    """Count what happens."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - begin
        if kind == "step":
            STEPS.labels(names["node"]).observe(seconds)
        elif kind == "model":
            MODELS.labels(names["model"]).observe(seconds)
            for each in ("input", "output", "cache_read", "cache_write"):
                TOKENS.labels(names["model"], each).inc(int(report.get(each, 0)))
        elif kind == "call":
            CALLS.labels(names["effect"], report.get("state", "failed")).inc()
        elif kind == "refusal":
            REFUSALS.labels(names["status"]).inc()


class _Threads(Collector):
    def __init__(self, asked: Sequence[float], effects: Mapping[str, int]) -> None:
        self._asked = asked
        self._effects = effects

    @override
    def collect(self) -> Iterator[Metric]:
        oldest = max(0.0, time.time() - min(self._asked)) if self._asked else 0.0
        yield GaugeMetricFamily(
            "modeshift_questions_open", "Questions that wait for a person", len(self._asked)
        )
        yield GaugeMetricFamily("modeshift_question_age_seconds", "Of the oldest of them", oldest)
        effects = GaugeMetricFamily(
            "modeshift_effects", "Calls in the journal that changed something", labels=["state"]
        )
        for state in ("started", "done", "failed", "unknown"):
            effects.add_metric([state], self._effects.get(state, 0))
        yield effects


def write(asked: Sequence[float], effects: Mapping[str, int]) -> tuple[bytes, str]:
    """All metrics as text, and their media type.

    ``asked`` has the time of each open question, ``effects`` the journal's calls by state.
    """
    registry, now = REGISTRY, CollectorRegistry()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library's
    now.register(_Threads(asked, effects))
    return generate_latest(registry) + generate_latest(now), CONTENT_TYPE_LATEST
