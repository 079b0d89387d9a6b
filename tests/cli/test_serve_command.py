"""The command serve: what the server knows of the run that its workers have opened."""

import json
from pathlib import Path
from typing import Any, cast

from halfgraph.answering.pool import WorkerPool
from halfgraph.cli.serve import _context
from halfgraph.serving.access import AccessRules
from halfgraph.serving.schema import Limits
from halfgraph.training.run_folder import PROVENANCE, provenance
from small_runs import people


def test_a_server_describes_the_triples_that_its_run_was_trained_on(tmp_path: Path) -> None:
    graph = people(tmp_path, split=None).with_held_out(20, 0)
    (tmp_path / PROVENANCE).write_text(json.dumps(provenance(graph, 0)))
    ready: dict[str, Any] = {"graph": str(graph.path), "held_out": graph.held_out, "modes": ["embedding"]}
    context = _context(cast(WorkerPool, None), tmp_path, "train", Limits(), AccessRules(), ready)
    assert context.info.graph["served_triples"] == graph.train.triple_count == graph.whole.triple_count - 20
