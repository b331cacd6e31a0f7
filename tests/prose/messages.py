"""docs/messages.md, all texts of errors, refusals and notes: ``python -m tests.prose.messages`` writes it."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hostwright.common.text import markdown
from tests.places import PROJECT
from tests.prose.constants import Constants, constants_of

PAGE = PROJECT / "docs" / "messages.md"
INTRO = """\
# Messages

*For developers of Hostwright.*

All texts of errors, refusals and notes, by the module that makes them. A name in braces stands for a value, `…` for the
value of an option. Read the page as an operator would: each text says where, what is wrong and what to do. `make lint`
checks its prose. The page [Known failures](failures/index.md) has the texts of the failure rules.

`python -m tests.prose.messages` writes this page from the code.
"""
#: what carries a text to an operator beside exceptions, and which of its arguments that text is; others are labels
CARRIERS = {"Misfit": 1, "Note": 1, "ProofFinding": 0, "Reason": 0, "Refusal": 4}
#: parameters with labels, of functions that make an exception or a carrier
LABELS = {"expected", "have", "name", "want", "what", "why"}
#: how the names of functions begin that pass a text on to one of these
PASS_ON = re.compile(r"_*(fail(?!ing)|refuse(?!d)|wrong|warn|note|mistake|error)")
#: exceptions for programmers, which no operator sees
OF_PROGRAMMERS = {"AttributeError", "TypeError"}
HOLE = re.compile(r"\{[^}]*\}")


def messages(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """The texts in the code of modules (module → source), by module, each once and in the order of the code."""
    trees = {name: ast.parse(source) for name, source in sources.items()}
    constants = constants_of(trees)
    kinds = {top: _derived(trees.values(), {top}) for top in ("InputError", "HostError")}
    kinds["Exception"] = _derived(trees.values(), _builtin_exceptions()) - OF_PROGRAMMERS
    frames = {
        name: frame
        for tree in trees.values()
        for name, frame in _frames(tree, kinds["Exception"]).items()
        if name in kinds["Exception"]
    }
    found = {name: dict.fromkeys(_Module(tree, kinds, constants[name], frames).texts()) for name, tree in trees.items()}
    return {name: list(texts) for name, texts in sorted(found.items()) if texts}


def page() -> str:
    """The page of the texts of this checkout, as Markdown."""
    paths = (path for folder in ("hostwright", "roles") for path in (PROJECT / folder).rglob("*.py"))
    names = {".".join(path.relative_to(PROJECT).with_suffix("").parts): path for path in paths}
    found = messages({name: path.read_text("utf-8") for name, path in names.items()})
    parts, room = [INTRO], ""
    for name, texts in found.items():
        if (here := ".".join(name.split(".")[:2])) != room:
            parts.append(f"## {(room := here)}\n")
        parts += [f"**`{name}`**\n", "".join(f"- {markdown(' '.join(text.split()))}\n" for text in texts)]
    return "\n".join(parts)


def _builtin_exceptions() -> set[str]:
    return {name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, Exception)}


def _derived(trees: Iterable[ast.Module], tops: set[str]) -> set[str]:
    """These classes and all that derive from them."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    names = set(tops)
    while more := {name for name, above in bases.items() if above & names} - names:
        names |= more
    return names


@dataclass(frozen=True, slots=True)
class _Frame:
    """A call that makes a text from parameters of its function: ``BmcError(host, f"the BMC at {url} {sentence}")``."""

    parameters: list[str]
    call: ast.Call
    text: ast.JoinedStr
    kind: str  #: the exception or carrier that it makes


def _frames(tree: ast.AST, kinds: Collection[str]) -> dict[str, _Frame]:
    """The frames of a module by the name of their function or, for ``__init__``, of their class."""
    owners = {
        init: node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name in set(kinds) - {"HostError"}
        for init in node.body
        if isinstance(init, ast.FunctionDef) and init.name == "__init__"
    }
    found: dict[str, _Frame] = {}
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        parameters = [one.arg for one in function.args.args if one.arg != "self"]
        for call in [node for node in ast.walk(function) if isinstance(node, ast.Call)]:
            named = ast.unparse(call.func)
            kind = owners.get(function, "") if named == "super().__init__" else named.rpartition(".")[2]
            for text in call.args if kind in kinds else []:
                if isinstance(text, ast.JoinedStr) and _named_in(text) & set(parameters):
                    found.setdefault(owners.get(function, function.name), _Frame(parameters, call, text, kind))
    return found


def _named_in(text: ast.JoinedStr) -> set[str]:
    holes = (one.value for one in text.values if isinstance(one, ast.FormattedValue))
    return {hole.id for hole in holes if isinstance(hole, ast.Name)}


