"""What is made of an encoder's features, where the configuration of a family has no word for it: the files of sentence-transformers."""

from __future__ import annotations

import json
from dataclasses import replace

from clearhead.formats.opened import Config
from clearhead.models.choices import Features, First, Max, Mean, Pooled
from clearhead.models.config_encoders import EncoderConfig

__all__ = ["head_files", "with_own_head"]

MODES = {First: "pooling_mode_cls_token", Mean: "pooling_mode_mean_tokens", Max: "pooling_mode_max_tokens"}
OTHERS = ("pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken")
FOLDER = "1_Pooling"


def with_own_head(config: Config) -> Config:
    """The same model with the head that the family itself has, where another can be said beside its configuration.

    Features as they are need no word at all: the weights of the pooler are left out.
    """
    if isinstance(config, EncoderConfig) and (config.head == Features() or _beside(config)):
        return replace(config, head=Pooled(First(), dense=True))
    return config


def head_files(config: Config) -> dict[str, str]:
    """The files, by their paths in the folder; none for a head that the family has, or for features as they are."""
    if not isinstance(config, EncoderConfig) or not isinstance(config.head, Pooled) or not _beside(config):
        return {}
    kinds = {"": "Transformer", FOLDER: "Pooling"} | ({"2_Normalize": "Normalize"} if config.head.unit else {})
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]
    modes = {mode: isinstance(config.head.pooling, kind) for kind, mode in MODES.items()} | dict.fromkeys(OTHERS, False)
    pooling = {"word_embedding_dimension": config.width, **modes}
    limits = {"max_seq_length": config.context, "do_lower_case": False}
    return {
        "modules.json": _json(modules),
        f"{FOLDER}/config.json": _json(pooling),
        "sentence_bert_config.json": _json(limits),
    }


def _beside(config: EncoderConfig) -> bool:
    """Whether the head is one that sentence-transformers makes of features."""
    return isinstance(config.head, Pooled) and not config.head.dense


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"
