"""The link from each task of Freshet's Dags to Freshet's own page."""

from __future__ import annotations

from typing import Any

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

TAG = "freshet"  # all our Dags have it


class PageLink(BaseOperatorLink):
    """A button with the address of the page that all pipelines are on."""

    name = "Freshet"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the page's address; an empty text for a task of somebody else's Dag."""
        if TAG not in operator.dag.tags:
            return ""
        return f"{conf.get('api', 'base_url', fallback='').rstrip('/')}/plugin/freshet"
