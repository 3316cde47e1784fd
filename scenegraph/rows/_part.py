"""The loop of a kernel: vectors of rows, of which all scalars are computed one after the other."""

import itertools
from collections.abc import Sequence
from typing import Any

from . import _assembly as ir
from ._graph import Branch, Loop, Node, topological_order
from ._mathematics import constant, declared
from ._operands import bytes_of, Element, Operand, Result, WIDTH
from ._operations import (
    as_memory,
    as_register,
    element_type,
    emit,
    I1,
    I8,
    I32,
    I64,
    memory_type,
    Operation,
)


# Operands of no more numbers a row are loaded and stored as whole vectors, and then taken apart.
_SHUFFLED = 4
_POINTER = ir.POINTER
_FLAGS = ir.VectorType(I1, WIDTH)


def write_part(
    operands: Sequence[Operand], results: Sequence[Result], *, checks: bool = False
) -> str:
    """Returns LLVM code: the function `part`, which computes the results of a range of rows.

    With `checks`, a look-up outside of its table ends the process.
    """
    module = ir.Module("rows")
    _Part(module, operands, results, checks=checks).write()
    return str(module)


class _Scopes:
    """Values of nodes that are known in the loops and branches that code stands in."""

    def __init__(self) -> None:
        self.known: dict[Node, Any] = {}
        self._own: list[list[Node]] = []

    def __contains__(self, node: Node) -> bool:
        return node in self.known

    def __getitem__(self, node: Node) -> Any:
        return self.known[node]

    @property
    def depth(self) -> int:
        """The number of loops and branches."""
        return len(self._own)

    def put(self, node: Node, value: Any, *, everywhere: bool = False) -> None:
        """Keeps a value until the loop or branch ends, or for good."""
        self.known[node] = value
        if self._own and not everywhere:
            self._own[-1].append(node)

    def enter(self) -> None:
        """Begins a loop or a branch."""
        self._own.append([])

    def leave(self) -> None:
        """Ends it: what belongs to it is no longer known."""
        for node in self._own.pop():
            del self.known[node]


