# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The reason why a call cannot be made again, and those that never are."""

from __future__ import annotations


class RefusedError(Exception):
    """A call cannot be made again from its record; the message says why."""


#: they draw random numbers
RANDOM = frozenset(
    "bernoulli bernoulli_ bernoulli_ext dropout dropout1d dropout2d dropout3d dropout_ext func_dropout_ext "
    "exponential_ gamma gumbel_softmax laplace log_uniform_candidate_sampler multinomial "
    "multinomial_with_replacement normal normal_ normal_ext poisson rand rand_like rand_ext rand_like_ext randint "
    "randint_like randint_ext randint_like_ext randn randn_like randn_ext randn_like_ext random_ random_categorical "
    "random_gamma random_poisson randperm randperm_ext rrelu rrelu_ shuffle standard_laplace standard_normal "
    "uniform uniform_ uniform_ext uniform_candidate_sampler cauchy cauchy_ geometric_ log_normal log_normal_ "
    "choice_with_mask fractional_max_pool2d fractional_max_pool3d alpha_dropout feature_alpha_dropout empty "
    "empty_like new_empty Dropout Dropout2D Dropout3D DropoutExt DropoutGenMask DropoutGenMaskExt DropoutDoMask "
    "Bernoulli BernoulliExt StandardNormal StandardLaplace UniformReal UniformInt UniformExt NormalTensorTensor "
    "NormalTensorFloat NormalFloatTensor NormalFloatFloat Multinomial MultinomialExt RandomCategorical "
    "RandomChoiceWithMask RandomShuffle RandomPoisson RandomGamma Gamma Poisson Randn RandnLike RandExt RandLikeExt "
    "RandInt RandIntLike RandpermExt Randperm RandpermV2 TruncatedNormal ParameterizedTruncatedNormal "
    "UniformCandidateSampler LogUniformCandidateSampler LogNormalReverse ComputeAccidentalHits InplaceUniform "
    "InplaceNormal InplaceRandom InplaceExponential InplaceBernoulliTensor InplaceBernoulliScalar RReLU "
    "FractionalMaxPool FractionalMaxPool3DWithFixedKsize FlashAttentionScoreWithDropout".split()
)
#: they read or write files, run code, talk to other processes, or wait
FORBIDDEN = frozenset(
    "print print_ Print TensorDump tensordump ScalarSummary ImageSummary HistogramSummary TensorSummary Custom "
    "custom PyFunc PyExecute CustomOpBuilder ReadFile WriteFile save load tofile asnumpy numpy from_numpy set_data "
    "register_hook hook HookBackward InsertGradientOf CellBackwardHook Morph Send Receive Load UpdateState Depend "
    "Partial MapUniform AllReduce AllGather Broadcast ReduceScatter NeighborExchange NeighborExchangeV2 AlltoAll "
    "AlltoAllV Barrier CollectiveScatter CollectiveGather Reduce BatchISendIRecv GetNext InitDataSetQueue "
    "EnvironCreate Pull Push Assert Switch Call vmap grad value_and_grad vjp jvp jacfwd jacrev hessian scan "
    "while_loop fori_loop for_loop custom_bprop offload offload_ npu_format_cast from_file memmap frombuffer".split()
)


def bare(key: str) -> str:
    """Return the last word of a key.

    >>> bare("Functional.dropout"), bare("Primitive.fn:f.ReLU")
    ('dropout', 'ReLU')
    """
    return key.rpartition(".")[2]
