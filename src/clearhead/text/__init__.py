"""Text <-> ids: files in any usual encoding, tokenizers, the split, and the losses of counting. Needs no torch."""

from clearhead.text.baselines import bigram_loss, unigram_loss
from clearhead.text.files import LEAST_BYTES, DecodedText, read_text
from clearhead.text.ids import Ids
from clearhead.text.split import DocumentsSplit, Split, split_document, split_documents
from clearhead.text.tokenizers import (
    ByteTokenizer,
    CharacterTokenizer,
    TextStream,
    Tokenizer,
    tokenizer_from_dict,
)

__all__ = [
    "LEAST_BYTES",
    "ByteTokenizer",
    "CharacterTokenizer",
    "DecodedText",
    "DocumentsSplit",
    "Ids",
    "Split",
    "TextStream",
    "Tokenizer",
    "bigram_loss",
    "read_text",
    "split_document",
    "split_documents",
    "tokenizer_from_dict",
    "unigram_loss",
]
