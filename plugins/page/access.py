"""Who may look at the page, and who may press its buttons.

The browser sends Airflow's cookie by itself, also when another site makes it send a request. So a button needs a token
beside the cookie. The page gets the token with its data, which other sites cannot read, and sends it as a header, which
other sites cannot set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag, requires_access_view
from airflow.api_fastapi.logging.decorators import action_logging
from airflow.configuration import conf
from fastapi import Depends, Header, HTTPException, Request
from itsdangerous import BadSignature, URLSafeTimedSerializer

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

TOKEN_SECONDS = 3600  # the page gets a new one every few seconds
MAY_NOT = "Your role in Airflow may look, but not run this Dag. An admin can run it, or give you a role that may."
_requires_run = requires_access_dag("POST", DagAccessEntity.RUN)


def make_token(user: BaseUser) -> str:
    """Return a token for a user, signed by the web server."""
    return _signer().dumps(user.get_id())


async def check_token(user: GetUserDep, x_freshet_token: Annotated[str, Header()] = "") -> None:
    """Refuse a request without the user's own token."""
    try:
        owner = _signer().loads(x_freshet_token, max_age=TOKEN_SECONDS)
    except BadSignature:
        owner = None
    if owner is None or owner != user.get_id():
        raise HTTPException(403, "the header X-Freshet-Token must be the token of this page. Load the page again.")


def check_role(request: Request, user: GetUserDep) -> None:
    """Refuse a user whose role may not run the Dag, and say who can."""
    try:
        _requires_run(request, user)
    except HTTPException as refused:
        raise HTTPException(refused.status_code, MAY_NOT) from None


def _signer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(conf.get_mandatory_value("api", "secret_key"), salt="freshet's page")


MAY_LOOK = Depends(requires_access_view(AccessView.PLUGINS))
MAY_PRESS = [
    Depends(check_token),
    Depends(check_role),
    Depends(action_logging("trigger_dag_run")),  # Airflow's audit log
]
