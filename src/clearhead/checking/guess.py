"""As what somebody's code should be checked: guessed from its names, its signature and its parts. Nothing is run."""

from __future__ import annotations

import inspect
import re

from torch import nn

from clearhead.checking.kinds.calling import MEMORY
from clearhead.checking.target import Target

IDS = ("ids", "idx", "input_ids", "tokens", "token_ids", "inp", "indices", "src_ids")
SOURCES, TARGETS = (
    ("src", "source", "encoder_input", "src_ids", "enc_input"),
    ("tgt", "target", "trg", "dec_input", "decoder_input_ids"),
)
NORMALISING = r"norm"
TURNING = r"rot(ary|ate)|rope"
PLACING = r"pos(ition|_?enc|_?emb)|sinusoid|\bpe\b|encoding|^wpe"
ATTENDING = r"(attention|attn|mha)(v?\d+|simple|layer|module)?$"
SCORING = r"loss|cross_entropy|\bnll"
DRAWN = {"logits", "lm_logits", "next_token_logits", "scores", "probs", "probabilities"}
TAUGHT = {"labels", "targets", "target", "y"}
"""What parameters are called that are drawn from, and that a model is taught with."""
CHOOSING = r"sampl|top_?[kp]|nucleus|penalty|temperature|next_token|logits_proc|filter|warp|min_p"


def guessed(target: Target) -> list[str]:
    """The kinds that a target may be, the likeliest first."""
    return _of_module(target) if target.is_module else _of_function(target)


NAMED = (
    (TURNING, ["rotary", "sdpa"]),
    (SCORING, ["loss", "sampler"]),
    (CHOOSING, ["sampler", "loss"]),
    (NORMALISING, ["norm"]),
    (PLACING, ["positions", "rotary"]),
)
"""What a function's name says of its kind, the more telling words first."""


def _of_function(target: Target) -> list[str]:
    name, first = _words(target), _parameters(target)
    by_name = next((kinds for words, kinds in NAMED if re.search(words, name)), None)
    if by_name is not None:
        return by_name
    if DRAWN & set(first) or (TAUGHT | {"ids"}) & set(first[1:2]):
        return _of_logits(first) if DRAWN & set(first) else ["loss", "sampler"]
    return ["sdpa", "rotary"] if len(first) >= 3 else ["rotary", "norm", "positions", "sdpa"]


def _of_logits(first: list[str]) -> list[str]:
    """What takes logits, or the chances that they give: with targets it is a loss."""
    return ["loss", "sampler"] if TAUGHT & set(first) else ["sampler", "loss"]


def _of_module(target: Target) -> list[str]:
    name, first, made = _words(target), _parameters(target), target.sample
    if _takes_two(first):
        return ["seq2seq", "block", "encoder", "attention"]
    if _places(name, first, made) or _only_embeds(made):
        return ["positions", "rotary"]
    if _only_one_table(made):
        # Rows of a table are no model: nothing is asked of them that could be wrong.
        return []
    if (first[:1] and first[0] in IDS) or _embeds(made):
        return ["lm", "encoder"] if not re.search(r"encoder|bert", name) else ["encoder", "lm"]
    matrices = [
        module for module in made.modules() if isinstance(module, nn.Linear | nn.Conv1d | nn.MultiheadAttention)
    ]
    own_matrices = [p for p in made.parameters() if sum(n > 1 for n in p.shape) >= 2]
    if not matrices and len(own_matrices) < 2:
        return _of_logits(first) if DRAWN & set(first) else _small(name, first, own_matrices)
    return _attending(target, name)


def _attending(target: Target, name: str) -> list[str]:
    """A module with projections that is fed with features: attention, a block of it or several."""
    made = target.sample
    if re.search(ATTENDING, name):
        return ["attention", "block", "encoder"]
    count = attentions(made)
    if count == 2 and _remembers(target):
        return ["block", "encoder", "attention"]
    if count > 1:
        return ["encoder", "block", "attention"]
    return ["block", "encoder", "attention"] if _is_block(target, name) else ["attention", "block", "encoder"]


def _places(name: str, first: list[str], made: nn.Module) -> bool:
    """Whether its name speaks of positions, and it neither takes ids nor projects."""
    if isinstance(made, nn.Embedding) and re.search(PLACING, name):
        return True
    if not re.search(PLACING, name) or re.search(f"{TURNING}|{NORMALISING}|att|block|layer|coder|model", name):
        return False
    projects = any(isinstance(module, nn.Linear | nn.Conv1d) for module in made.modules())
    return not projects and (not first or first[0] not in IDS)