class _Part:
    """The function `part`: a loop over vectors of rows."""

    def __init__(
        self,
        module: ir.Module,
        operands: Sequence[Operand],
        results: Sequence[Result],
        *,
        checks: bool,
    ):
        self.checks = checks
        kind = ir.FunctionType(ir.VOID, [_POINTER, I64, I64, I64, _POINTER])
        self.function = ir.Function(module, kind, "part")
        self.operands, self.results = operands, results
        # What is known before the first row, loads of a vector of rows, and what is made of them.
        before, loop, load, body, done = map(
            self.function.append_basic_block, ("before", "loop", "load", "body", "done")
        )
        self.before, self.loads, self.inside = map(ir.IRBuilder, (before, load, body))
        self.loop, self.body, self.done = loop, body, done
        # What is known in the loops and branches that code stands in: values of nodes, those of all
        # rows as vectors, and what is computed there in any case.
        self.values, self.vectors = _Scopes(), _Scopes()
        self.needed: set[Node] = set()
        self.loaded: dict[int, list[Any]] = {}

    def write(self) -> None:
        """Writes the whole function."""
        pointers, first, last, end, sums = self.function.args
        self.pointers = [
            _load(self.before, pointers, k, _POINTER)
            for k in range(len(self.operands) + len(self.results))
        ]
        loop = ir.IRBuilder(self.loop)
        self.row = loop.phi(I64)
        loop.cbranch(loop.icmp_signed("<", self.row, last), self.loads.block, self.done)
        self._write_results(end, sums)
        self.row.add_incoming(self.inside.add(self.row, constant(I64, WIDTH)), self.inside.block)
        self.row.add_incoming(first, self.before.block)
        self.inside.branch(self.loop)
        self.loads.branch(self.body)
        self.before.branch(self.loop)
        ir.IRBuilder(self.done).ret_void()

    # --- Nodes

    def _compute(self, nodes: Sequence[Node]) -> None:
        """Computes nodes and what they need, where code is written now."""
        outer, order = self.needed, self._missing(nodes)
        self.needed = set(order)
        for node in order:
            self._compute_one(node)
        self.needed = outer

    def _missing(self, nodes: Sequence[Node], *, within: bool = False) -> list[Node]:
        return topological_order(nodes, within=within, known=self.values.known)

    def _compute_one(self, node: Node) -> None:
        if node in self.values:
            return
        value = self._value(node)
        # Loads and what is known before the first row are known everywhere.
        everywhere = node.early or isinstance(node.value, Element)
        self.values.put(node, value, everywhere=everywhere)

    def _value(self, node: Node) -> Any:
        if isinstance(node.value, Element):
            return self._input(node)
        if isinstance(node.value, Loop):
            return self._loop(node, node.value)
        if isinstance(node.value, Branch):
            return self._branch(node, node.value)
        if node.operation == "result":
            return self.values[node.inputs[0]][node.params["place"]]
        if node.operation == "look_up":
            return self._look_up(node)
        if node.operation == "any_in_packet":
            return self._any(self._take(node.inputs[0], True))
        builder = self.before if node.early else self.inside
        kinds = [x.dtype for x in node.inputs]
        operation = Operation(builder, kinds, node.dtype, node.params or {})
        return emit(node.operation, operation, [self._take(x, node.varying) for x in node.inputs])

    def _take(self, node: Node, varying: bool) -> Any:
        """Returns a node's value, for all rows of the vector if it is asked for as `varying`."""
        kind = element_type(node.dtype)
        if node.is_constant:
            return constant(ir.VectorType(kind, WIDTH) if varying else kind, node.value)
        if node.varying or not varying:
            return self.values[node]
        if node not in self.vectors:
            builder = self.before if node.early else self.inside
            vector = _spread(builder, self.values[node])
            self.vectors.put(node, vector, everywhere=node.early)
        return self.vectors[node]

    # --- Loops and branches

    def _enter(self) -> None:
        self.values.enter()
        self.vectors.enter()

    def _leave(self) -> None:
        self.values.leave()
        self.vectors.leave()

    def _append(self, *names: str) -> list[Any]:
        return [self.function.append_basic_block(name) for name in names]

    def _loop(self, node: Node, loop: Loop) -> list[Any]:
        """Turns until the condition is false for all rows; those that are done stay as they are."""
        b, masked = self.inside, loop.condition.varying
        starts = zip(node.inputs, loop.variables, strict=False)
        starts = [self._take(start, variable.varying) for start, variable in starts]
        before = b.block
        head, turn, done = self._append("head", "turn", "end")
        b.branch(head)
        b.position_at_end(head)
        self._enter()
        phis = [b.phi(x.type) for x in starts]
        for variable, phi, start in zip(loop.variables, phis, starts, strict=True):
            phi.add_incoming(start, before)
            self.values.put(variable, phi)
        live = b.phi(_FLAGS) if masked else None
        self._compute([loop.condition])
        condition = self._take(loop.condition, masked)
        if live is not None:
            live.add_incoming(constant(_FLAGS, 1), before)
            condition = b.and_(live, condition)
        b.cbranch(self._any(condition) if masked else condition, turn, done)
        b.position_at_end(turn)
        self._compute(loop.following)
        pairs = zip(loop.following, loop.variables, phis, strict=True)
        following = [
            b.select(condition, self._take(x, True), phi)
            if masked and variable.varying
            else self._take(x, variable.varying)
            for x, variable, phi in pairs
        ]
        for phi, value in zip(phis, following, strict=True):
            phi.add_incoming(value, b.block)
        if live is not None:
            live.add_incoming(condition, b.block)
        b.branch(head)
        b.position_at_end(done)
        self._leave()
        return phis

    def _any(self, flags: Any) -> Any:
        kind = ir.IntType(WIDTH)
        return self.inside.icmp_unsigned("!=", self.inside.bitcast(flags, kind), constant(kind, 0))

    def _branch(self, node: Node, branch: Branch) -> list[Any]:
        index = node.inputs[0]
        # What is computed in any case comes first: what is needed elsewhere, or by all cases.
        each = [self._missing(case, within=True) for case in branch.cases]
        common = set.intersection(*map(set, each))
        for x in dict.fromkeys(itertools.chain(*each)):
            if x in common or x in self.needed:
                self._compute_one(x)
        varying = [
            index.varying or any(case[k].varying for case in branch.cases)
            for k in range(len(branch.cases[0]))
        ]
        if index.varying:
            return self._one_by_one(index, branch.cases)
        return self._switch(index, branch.cases, varying)

    def _case(self, case: Sequence[Node], varying: Sequence[bool]) -> list[Any]:
        self._compute(case)
        return [self._take(x, varies) for x, varies in zip(case, varying, strict=True)]

    def _switch(self, index: Node, cases: Any, varying: Sequence[bool]) -> list[Any]:
        """Computes the case that all rows have."""
        b, number = self.inside, self._take(index, False)
        blocks, [end] = self._append(*("case" for _ in cases)), self._append("end")
        # The last case is that of every other index, and of none below zero.
        signed = index.dtype.kind == "i"
        first = b.icmp_signed("<", number, constant(number.type, 0)) if signed else None
        number = b.select(first, constant(number.type, 0), number) if first else number
        switch = b.switch(number, blocks[-1])
        for k, block in enumerate(blocks[:-1]):
            switch.add_case(constant(number.type, k), block)
        found = []
        for case, block in zip(cases, blocks, strict=True):
            b.position_at_end(block)
            self._enter()
            found.append((self._case(case, varying), b.block))
            self._leave()
            b.branch(end)
        b.position_at_end(end)
        phis = []
        for k in range(len(varying)):
            phis.append(b.phi(found[0][0][k].type))
            for values, block in found:
                phis[-1].add_incoming(values[k], block)
        return phis

    def _one_by_one(self, index: Node, cases: Any) -> list[Any]:
        """Computes every case that some row of the vector has."""
        b, numbers = self.inside, self._take(index, True)
        # What is the same number in several cases is there before any of them is computed.
        known = [_constant_of(nodes) for nodes in zip(*cases, strict=True)]
        totals: list[Any] = [None if x is None else self._take(x, True) for x in known]
        for k, case in enumerate(cases):
            own = [i for i, x in enumerate(case) if x is not known[i]]
            if not own:
                continue
            number = constant(numbers.type, k)
            # Numbers below zero are the first case, those beyond the last the last.
            sign = "<=" if k == 0 else ">=" if k == len(cases) - 1 else "=="
            compare = b.icmp_signed if index.dtype.kind == "i" else b.icmp_unsigned
            flags = compare(sign, numbers, number)
            before, [then, end] = b.block, self._append("then", "end")
            b.cbranch(self._any(flags), then, end)
            b.position_at_end(then)
            self._enter()
            values = self._case([case[i] for i in own], [True] * len(own))
            self._leave()
            pairs = list(zip(own, values, strict=True))
            values = [x if totals[i] is None else b.select(flags, x, totals[i]) for i, x in pairs]
            inner = b.block
            b.branch(end)
            b.position_at_end(end)
            for i, value in zip(own, values, strict=True):
                phi = b.phi(value.type)
                phi.add_incoming(value, inner)
                other = constant(value.type, 0) if totals[i] is None else totals[i]
                phi.add_incoming(other, before)
                totals[i] = phi
        return totals

    # --- Operands

    def _input(self, node: Node) -> Any:
        number, place, dtype = node.value
        if not node.varying:
            value = _load(self.before, self.pointers[number], place, memory_type(dtype))
            return as_register(self.before, value, dtype)
        # Loaded where it is first needed, but before loops and branches.
        b = self.loads if self.values.depth else self.inside
        if number not in self.loaded:
            self.loaded[number] = self._load_rows(b, number)
        if self.loaded[number][place] is None:
            self._load_block(b, number, place)
        return as_register(b, self.loaded[number][place], dtype)

    def _address(self, builder: Any, size: int, place: int, pointer: Any, kind: Any) -> Any:
        row = builder.mul(self.row, constant(I64, size))
        index = builder.add(row, constant(I64, place))
        return builder.gep(pointer, [index], source_etype=kind)

    def _load_rows(self, b: Any, number: int) -> list[Any]:
        """Loads the rows of a vector and takes their numbers apart, if these are few."""
        operand, pointer = self.operands[number], self.pointers[number]
        if operand.size > _SHUFFLED:
            return [None] * operand.size
        kind = memory_type(operand.dtype)
        address = self._address(b, operand.size, 0, pointer, kind)
        wide = ir.VectorType(kind, WIDTH * operand.size)
        whole = b.load(address, typ=wide, align=bytes_of(operand.dtype))
        return _apart(b, whole, operand.size)

    def _load_block(self, b: Any, number: int, place: int) -> None:
        """Loads some numbers of every row of the vector, and takes them apart."""
        operand, pointer = self.operands[number], self.pointers[number]
        kind = memory_type(operand.dtype)
        first = place - place % WIDTH
        count = min(WIDTH, operand.size - first)
        address = self._address(b, operand.size, first, pointer, kind)
        rows = []
        for lane in range(WIDTH):
            at = b.gep(address, [constant(I64, lane * operand.size)], source_etype=kind)
            row = b.load(at, typ=ir.VectorType(kind, count), align=bytes_of(operand.dtype))
            rows.append(_resized(b, row, WIDTH))
        self.loaded[number][first : first + count] = _transposed(b, rows)[:count]

    def _look_up(self, node: Node) -> list[Any]:
        """Loads numbers of a table that follow each other."""
        [place], its = node.inputs, node.params
        b = self.before if node.early else self.inside
        kind, columns = memory_type(node.dtype), its["columns"]
        register = lambda x: as_register(b, x, node.dtype)
        pointer = self.pointers[its["operand"]]
        if not node.varying:
            address = self._place_in(b, pointer, self._take(place, False), place, its, kind)
            return [register(_load(b, address, k, kind)) for k in range(len(columns))]
        places, count = self._take(place, True), len(columns)
        lanes = [b.extract_element(places, constant(I32, lane)) for lane in range(WIDTH)]
        addresses = [self._place_in(b, pointer, x, place, its, kind) for x in lanes]
        if count == 1:
            vector = ir.constant_of(ir.VectorType(kind, WIDTH), ir.UNDEFINED)
            for lane, address in enumerate(addresses):
                number = b.load(address, typ=kind)
                vector = b.insert_element(vector, number, constant(I32, lane))
            return [register(vector)]
        wide = ir.VectorType(kind, count)
        rows = [b.load(x, typ=wide, align=bytes_of(node.dtype)) for x in addresses]
        return [register(x) for x in _apart(b, _joined(b, rows), count)]

    def _place_in(self, b: Any, pointer: Any, index: Any, node: Node, its: dict, kind: Any) -> Any:
        """Returns the address of a place of a table."""
        if index.type.width < 64:
            index = b.sext(index, I64) if node.dtype.kind == "i" else b.zext(index, I64)
        offset = b.mul(index, constant(I64, its["stride"]))
        offset = b.add(offset, constant(I64, its["columns"].start))
        table = self.operands[its["operand"]]
        # Of a long table, a group's length is known to the call alone.
        if self.checks and not table.long:
            last = constant(I64, table.size - len(its["columns"]))
            with b.if_then(b.icmp_unsigned(">", offset, last)):
                b.call(declared(b.module, "llvm.trap", ir.VOID, []), [])
        return b.gep(pointer, [offset], source_etype=kind)

    # --- Results

    def _write_results(self, end: Any, sums: Any) -> None:
        """Computes some numbers after the other, and stores or adds them at once."""
        b, offset = self.inside, 0
        self.needed = set(self._missing([node for x in self.results for node in x.nodes]))
        there: Any = None
        if any(x.reduced for x in self.results):
            there = self._rows_that_are_there(end)
        for result, pointer in zip(self.results, self.pointers[len(self.operands) :], strict=True):
            for first in range(0, len(result.nodes), WIDTH):
                vectors = []
                for node in result.nodes[first : first + WIDTH]:
                    for x in self._missing([node]):
                        self._compute_one(x)
                    vectors.append(self._take(node, True))
                if not result.reduced:
                    self._store_block(result, pointer, first, vectors)
                    continue
                for vector in vectors:
                    address = b.gep(sums, [constant(I64, offset)], source_etype=I8)
                    kept = b.select(there, vector, constant(vector.type, 0))
                    total = b.load(address, typ=vector.type, align=bytes_of(result.dtype))
                    add = b.fadd if result.dtype.kind == "f" else b.add
                    b.store(add(total, kept), address, align=bytes_of(result.dtype))
                    offset += WIDTH * bytes_of(result.dtype)

    def _rows_that_are_there(self, end: Any) -> Any:
        """Returns which rows of the vector are none that only fill it."""
        b, kind = self.inside, ir.VectorType(I64, WIDTH)
        numbers = ir.constant_of(kind, [constant(I64, lane) for lane in range(WIDTH)])
        return b.icmp_signed("<", numbers, _spread(b, b.sub(end, self.row)))

    def _store_block(self, result: Result, pointer: Any, first: int, block: list[Any]) -> None:
        """Stores some numbers of every row of the vector."""
        b, size, kind = self.inside, len(result.nodes), memory_type(result.dtype)
        block = [as_memory(b, x, result.dtype) for x in block]
        count = len(block)
        address = self._address(b, size, first, pointer, kind)
        if size <= _SHUFFLED:
            b.store(_interleaved(b, block), address, align=bytes_of(result.dtype))
            return
        empty = ir.constant_of(block[0].type, ir.UNDEFINED)
        rows = _transposed(b, [*block, *[empty] * (WIDTH - count)])
        for lane, row in enumerate(rows):
            at = b.gep(address, [constant(I64, lane * size)], source_etype=kind)
            b.store(_resized(b, row, count), at, align=bytes_of(result.dtype))


