"""The parts of an instance, from sites to the state. Attributes are named like the keys of the file."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StringConstraints,
    ValidationError,
)

from optalloc.errors import Fault, InputError
from optalloc.io.faults import json_path, shape_faults
from optalloc.quantities import (
    EMPTY,
    Amount,
    Count,
    Flag,
    Fraction01,
    FrozenDict,
    Id,
    Mapped,
    Nat,
    Number,
    OneOf,
    Permille,
    Positive,
    Signed,
    Tick,
)

__all__ = [
    "TERM_NAMES", "After", "Dataset", "DeviceType", "Input", "Link", "Listed", "Mode", "Model", "Node",
    "Objective", "Part", "Reference", "Scaling", "Site", "StateChoice", "StateInput", "StateModel",
    "StateSegment", "StateTask", "StateTransfer", "Task", "Throughput", "Use",
]  # fmt: skip

ZERO, ONE = Number("0"), Number("1")

Item = TypeVar("Item")
Listed = tuple[Item, ...]
"""A list in the file, a tuple in Python (where lists are welcome too)."""
Some = Annotated[tuple[Item, ...], Field(min_length=1)]
"""A list with at least one entry."""


class Part(BaseModel):
    """Base of everything in an instance: frozen, unknown keys refused.

    Every field type is strict by itself (no text for numbers, no 1 for true). ``strict=True`` is not set for
    the whole model, as type checkers would then refuse ints and floats for the exact `Number` fields.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, protected_namespaces=())

    def __init__(self, **values: Any):
        try:
            super().__init__(**values)
        except ValidationError as error:
            found = shape_faults(error, type(self))
            raise InputError(Fault(json_path(steps), message) for steps, message in found) from None

    # Tells pydantic that this __init__ only wraps its own: nested parts are then validated without it.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def replace(self, **changes: Any) -> Self:
        """A validated copy with some fields changed."""
        kept = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**(kept | changes))


class Site(Part):
    """A place with nodes, data or both."""

    id: Id
    tier: Id = "cloud"
    """``cloud``, ``edge`` or any other word; for people."""
    storage_gb: Amount | None = None
    """Room for staged replicas in GB; null: unlimited. Home replicas take none."""


class Link(Part):
    """A directed network link between two sites."""

    id: Id
    from_: Id = Field(alias="from")
    """Site at which transfers enter."""
    to: Id
    """Site at which they leave."""
    bandwidth_gbps: Positive
    """Gbit/s of one transfer."""
    latency_s: Amount = ZERO
    egress_usd_per_gb: Amount = ZERO
    channels: Count | None = None
    """Transfers and streams carried at once, each at full rate; null: any number."""
    both_ways: Flag = False
    """Shorthand for a second link ``<id>:back`` in the other direction, with its own channels."""


class Dataset(Part):
    """Data that can serve tasks."""

    id: Id
    size_gb: Amount
    sites: Some[Id]
    """Home sites: a replica is there from ``available_s`` on, for ever."""
    quality: Fraction01 = ONE
    price_usd: Amount = ZERO
    pricing: Literal["per_use", "once"] = "per_use"
    """``per_use``: each task pays; ``once``: paid once, however many use it."""
    relevance: Mapped[Fraction01] = EMPTY
    """Domain -> relevance in [0, 1]; a missing domain counts 0."""
    available_s: Amount = ZERO
    """Earliest access or transfer."""
    max_readers: Count | None = None
    """Licence seats: runs that read it at a time; null: any number."""
    streamable: Flag = False
    """May be read over the network while a task runs."""


class DeviceType(Part):
    """A kind of accelerator."""

    id: Id
    memory_gb: Amount | None = None
    """Memory of one device; null: unlimited."""
    interconnect_gbps: Amount = ZERO
    """Gbit/s between devices; used by the ``ring`` scaling."""


class Node(Part):
    """A pool of identical devices at a site."""

    id: Id
    site: Id
    device_type: Id
    devices: Count
    usd_per_device_hour: Amount = ZERO
    availability: Listed[tuple[Amount, Amount, Nat]] | None = None
    """Windows [start_s, end_s, devices]; nothing outside them; null: all devices always."""
    extra: Mapped[Amount] = EMPTY
    """Other capacities, e.g. cpu or ram_gb."""


class Scaling(Part):
    """How the rate of a model grows with the number of devices."""

    name: Literal["linear", "amdahl", "affine_log", "ring"]
    parameters: Mapped[Amount] = EMPTY
    """amdahl: f; affine_log: a, b, c; ring: gam, batch_samples; linear: none."""


class Model(Part):
    """What tasks train."""

    id: Id
    domain: Id
    """Tasks of this model look up the relevance of data by it."""
    size_gb: Amount = ZERO
    """Gradient size; used by the ``ring`` scaling."""
    scaling: Scaling | None = None
    """Extends rates from one device to more; null: only measured counts exist."""
    compression: Amount = ONE
    """Factor on ``size_gb``."""


