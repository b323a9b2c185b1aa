# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The table of rules: from the facts about a call that differs, though no cause of it does, to the kind of origin.

A rule is a row. The rows are read from top to bottom, and the first whose condition holds decides. Its name is in the
``--json`` of ``probe compare`` under "why". There are four tables: for an input that differs, for a call whose outputs
differ, for a gradient, and for the update of an optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from probe.reading.compare.origins.origin import Kind

#: the kinds of rows that name nothing, or the change that the call follows from
NOTHING = ""
EARLIER = "earlier"
EARLIER_CHANGE = "an earlier change that alone changes no value"

Facts = TypeVar("Facts", bound="tuple[Any, ...]")


class InputFacts(NamedTuple):
    """Facts about an input that differs."""

    of_container: bool = (
        False  # it is a parameter in the entry of a Cell whose calls were recorded: they name it
    )
    is_parameter: bool = (
        False  # it is a parameter in the entry of a Cell, or has the content of one
    )
    is_state: bool = (
        False  # it has the shape of a moving statistic, and goes into BatchNorm at its place
    )
    made_alone: bool = False  # one side has it from a call that the other does not have
    of_other_call: bool = (
        False  # another API stands there, without this input, or with that of another call
    )
    one_sided: bool = False  # one side has no such input, or a plain value
    made_by_others: bool = False  # the sides have it from two calls that are no partners
    made_by_partners: bool = False  # both sides have it from the same call, whose outputs agree
    other_output: bool = False  # they use two different outputs of that call
    follows: bool = False  # there is a change that alone changes no value: a call more, an argument, another order
    is_data: bool = False  # it is a batch: integers, or the first input of the first call
    is_fed: bool = (
        False  # it enters the model or the loss: a table that the script looks up does not
    )
    other_parameter: bool = False  # the sides use two parameters, and one of them is equal in both
    other_outside: bool = False  # each side gives the value of the other one to another call


class CallFacts(NamedTuple):
    """Facts about a forward call whose inputs agree and whose outputs differ."""

    carried: bool = (
        False  # the outputs differ by no more than the inputs, which are within the tolerance
    )
    argument: bool = False  # a plain argument or an attribute differs
    follows: bool = False  # there is a change that alone changes no value: a call more, an argument, another order
    is_random: bool = False  # the call draws random numbers
    is_collective: bool = False  # it communicates


class UpdateFacts(NamedTuple):
    """Facts about one thing that differs in the update of an optimizer."""

    is_number: bool = False  # it is a number, such as the learning rate
    other_class: bool = False  # the optimizers are of two classes
    missing: bool = False  # one optimizer has a parameter that the other has not
    made_alone: bool = False  # only one side has a call between the gradients and the optimizer
    follows: bool = False  # there is a change before it that alone changes no value, such as another argument of a clip
    is_gradient: bool = False  # a gradient that enters differs
    is_state: bool = False  # a state before the update differs


class GradientFacts(NamedTuple):
    """Facts about a backward entry that differs, though no gradient before it does."""

    missing: bool = False  # one side has no gradient where the other has one
    ended_alone: bool = False  # the operand comes from a call that only one side has
    at_parameter: bool = False  # the way of the gradient leads to one parameter alone
    follows: bool = False  # there is a change that alone changes no value of the forward
    exchanged: bool = False  # another call with equal outputs has this gradient on the other side
    carried: bool = False  # the gradient differs by no more than those that arrive, which are within the tolerance
    not_updated: bool = (
        False  # the optimizer of one side lacks the parameter at which the way of the gradient ends
    )


@dataclass(frozen=True)
class OriginRow(Generic[Facts]):
    """A row of a table."""

    why: str  # the name of the rule, for ``--json``
    kind: str  # the kind of the origin; NOTHING, or EARLIER for the change that it follows from
    holds: Callable[[Facts], bool]  # whether the facts are those of the row


#: rows that other code knows
MADE_ALONE: OriginRow[InputFacts] = OriginRow(
    "the input comes from a call that one side lacks", Kind.CALLS, lambda it: it.made_alone
)
OTHER_CALL: OriginRow[InputFacts] = OriginRow(
    "another API stands there, which is not given this input",
    Kind.CALLS,
    lambda it: it.of_other_call,
)
LACKING: OriginRow[GradientFacts] = OriginRow(
    "the optimizer lacks the parameter", Kind.OPTIMIZER, lambda it: it.missing and it.not_updated
)
FROZEN: OriginRow[GradientFacts] = OriginRow(
    "a parameter has no gradient on one side",
    Kind.GRADIENT,
    lambda it: it.missing and it.at_parameter,
)
EXCHANGED: OriginRow[GradientFacts] = OriginRow(
    "two calls with equal outputs have each other's gradients",
    Kind.WIRING,
    lambda it: it.exchanged,
)
OTHER_CLASS: OriginRow[UpdateFacts] = OriginRow(
    "the optimizers are of two classes", Kind.OPTIMIZER, lambda it: it.other_class
)
MISSING: OriginRow[UpdateFacts] = OriginRow(
    "a parameter is missing in the optimizer", Kind.OPTIMIZER, lambda it: it.missing
)

