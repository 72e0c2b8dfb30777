"""Master data R: one interface over all stores."""

from semistream.relation.base import Counters, Page, Relation
from semistream.relation.growing import GrowingRelation
from semistream.relation.memory import MemoryRelation
from semistream.relation.page_file import PageFile
from semistream.relation.page_file_writer import write_page_file

__all__ = ["Counters", "GrowingRelation", "MemoryRelation", "Page", "PageFile", "Relation", "write_page_file"]