def _only_embeds(made: nn.Module) -> bool:
    """Whether two tables or more, and norms, are all that it has: embeddings of tokens and of positions."""
    tables = {id(m.weight): m for m in made.modules() if isinstance(m, nn.Embedding)}
    matrices = [p for p in made.parameters() if p.dim() >= 2]
    own = [p for p in matrices if id(p) not in tables]
    return bool(tables) and len(matrices) >= 2 and all(p.dim() == 3 and p.shape[0] == 1 for p in own)


def _only_one_table(made: nn.Module) -> bool:
    """Whether a table of vectors is all that it has, not one of logits."""
    tables = [m for m in made.modules() if isinstance(m, nn.Embedding)]
    held = {id(p) for p in made.parameters() if p.dim() >= 2}
    if len(tables) != 1 or held != {id(tables[0].weight)}:
        return False
    return tables[0].num_embeddings != tables[0].embedding_dim and re.search("matmul|@|linear", _own_text(made)) is None


def _own_text(made: nn.Module) -> str:
    try:
        return inspect.getsource(type(made))
    except (OSError, TypeError):
        return ""


def _small(name: str, first: list[str], matrices: list[nn.Parameter]) -> list[str]:
    """A module without projections."""
    if re.search(TURNING, name):
        return ["rotary", "positions"]
    if re.search(PLACING, name) and not re.search(NORMALISING, name):
        return ["positions", "rotary"]
    if re.search(NORMALISING, name):
        return ["norm"]
    if re.search(SCORING, name):
        return ["loss"]
    if first[:3] in (["q", "k", "v"], ["query", "key", "value"]):
        return ["sdpa"]
    return ["positions", "norm", "rotary"] if matrices else ["norm", "positions", "rotary", "sdpa", "sampler", "loss"]


def _takes_two(first: list[str]) -> bool:
    """Whether a source and a target are taken, both of ids or of features."""
    return len(first) >= 2 and first[0] in SOURCES and first[1] in TARGETS


def _remembers(target: Target) -> bool:
    """Whether a memory may be given beside the stream, as to a layer with attention to it."""
    return any(re.fullmatch(MEMORY, name.lower()) for name in list(target.signature.parameters)[1:])


def _embeds(made: nn.Module) -> bool:
    """Whether the module turns ids into vectors: an embedding that is not one of positions or segments alone."""
    names = [name for name, module in made.named_modules() if isinstance(module, nn.Embedding)]
    return any(not re.search(r"pos|seg|type|rel|bias|bucket|wpe|\bpe\b", name) for name in names)


def attentions(made: nn.Module) -> int:
    """How many attention layers there are, by their names; one inside another counts once."""
    names = [
        name
        for name, module in made.named_modules()
        if name
        and re.search(r"att|mha", type(module).__name__, re.IGNORECASE)
        and any(True for _ in module.parameters())
    ]
    return sum(not any(name.startswith(f"{other}.") for other in names if other) for name in names)


def _is_block(target: Target, name: str) -> bool:
    """Whether there is more than attention: a feed-forward, norms before or after several parts, or a stream that is added again."""
    made = target.sample
    names = " ".join(name.lower() for name, _ in made.named_modules())
    widths = [m for m in made.modules() if isinstance(m, nn.Linear)]
    widened = any(a.out_features == b.in_features > a.in_features == b.out_features for a in widths for b in widths)
    inside = any(re.search(NORMALISING, type(m).__name__, re.IGNORECASE) for m in made.modules())
    if re.search(r"ffn|ffwd|mlp|feed_?forward|\bff\b|\bfc1", names) or (widened and inside):
        return True
    # Norms of queries, keys and latents are narrower than the stream.
    width = max((m.in_features for m in widths), default=0)
    norms = [m for m in made.children() if re.search(NORMALISING, type(m).__name__, re.IGNORECASE)]
    wide = [m for m in norms if all(p.numel() == width or not width for p in m.parameters())]
    added = re.search(r"\b(\w+) = \1 \+ |\+= |return \w+ \+ |residual|shortcut|skip", target.source)
    return (
        len(wide) >= 2 or (bool(wide) and added is not None) or (inside and re.search("block|layer", name) is not None)
    )


def _parameters(target: Target) -> list[str]:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, parameter in target.signature.parameters.items() if parameter.kind in positional]


def _words(target: Target) -> str:
    """The name of the class or function, in small letters."""
    return str(getattr(target.kind_of, "__name__", "")).lower()
