"""The tokenizer of uncased BERT models, as small as evaluation needs it.

Basic tokens (lower case, accents removed, punctuation apart), then the longest pieces that the
vocabulary has (J. Devlin et al., BERT, 2019, appendix A.2; Y. Wu et al., Google's Neural Machine
Translation System, 2016, section 4.1).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int64]
_START, _END, _UNKNOWN = "[CLS]", "[SEP]", "[UNK]"


class WordPieceTokenizer:
    """Turns sentences into the inputs of a BERT model.

    Args:
        vocabulary: File with one piece per line; the line number is its id.
    """

    def __init__(self, vocabulary: Path) -> None:
        lines = vocabulary.read_text(encoding="utf-8").splitlines()
        self._ids = {piece: position for position, piece in enumerate(lines)}

    def encode(self, sentences: Sequence[str], length: int) -> dict[str, Tokens]:
        """Return ``input_ids``, ``attention_mask`` and ``token_type_ids``, sentences x length.

        Longer sentences are cut, shorter ones padded with 0.
        """
        ids = np.zeros((len(sentences), length), np.int64)
        mask = np.zeros_like(ids)
        for row, sentence in enumerate(sentences):
            pieces = [p for word in _split_words(sentence) for p in self._split_word(word)]
            tokens = [_START, *pieces[: length - 2], _END]
            ids[row, : len(tokens)] = [self._ids[token] for token in tokens]
            mask[row, : len(tokens)] = 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}

    def _split_word(self, word: str) -> list[str]:
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self._ids), None)
            if end is None:
                return [_UNKNOWN]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces


def _split_words(sentence: str) -> list[str]:
    decomposed = unicodedata.normalize("NFD", sentence.lower())
    plain = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
    return re.findall(r"[^\W_]+|[^\w\s]|_", plain)