def _constant_of(nodes: Sequence[Node]) -> Node | None:
    """Returns the constant that most of some nodes are, if any is one."""
    constants = [x for x in nodes if x.is_constant]
    return max(constants, key=constants.count, default=None)


def _load(builder: Any, base: Any, place: int, kind: Any) -> Any:
    address = builder.gep(base, [constant(I64, place)], source_etype=kind)
    return builder.load(address, typ=kind)


def _spread(b: Any, value: Any) -> Any:
    """Returns a scalar as a vector."""
    kind = ir.VectorType(value.type, WIDTH)
    empty = ir.constant_of(kind, ir.UNDEFINED)
    first = b.insert_element(empty, value, constant(I32, 0))
    return b.shuffle_vector(first, empty, constant(ir.VectorType(I32, WIDTH), 0))


def _apart(b: Any, whole: Any, count: int) -> list[Any]:
    """Takes a vector of numbers row by row apart."""
    if count == 1:
        return [whole]
    empty = ir.constant_of(whole.type, ir.UNDEFINED)
    places = lambda c: _mask(range(c, WIDTH * count, count))
    return [b.shuffle_vector(whole, empty, places(c)) for c in range(count)]


def _joined(b: Any, parts: Sequence[Any]) -> Any:
    """Returns vectors one behind the other, as many as the next power of two."""
    parts, width = list(parts), parts[0].type.count
    while len(parts) & (len(parts) - 1):
        parts.append(ir.constant_of(parts[0].type, ir.UNDEFINED))
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        width *= 2
        parts = [b.shuffle_vector(x, y, _mask(range(width))) for x, y in pairs]
    return parts[0]