class _Module:
    """The texts of a module: those of exceptions and carriers, of functions that return one or pass one on."""

    def __init__(
        self, tree: ast.Module, kinds: Mapping[str, set[str]], constants: Constants, frames: Mapping[str, _Frame]
    ):
        self._kinds, self._constants = kinds, constants
        self._bound: dict[str, str] = {}  #: texts of parameters within a frame, and of local variables
        self._local: dict[ast.FunctionDef | None, dict[str, str]] = {}  #: texts of local variables by function
        self._functions: dict[ast.AST, ast.FunctionDef] = {}  #: the innermost function of each call
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            self._functions |= dict.fromkeys(ast.walk(function), function)
        self._calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        self._frames = {**frames, **_frames(tree, kinds["Exception"] | set(CARRIERS))}
        self._makers = {
            node.name: [one.arg for one in node.args.args if one.arg != "self"]
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.returns
            if (kinds["Exception"] | set(CARRIERS)) & set(re.findall(r"\w+", ast.unparse(node.returns)))
        }
        self._own = {
            call
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef) and node.name in kinds["Exception"]
            for call in ast.walk(node)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__"
        }

    def texts(self) -> Iterator[str]:
        found: list[tuple[ast.Call, str]] = []
        framed: set[ast.Call] = set()  #: of frames that are used in this module
        for call in sorted(self._calls, key=lambda node: (node.lineno, node.col_offset)):
            name = ast.unparse(call.func).rpartition(".")[2]
            self._bound = self._locals(call)
            for value in self._values(name, call):
                for text in self._texts(value):
                    if " " in text and len(re.findall("[A-Za-z]{2,}", HOLE.sub("", text))) > 1:
                        found.append((call, self._framed(name, call, value, text)))
                        framed |= {self._frames[name].call} if name in self._frames else set()
        yield from (text for call, text in found if call not in framed)

    def _framed(self, name: str, call: ast.Call, value: ast.expr, text: str) -> str:
        """A text of a call as an operator sees it."""
        frame = self._frames.get(name)
        if frame is None:
            return self._where(name, call, value) + text
        given = [*zip(frame.parameters, call.args, strict=False), *((f"{one.arg}", one.value) for one in call.keywords)]
        self._bound = self._locals(frame.call) | {arg: text if one is value else self._shown(one) for arg, one in given}
        whole = self._where(frame.kind, frame.call, frame.text) + self._texts(frame.text)[0]
        self._bound = self._locals(call)
        return whole

    def _locals(self, call: ast.Call) -> dict[str, str]:
        """The texts of the local variables of the function around a call."""
        function, self._bound = self._functions.get(call), {}
        if function in self._local:
            return self._local[function]
        nodes = list(ast.walk(function)) if function else []
        stored = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if stored[name] == 1:
                    if text := next((text for text in self._texts(value) if " " in text.strip()), ""):
                        self._bound[name] = text
        self._local[function] = self._bound
        return self._bound

    def _values(self, name: str, call: ast.Call) -> list[ast.expr]:
        """The arguments that may hold a text for people."""
        every = [*call.args, *(word.value for word in call.keywords)]
        if name in CARRIERS:
            at = CARRIERS[name]
            return [
                *call.args[at : at + 1],
                *(word.value for word in call.keywords if word.arg in ("sentence", "text")),
            ]
        if name in self._kinds["InputError"] and call not in self._own and name not in self._frames:
            return call.args[:1]
        if name in self._makers and ast.unparse(call.func) in (name, f"self.{name}"):
            named = [
                *zip(self._makers[name], call.args, strict=False),
                *((word.arg, word.value) for word in call.keywords),
            ]
            framed = _named_in(self._frames[name].text) if name in self._frames else set()
            return [value for arg, value in named if arg not in LABELS or arg in framed]
        return every if call in self._own or name in self._kinds["Exception"] or PASS_ON.match(name) else []

    def _where(self, name: str, call: ast.Call, value: ast.expr) -> str:
        """What stands before a text where it is printed: a host, a file, an option."""
        first = call.args[0] if call.args[1:] and value is call.args[1] else None
        of_host = name in self._kinds["HostError"] or name == "Note"
        if of_host or call in self._own:
            return "{host}: " if first is not None and (of_host or ast.unparse(first) == "host") else ""
        if name in self._makers or name in CARRIERS:
            return ""
        if name in self._kinds["InputError"]:
            rest = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "where")]
            return f"{self._shown(rest[0])}: ".replace("{…}", "{place}") if rest and value is call.args[0] else ""
        if first is None or not PASS_ON.match(name):
            return ""
        known = isinstance(first, ast.Constant) or (isinstance(first, ast.Name) and first.id in self._constants)
        return f"{self._shown(first)}: " if known else "{place}: "

    def _shown(self, node: ast.expr) -> str:
        return (self._texts(node) or [self._hole(node)])[0]

    def _texts(self, node: ast.expr) -> list[str]:
        """The texts that an expression may be; values that stand in them as names in braces."""
        texts: list[str] = []
        match node:
            case ast.Constant(value=str(text)):
                texts = [text]
            case ast.JoinedStr(values=parts):
                texts = [self._joined(parts)]
            case ast.Name(id=name) if name in self._bound:
                texts = [self._bound[name]]
            case ast.IfExp(body=body, orelse=other):
                texts = self._texts(body) + self._texts(other)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                ends = self._texts(right) or [self._hole(right)]
                texts = [text + ends[0] for text in self._texts(left)]
            case ast.BoolOp(values=values):
                texts = [text for one in values for text in self._texts(one)]
        return texts

    def _joined(self, parts: Sequence[ast.expr]) -> str:
        """The text of an f-string. Two values with one name get their whole expressions."""
        holes = {one: self._hole(one) for one in parts if isinstance(one, ast.FormattedValue)}
        for hole in {hole for hole in holes.values() if hole.startswith("{")}:
            same = {one: ast.unparse(one.value) for one in holes if holes[one] == hole}
            if len(set(same.values())) > 1:
                holes |= {
                    one: f"{{{code}}}"
                    for one, code in same.items()
                    if re.fullmatch(r"[a-z_.\[\]0-9]+", code) and "__" not in code
                }
        text = "".join(holes[one] if isinstance(one, ast.FormattedValue) else str(one.value) for one in parts)  # type: ignore[attr-defined]
        return re.sub(r"(\{[^}]+\})\1", r"\1", text)

    def _hole(self, node: ast.AST) -> str:
        """What stands for a value in a text: a constant's value, a command of ours, else a name in braces."""
        match node:
            case ast.Name(id=name) if name in self._bound:
                shown = self._bound[name]
            case ast.BinOp(left=ast.Name(id=name)):  # a constant in another unit
                shown = f"{{{name.strip('_').lower()}}}"
            case ast.Name(id=name) if name in self._constants:
                shown = self._constants[name]
            case ast.Call(func=ast.Name(id="Command"), args=[ast.Constant(value=str(verb)), *_], keywords=options):
                words = (
                    f" --{one.arg.strip('_')}" + ("" if getattr(one.value, "value", "") is True else " …")
                    for one in options
                    if one.arg and one.arg != "behind"
                )
                shown = f"``{verb.replace('.', ' ')}{''.join(words)}``"
            case ast.Call(func=ast.Name(id="suggestion")):
                shown = "did you mean {nearest}?"
            case ast.Call(func=ast.Name(id="len"), args=[value]):
                shown = f"{{number of {self._hole(value).strip('{}')}}}"
            case ast.Call(func=ast.Name(id="count"), args=[value, ast.Constant(value=str(noun))]):
                shown = f"{self._hole(value)} {noun}s"
            case ast.Call(func=ast.Name(id="shown_limit"), args=[value]):
                shown = f"{self._hole(value)} s".replace("_s} s", "}")
            case ast.IfExp(body=body, orelse=other):
                shown = next((text for text in self._texts(body) + self._texts(other) if text), self._hole(body))
            case ast.Attribute(value=owner, attr="name" | "exact") if ast.unparse(owner) != "self":
                shown = self._hole(owner)
            case ast.Attribute(attr=str(name)) | ast.Name(id=str(name)) | ast.Constant(value=str(name)):
                shown = f"{{{name.strip('_').lower()}}}"
            case _:
                shown = self._hole(inner) if (inner := _inner(node)) else "{…}"
        return shown


def _inner(node: ast.AST) -> ast.AST | None:
    """The part of an expression whose name says best what its value is."""
    match node:
        case (
            ast.Call(func=ast.Name(id="map" | "filter"), args=[_, value])
            | ast.Call(func=ast.Attribute(value=value, attr="split" | "splitlines" | "strip" | "lower" | "replace"))
            | ast.Tuple(elts=[ast.Starred(value=value), *_])
            | ast.ListComp(generators=[ast.comprehension(iter=value), *_])
            | ast.GeneratorExp(generators=[ast.comprehension(iter=value), *_])
            | ast.BoolOp(values=[value, *_])
            | ast.BinOp(left=value)
            | ast.FormattedValue(value=value)
            | ast.Call(args=[value, *_])
            | ast.Call(func=value)
            | ast.Subscript(value=value)
        ):
            return value
    return None


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