OTHER_PARAMETER: OriginRow[InputFacts] = OriginRow(
    "the call uses another parameter",
    Kind.WIRING,
    lambda it: it.other_parameter,
)
OTHER_OUTSIDE: OriginRow[InputFacts] = OriginRow(
    "the call is given another value from outside",
    Kind.WIRING,
    lambda it: it.other_outside,
)
FIRST_VALUE: OriginRow[InputFacts] = OriginRow(
    "the first value differs that the step is given", Kind.DATA, lambda it: it.is_data
)

INPUT_RULES: tuple[OriginRow[InputFacts], ...] = (
    OriginRow(
        "a Cell's parameter is named by the calls in it", NOTHING, lambda it: it.of_container
    ),
    OriginRow("a moving statistic differs before its use", Kind.PARAMETER, lambda it: it.is_state),
    OTHER_PARAMETER,
    OriginRow(
        "a parameter differs before its first use",
        Kind.PARAMETER,
        lambda it: it.is_parameter and not it.of_other_call,
    ),
    MADE_ALONE,
    OTHER_CALL,
    OriginRow("one side is given no tensor", Kind.ARGUMENT, lambda it: it.one_sided),
    OriginRow(
        "the input comes from two calls that are no partners",
        Kind.WIRING,
        lambda it: it.made_by_others,
    ),
    OriginRow(
        "the input is another output of the same call",
        Kind.WIRING,
        lambda it: it.made_by_partners and it.other_output,
    ),
    OriginRow(
        "an earlier change reaches this input",
        EARLIER,
        lambda it: it.made_by_partners and it.follows,
    ),
    OriginRow(
        "the call that made the input agrees, a view between them does not",
        Kind.WIRING,
        lambda it: it.made_by_partners,
    ),
    OTHER_OUTSIDE,
    OriginRow("the batch differs", Kind.DATA, lambda it: it.is_data and it.is_fed),
    FIRST_VALUE,
    OriginRow("no recorded call made the input", Kind.OUTSIDE, lambda it: True),
)
CALL_RULES: tuple[OriginRow[CallFacts], ...] = (
    OriginRow(EARLIER_CHANGE, EARLIER, lambda it: it.follows),
    OriginRow("the outputs differ by no more than the inputs do", NOTHING, lambda it: it.carried),
    OriginRow("an argument differs", Kind.ARGUMENT, lambda it: it.argument),
    OriginRow("a random call", Kind.RANDOM, lambda it: it.is_random),
    OriginRow("a collective gives another result", Kind.COMMUNICATION, lambda it: it.is_collective),
    OriginRow("the inputs agree, the output does not", Kind.COMPUTATION, lambda it: True),
)
GRADIENT_RULES: tuple[OriginRow[GradientFacts], ...] = (
    LACKING,
    OriginRow(
        "the gradient ends at a call that one side lacks",
        Kind.CALLS,
        lambda it: it.missing and it.ended_alone,
    ),
    FROZEN,
    EXCHANGED,
    OriginRow(EARLIER_CHANGE, EARLIER, lambda it: it.follows),
    OriginRow("one side has no gradient", Kind.GRADIENT, lambda it: it.missing),
    OriginRow(
        "the gradient differs by no more than those that arrive", NOTHING, lambda it: it.carried
    ),
    OriginRow("the forward agrees, the gradient does not", Kind.GRADIENT, lambda it: True),
)
UPDATE_RULES: tuple[OriginRow[UpdateFacts], ...] = (
    OriginRow("a number of the update differs", Kind.OPTIMIZER, lambda it: it.is_number),
    OTHER_CLASS,
    MISSING,
    OriginRow(
        "a call between gradients and optimizer that one side lacks",
        Kind.OPTIMIZER,
        lambda it: it.made_alone,
    ),
    OriginRow(EARLIER_CHANGE, EARLIER, lambda it: it.follows),
    OriginRow(
        "the gradients agree, those that enter do not", Kind.OPTIMIZER, lambda it: it.is_gradient
    ),
    OriginRow("a state differs before the update", Kind.OPTIMIZER, lambda it: it.is_state),
    OriginRow("all that enters agrees, the results do not", Kind.OPTIMIZER, lambda it: True),
)


def first_rule(rules: Sequence[OriginRow[Facts]], facts: Facts) -> OriginRow[Facts]:
    """Return the first rule of a table whose condition holds; the last of each table always does.

    >>> first_rule(CALL_RULES, CallFacts(is_random=True)).kind, first_rule(CALL_RULES, CallFacts()).kind
    ('random', 'computation')
    """
    return next(rule for rule in rules if rule.holds(facts))