def _transposed(b: Any, vectors: Sequence[Any]) -> list[Any]:
    """Returns vectors of the first numbers of as many vectors, of the second ones, and so on."""
    rows, lanes, step = list(vectors), range(WIDTH), 1
    while step < WIDTH:
        # Blocks of `step` numbers beside the diagonal change places.
        low = _mask([k + WIDTH - step if k & step else k for k in lanes])
        high = _mask([k + WIDTH if k & step else k + step for k in lanes])
        for i in lanes:
            if not i & step:
                first, second = rows[i], rows[i + step]
                rows[i] = b.shuffle_vector(first, second, low)
                rows[i + step] = b.shuffle_vector(first, second, high)
        step *= 2
    return rows


def _resized(b: Any, vector: Any, count: int) -> Any:
    """Returns the first numbers of a vector, or one with more numbers, which are not said."""
    known = vector.type.count
    if count == known:
        return vector
    places = _mask([min(k, known) for k in range(count)])
    return b.shuffle_vector(vector, ir.constant_of(vector.type, ir.UNDEFINED), places)


def _interleaved(b: Any, vectors: list[Any]) -> Any:
    """Returns one vector of numbers row by row."""
    count = len(vectors)
    if count == 1:
        return vectors[0]
    whole = _joined(b, vectors)
    order = [WIDTH * (k % count) + k // count for k in range(WIDTH * count)]
    return b.shuffle_vector(whole, ir.constant_of(whole.type, ir.UNDEFINED), _mask(order))


def _mask(places: Sequence[int]) -> Any:
    places = list(places)
    return ir.constant_of(ir.VectorType(I32, len(places)), [constant(I32, k) for k in places])
