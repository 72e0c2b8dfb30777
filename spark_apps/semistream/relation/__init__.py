"""Master data R, one interface over all stores."""

from spark_apps.semistream.relation.base import Counters, Page, Relation
from spark_apps.semistream.relation.memory import MemoryRelation
from spark_apps.semistream.relation.page_file import PageFile
from spark_apps.semistream.relation.page_file_writer import write_page_file

__all__ = ["Counters", "MemoryRelation", "Page", "PageFile", "Relation", "write_page_file"]
