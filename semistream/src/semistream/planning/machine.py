"""What a machine takes for the steps that the cost models count."""

from dataclasses import dataclass

from semistream.modelled_disk import DISK_7200_RPM, OBJECT_STORE, SSD, ModelledDisk

__all__ = ["DEVICES", "PAPERS", "Machine", "on_this_processor"]


@dataclass(frozen=True)
class Machine:
    """The constants of the cost models (MESHJOIN 2007, table 1; HYBRIDJOIN 2011, table 1).

    Attributes:
        disk: what reading from R takes: c_I/O.
        look_up: seconds to look up a row of R in H_S: c_H.
        handle: seconds for a stream tuple: c_S + c_A + c_E + c_O.
        wait: seconds more for a tuple that waits; the papers' models have none.
        page: seconds for a page beside that.
    """

    disk: ModelledDisk
    look_up: float
    handle: float
    page: float = 0.0
    wait: float = 0.0


# A machine of the papers' time: a few memory accesses and some objects on a Pentium IV for each step.
PAPERS = Machine(disk=DISK_7200_RPM, look_up=0.5e-6, handle=1e-6)


# A core of a virtual machine, measured by measure.py on 2026-11-20.
_LOOK_UP, _HANDLE, _WAIT, _PAGE = 3.5e-9, 32e-9, 175e-9, 9e-6

DEVICES = {"hdd": DISK_7200_RPM, "ssd": SSD, "object-store": OBJECT_STORE}


def on_this_processor(device: str) -> Machine:
    """Return a machine of today with one of the devices."""
    if device not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {device!r}: choose one of them")
    return Machine(disk=DEVICES[device], look_up=_LOOK_UP, handle=_HANDLE, page=_PAGE, wait=_WAIT)
