"""What Freshet adds to Airflow: the page "Freshet" in the navigation, and a link to it from each task of its Dags."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from plugins.links import PageLink

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

ROOT = urlsplit(conf.get("api", "base_url", fallback="/")).path.rstrip("/")


def load() -> ASGIApp:
    """Import the page's app. That takes seconds."""
    from plugins.page.app import app

    return app


class Page:
    """The page's app. It is imported at the first request: every Airflow task loads this file, and none serves it.

    Args:
        load: what imports it. It runs in a thread, so that the web server answers other requests meanwhile.
    """

    def __init__(self, load: Callable[[], ASGIApp] = load) -> None:
        self._load = load
        self._once = asyncio.Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        app = self._app or await self._loaded()
        await app(scope, receive, send)

    async def _loaded(self) -> ASGIApp:
        async with self._once:
            if self._app is None:
                self._app = await asyncio.to_thread(self._load)
            return self._app


class FreshetPlugin(AirflowPlugin):
    """The page with its routes below /freshet, its entry in the navigation, and the link."""

    name = "freshet"
    fastapi_apps: list[Any] = [{"app": Page(), "url_prefix": "/freshet", "name": "Freshet"}]  # noqa: RUF012  # as Airflow declares it
    external_views: list[Any] = [  # noqa: RUF012  # the same
        {
            "name": "Freshet",
            "href": f"{ROOT}/freshet/",
            "destination": "nav",
            "url_route": "freshet",
            "nav_top_level": True,
            "icon": f"{ROOT}/freshet/web/icon.svg",
            "icon_dark_mode": f"{ROOT}/freshet/web/icon-dark.svg",
        }
    ]
    global_operator_extra_links: list[Any] = [PageLink()]  # noqa: RUF012  # the same
