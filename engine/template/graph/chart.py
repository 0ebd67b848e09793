"""What a turn does: its phases, the node of each, and which phase follows which.

The engine sends these events; what each means is said at ``modeshift.Event``. A phase of your
own is a row in ``nodes`` and the edges that lead there and away.
"""

from modeshift import EACH_MODE, ChartData

CHART = ChartData(
    nodes={
        "idle": None,
        "thinking": EACH_MODE,
        "reviewing": "review",
        "acting": "act",
        "switching": "switch_mode",
        "compacting": "compact_history",
        "returning": "end_subtask",
    },
    edges=[
        ("idle", "start", "thinking"),
        ("idle", "compact", "compacting"),
        ("idle", "return", "returning"),
        ("thinking", "answer", "idle"),
        ("thinking", "review", "reviewing"),
        ("thinking", "act", "acting"),
        ("thinking", "compact", "compacting"),
        ("thinking", "return", "returning"),
        ("reviewing", "act", "acting"),
        ("reviewing", "switch", "switching"),
        ("reviewing", "decided", "thinking"),
        ("acting", "act", "acting"),
        ("acting", "acted", "thinking"),
        ("acting", "switch", "switching"),
        ("acting", "complete", "idle"),
        ("acting", "return", "returning"),
        ("switching", "switch_mode", "thinking"),
        ("compacting", "compacted", "thinking"),
        ("compacting", "complete", "idle"),
        ("returning", "returned", "thinking"),
        ("returning", "next", "switching"),
    ],
)