def _text_keys(measured: Any) -> Any:
    """Device counts given as ints in Python become the texts that JSON wants."""
    if not isinstance(measured, Mapping):
        return measured
    return {str(key) if type(key) is int else key: rate for key, rate in measured.items()}


Counted = Annotated[str, Strict(), StringConstraints(pattern="^[1-9][0-9]{0,8}$")]
"""A device count as the key of an object."""


class Throughput(Part):
    """Measured rates of one model on one device type."""

    model: Id
    device_type: Id
    measured: Annotated[dict[Counted, Amount], BeforeValidator(_text_keys), AfterValidator(FrozenDict)]
    """Device count -> samples/s of the whole job; 0: does not run there."""


class Reference(Part):
    """The devices on which ``reference_hours`` were taken."""

    device_type: Id
    devices: Count


class Input(Part):
    """One of several data inputs of a task."""

    datasets: Listed[Id] | None = None
    """Candidates; null: all with relevance > 0."""
    min_utility: Fraction01 = ZERO
    share: Positive = ONE
    """Weight in the task's utility."""


class After(Part):
    """A predecessor."""

    id: Id
    lag_s: Amount = ZERO
    """Least time between its end and the start of this task."""


class Use(Part):
    """Devices of a node."""

    node: Id
    devices: Count


class Mode(Part):
    """One way to run a task, written out."""

    id: Id
    uses: Some[Use]
    duration_ticks: Count
    datasets: Listed[Id] = ()
    """All of these are read."""
    usd: Amount = ZERO
    """Money of the run without data; prices and egress of data are added."""
    utility: Permille = 1000


class Task(Part):
    """A run to be placed, described by physics (``model``, ...) or by explicit ``modes``."""

    id: Id
    model: Id | None = None
    domain: Id | None = None
    """Default: the model's."""
    release_s: Amount = ZERO
    due_s: Signed | None = None
    """Soft; null: never late."""
    deadline_s: Amount | None = None
    """Hard; null: none."""
    weight: Amount = ONE
    samples: Amount | None = None
    """Work on perfect data, in samples."""
    reference_hours: Amount | None = None
    """Work as hours on ``reference``, instead of ``samples``."""
    reference: Reference | None = None
    device_counts: Some[Count] | None = None
    """Allowed numbers of devices; null: all for which a rate is known."""
    memory_gb_per_device: Amount = ZERO
    extra: Mapped[Amount] = EMPTY
    """Demands of the whole run on the node's ``extra``."""
    setup_s: Mapped[Amount] = EMPTY
    """Device type -> time before computing starts; billed."""
    datasets: Listed[Id] | None = None
    """Candidates, one of which is read; null: all with relevance > 0; []: needs no data."""
    inputs: Some[Input] | None = None
    """Several inputs instead of ``datasets``."""
    min_utility: Fraction01 = ZERO
    budget_usd: Amount | None = None
    """Limit of the mode's own money."""
    after: Listed[After] = ()
    reject_penalty: Amount | None = None
    """null: must run."""
    kappa: Amount = ZERO
    """Convergence sensitivity: how much more work poor data need."""
    sites: Some[Id] | None = None
    """Allowed sites; null: all."""
    modes: Some[Mode] | None = None
    """Explicit modes instead of the physics."""


TERM_NAMES: Final = (
    "makespan", "weighted_completion", "weighted_flow", "weighted_tardiness", "late", "rejected", "cost",
    "utility_loss",
)  # fmt: skip
Weighted = Annotated[dict[Annotated[str, OneOf(TERM_NAMES)], Amount], AfterValidator(FrozenDict)]
"""Term -> number."""


class Objective(Part):
    """What is minimised, level by level, under limits."""

    levels: Some[Annotated[Weighted, Field(min_length=1)]] = (FrozenDict(weighted_completion=ONE, cost=ONE),)
    """Lexicographic: each a weighted sum, term -> weight."""
    limits: Weighted = EMPTY
    """Term -> largest value; ``cost`` is the plan's budget in $."""


class StateInput(Part):
    """How a task of the state reads one dataset."""

    dataset: Id
    access: Literal["local", "staged", "streamed"]
    route: Some[Id] | None = None


class StateChoice(Part):
    """The mode of a task of the state, by content."""

    inputs: Listed[StateInput] = ()
    mode: Id | None = None
    """Id of the explicit mode; null for tasks without ``modes``."""


class StateSegment(Part):
    """Devices held in [start, end), in ticks."""

    uses: Some[Use]
    start: Tick
    end: Tick


class StateTask(Part):
    """A task that is running already."""

    task: Id
    rejected: Flag = False
    choice: StateChoice | None = None
    segments: Listed[StateSegment] = ()


class StateTransfer(Part):
    """A transfer under way or done."""

    dataset: Id
    site: Id
    route: Some[Id]
    start: Tick


class StateModel(Part):
    """Where things stand at tick 0: paid already, not to be changed."""

    tasks: Listed[StateTask] = ()
    transfers: Listed[StateTransfer] = ()
    purchases: Listed[Id] = ()
    time_zero: Annotated[str, Strict()] | None = None
    """ISO 8601; for people."""
