"""Models, one file per paper."""

from seqkeras.models.answers import best_answers
from seqkeras.models.attention_weights_head import AttentionWeightsHead
from seqkeras.models.band_widths import BandWidths
from seqkeras.models.bert import Bert
from seqkeras.models.bidaf import BiDAF
from seqkeras.models.bilm import BiLM, LayerMix
from seqkeras.models.bilm_features import BiLMFeatures
from seqkeras.models.bridges import Bridge, OwnState
from seqkeras.models.chains import ChainTaggingHead, LinearChain
from seqkeras.models.distillation import Distillation
from seqkeras.models.forecaster import Forecaster
from seqkeras.models.gpt import GPT
from seqkeras.models.heads import (
    ClassificationHead,
    MaskedLMHead,
    MultipleChoiceHead,
    NextSentenceHead,
    RegressionHead,
    SpanHead,
    TaggingHead,
)
from seqkeras.models.hidden_state_head import HiddenStateHead
from seqkeras.models.linear_forecast import LinearForecast
from seqkeras.models.linear_ngrams import LinearNgrams
from seqkeras.models.open_classification_head import OpenClassificationHead
from seqkeras.models.permuted_gpt import PermutedGPT
from seqkeras.models.recurrent_stack import RecurrentStack
from seqkeras.models.rnn_lm import RNNLanguageModel
from seqkeras.models.rnn_seq2seq import RNNSeq2Seq
from seqkeras.models.rnn_wirings import BahdanauDecoder, ClassicalDecoder, LuongDecoder
from seqkeras.models.sentence_encoder import SentenceEncoder
from seqkeras.models.transformer import Transformer
from seqkeras.models.tree_classifier import TreeClassifier
from seqkeras.models.with_heads import WithHeads

__all__ = [
    "GPT",
    "AttentionWeightsHead",
    "BahdanauDecoder",
    "BandWidths",
    "Bert",
    "BiDAF",
    "BiLM",
    "BiLMFeatures",
    "Bridge",
    "ChainTaggingHead",
    "ClassicalDecoder",
    "ClassificationHead",
    "Distillation",
    "Forecaster",
    "HiddenStateHead",
    "LayerMix",
    "LinearChain",
    "LinearForecast",
    "LinearNgrams",
    "LuongDecoder",
    "MaskedLMHead",
    "MultipleChoiceHead",
    "NextSentenceHead",
    "OpenClassificationHead",
    "OwnState",
    "PermutedGPT",
    "RNNLanguageModel",
    "RNNSeq2Seq",
    "RecurrentStack",
    "RegressionHead",
    "SentenceEncoder",
    "SpanHead",
    "TaggingHead",
    "Transformer",
    "TreeClassifier",
    "WithHeads",
    "best_answers",
]
