"""The initializers of classes outside the scanned tree: what they may set of an object."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.evaluate.state import UNBOUND
from codemods.values import Class, External, Function, Instance, Opaque, Value, ancestry, describe, lineage

if TYPE_CHECKING:
    from codemods.evaluate.arguments import Arguments
    from codemods.evaluate.machine import Machine

_HUGGING_FACE = frozenset(
    {
        "add_cross_attention", "architectures", "bos_token_id", "chunk_size_feed_forward", "cross_attention_hidden_size",
        "decoder_start_token_id", "dtype", "eos_token_id", "finetuning_task", "id2label", "is_decoder", "is_encoder_decoder",
        "label2id", "max_length", "min_length", "name_or_path", "num_labels", "output_attentions", "output_hidden_states",
        "pad_token_id", "prefix", "problem_type", "pruned_heads", "return_dict", "sep_token_id", "task_specific_params",
        "tie_encoder_decoder", "tie_word_embeddings", "tokenizer_class", "torch_dtype", "torchscript", "transformers_version",
    }
)  # fmt: skip
_KEYWORDS = frozenset({"**"})

_THREAD = frozenset(
    {
        "_args", "_daemonic", "_handle", "_ident", "_initialized", "_invoke_excepthook", "_is_stopped", "_kwargs", "_name",
        "_native_id", "_started", "_stderr", "_target", "_tstate_lock", "daemon", "ident", "name", "native_id",
    }
)  # fmt: skip
_TEST_CASE = frozenset({"_cleanups", "_outcome", "_subtest", "_testMethodDoc", "_testMethodName", "_type_equality_funcs"})
_TORCH = frozenset({"_backward_hooks", "_buffers", "_forward_hooks", "_modules", "_parameters", "call_super_init", "training"})

_SETS = {
    **dict.fromkeys(("dict", "list", "set", "OrderedDict"), frozenset[str]()),
    **dict.fromkeys(("Exception", "AssertionError", "RuntimeError", "TypeError", "ValueError"), frozenset({"args"})),
    "Module": _TORCH,  # that of flax.nnx has no initializer
    "Thread": _THREAD,
    "PretrainedConfig": _HUGGING_FACE | _KEYWORDS,
    "PreTrainedConfig": _HUGGING_FACE | _KEYWORDS,
    "Namespace": _KEYWORDS,
    "SimpleNamespace": _KEYWORDS,
}
"""The names that initializers set; `**` are those of their keywords."""

_FROM = ("builtins.", "torch.nn.", "flax.nnx.", "threading.", "transformers.", "argparse.", "types.", "collections.")
_GENERIC = ("Generic[", "typing.Generic[", "Protocol[", "typing.Protocol[")


def base_of(cls: Class) -> Value:
    """Return the first base of a class outside the scanned tree, None where it has none."""
    return next((each for each in ancestry(cls) if not isinstance(each, Class)), None)


def initialize(machine: Machine, made: Instance, base: Value, arguments: Arguments) -> None:
    """Forget what the initializer of a base may set of an object: what its classes say of it, and what was set before."""
    if isinstance(base, Opaque) and base.text.startswith(_GENERIC):
        return
    path = base.path if isinstance(base, External) else ""
    sets = _names(path)
    held = {name for each in lineage(made.cls) for name, value in machine.members(each.scope).items() if _is_plain(value)}
    for name in sorted(held | machine.members(made.id).keys()):
        if _may_set(machine, sets, name, arguments):
            why = f"the initializer of `{describe(base)}` may set it"
            machine.state.cells[(made.id, name)] = machine.unknown(f"{made.cls.name}().{name}", why, arguments.node)


def _names(path: str) -> frozenset[str] | None:
    """Return the names that an initializer sets, None where they are not known."""
    last = path.rpartition(".")[2]
    if last.endswith("TestCase"):
        return _TEST_CASE
    if path.startswith("collections.abc."):
        return frozenset()
    return _SETS.get(last) if path.startswith(_FROM) else None


def _is_plain(value: Value) -> bool:
    """Say whether something that a class holds can be hidden by an attribute of the object."""
    return value is not UNBOUND and not isinstance(value, Function | Class)


def _may_set(machine: Machine, sets: frozenset[str] | None, name: str, arguments: Arguments) -> bool:
    if name.startswith("__"):
        return False
    if sets is None:
        return not name.isupper() or name in arguments.keywords
    if name in sets:
        return True
    return "**" in sets and (name in arguments.keywords or (arguments.spread and name not in _parameters(machine)))


def _parameters(machine: Machine) -> set[str]:
    """Return the parameters of the function that is being executed: what it spreads has other names."""
    function = machine.frame.function
    if not isinstance(function, ast.FunctionDef):
        return set()
    return {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
