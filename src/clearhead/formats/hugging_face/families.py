"""The families that are known, one table."""

from __future__ import annotations

from clearhead.formats.hugging_face.bert import BERT, BERT_POOLED
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.hugging_face.gemma3 import GEMMA3
from clearhead.formats.hugging_face.gpt2 import GPT2
from clearhead.formats.hugging_face.llama import LLAMA
from clearhead.formats.hugging_face.neox import NEOX
from clearhead.formats.hugging_face.t5 import T5
from clearhead.formats.hugging_face.windowed import MISTRAL, QWEN2, QWEN3

FAMILIES: tuple[Family, ...] = (GPT2, NEOX, LLAMA, MISTRAL, QWEN2, QWEN3, GEMMA3, BERT, BERT_POOLED, T5)
