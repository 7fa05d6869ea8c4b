"""Text <-> ids: files in any usual encoding, pairs, tokenizers, splits, and the losses of counting. Needs no torch."""

from clearhead.text.baselines import bigram_loss, unigram_loss
from clearhead.text.documents import Document, Reading
from clearhead.text.files import LEAST_BYTES, DecodedText, read_text
from clearhead.text.ids import Ids
from clearhead.text.library import LibraryTokenizer
from clearhead.text.marked import MarkedTokenizer
from clearhead.text.numbers import NumberTokenizer
from clearhead.text.pairs import Pair, Pairs, look_like_pairs, read_pairs, split_pairs
from clearhead.text.saved import read_tokenizer, tokenizer_from_dict
from clearhead.text.sources import Sources, find_sources
from clearhead.text.split import DocumentsSplit, Split, split_document, split_documents
from clearhead.text.tokenizer import TextStream, Tokenizer
from clearhead.text.tokenizers import ByteTokenizer, CharacterTokenizer

__all__ = [
    "LEAST_BYTES",
    "ByteTokenizer",
    "CharacterTokenizer",
    "DecodedText",
    "Document",
    "DocumentsSplit",
    "Ids",
    "LibraryTokenizer",
    "MarkedTokenizer",
    "NumberTokenizer",
    "Pair",
    "Pairs",
    "Reading",
    "Sources",
    "Split",
    "TextStream",
    "Tokenizer",
    "bigram_loss",
    "find_sources",
    "look_like_pairs",
    "read_pairs",
    "read_text",
    "read_tokenizer",
    "split_document",
    "split_documents",
    "split_pairs",
    "tokenizer_from_dict",
    "unigram_loss",
]
