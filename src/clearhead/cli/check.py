"""`clearhead check`: prove that a trained model does what its equations say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from jsonargparse import ArgumentParser

from clearhead.cli.options import parse, parser, use_threads
from clearhead.messages import say


def options() -> ArgumentParser:
    """The flags of `clearhead check`."""
    made = parser("check")
    made.add_argument("model", type=str, help="run directory, or one of its checkpoint folders")
    made.add_argument("--seed", type=int, default=0, help="of the ids that the model reads")
    made.add_argument("--threads", type=int, default=None, help="CPU threads; as many as PyTorch picks if not given")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def run(arguments: Sequence[str]) -> int:
    """Check a model; 0 if all is right, 1 if a fault was found."""
    asked = parse(options(), arguments)
    use_threads(asked.threads)
    from clearhead.checking.model import check_model  # noqa: PLC0415 - torch comes after the flags are right
    from clearhead.formats.load import load  # noqa: PLC0415

    loaded = load(asked.model, dtype="float32", device="cpu")
    findings = check_model(loaded, seed=asked.seed)
    right = all(finding.passed for finding in findings)
    if asked.json:
        checks = [asdict(finding) for finding in findings]
        print(json.dumps({"target": str(loaded.source), "ok": right, "checks": checks}, ensure_ascii=False))
    else:
        print(say("cli.check.target", source=loaded.source))
        for finding in findings:
            print(
                f"  {say('cli.check.right' if finding.passed else 'cli.check.wrong'):<6} {finding.id}: {finding.evidence}"
            )
    return 0 if right else 1
