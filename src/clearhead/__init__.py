"""Transformers you can see through, and prove.

    import clearhead as ch
    loaded = ch.load("runs/demo")
    print(ch.generate(loaded, "Once", max_tokens=50, temperature=0.8, seed=0).text)

Names are fetched on first use, so that `import clearhead` does not wait for torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clearhead._lazy import lazily
from clearhead.messages import UserError

if TYPE_CHECKING:
    from clearhead.checking.check import check
    from clearhead.checking.diff.diff import diff
    from clearhead.formats.load import Loaded, load
    from clearhead.generation.beams import beam_search
    from clearhead.generation.embedding import embed
    from clearhead.generation.generate import generate, generate_batch, stream
    from clearhead.generation.request import Request
    from clearhead.generation.sampling import SamplingSettings
    from clearhead.generation.writing import Generation
    from clearhead.models.build import build
    from clearhead.models.config import DecoderConfig
    from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
    from clearhead.tracing.trace import Trace, trace
    from clearhead.training.fit import fit
    from clearhead.training.scoring import score
    from clearhead.web.notebook import explore

__version__ = "0.1.0"

__all__ = [
    "DecoderConfig",
    "EncoderConfig",
    "EncoderDecoderConfig",
    "Generation",
    "Loaded",
    "Request",
    "SamplingSettings",
    "Trace",
    "UserError",
    "beam_search",
    "build",
    "check",
    "diff",
    "embed",
    "explore",
    "fit",
    "generate",
    "generate_batch",
    "load",
    "score",
    "stream",
    "trace",
]

__getattr__ = lazily(
    __name__,
    {
        "DecoderConfig": "clearhead.models.config",
        "EncoderConfig": "clearhead.models.config_encoders",
        "EncoderDecoderConfig": "clearhead.models.config_encoders",
        "Generation": "clearhead.generation.writing",
        "Loaded": "clearhead.formats.load",
        "Request": "clearhead.generation.request",
        "SamplingSettings": "clearhead.generation.sampling",
        "Trace": "clearhead.tracing.trace",
        "beam_search": "clearhead.generation.beams",
        "build": "clearhead.models.build",
        "check": "clearhead.checking.check",
        "diff": "clearhead.checking.diff.diff",
        "embed": "clearhead.generation.embedding",
        "explore": "clearhead.web.notebook",
        "fit": "clearhead.training.fit",
        "generate": "clearhead.generation.generate",
        "generate_batch": "clearhead.generation.generate",
        "load": "clearhead.formats.load",
        "score": "clearhead.training.scoring",
        "stream": "clearhead.generation.generate",
        "trace": "clearhead.tracing.trace",
    },
)
