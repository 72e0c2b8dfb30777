"""The Kafka broker's address from an Airflow connection."""

from __future__ import annotations

from airflow.sdk import BaseHook

from foundation.errors import ConnectionFieldError


class BrokerHook(BaseHook):
    """Reads the broker's address from the connection `kafka_default`."""

    conn_name_attr = "conn_id"
    hook_name = "Freshet broker"
    conn_id = "kafka_default"

    def bootstrap(self) -> str:
        """Return the address as clients write it."""
        extra = self.get_connection(self.conn_id).extra_dejson
        if "bootstrap.servers" not in extra:
            raise ConnectionFieldError(
                f'connection {self.conn_id!r} must have {{"bootstrap.servers": "host:port"}} in its field `extra`',
                "Set it in Admin, Connections.",
            )
        return str(extra["bootstrap.servers"])
