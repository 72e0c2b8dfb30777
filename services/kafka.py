"""Run one Kafka broker (KRaft, with its own controller) on 127.0.0.1: `python -m services.kafka`."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from typing import TYPE_CHECKING

from foundation.settings import Settings, settings
from services.one_line import one_line

if TYPE_CHECKING:
    from pathlib import Path

PROPERTIES = """\
node.id=1
process.roles=broker,controller
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
message.max.bytes=16777216
replica.fetch.max.bytes=16777216
"""


def main() -> None:
    """Format the data folder at the first start, then replace this process with the broker."""
    config = settings()
    home = config.state / "kafka"
    home.mkdir(parents=True, exist_ok=True)
    properties = home / "server.properties"
    text = PROPERTIES.format(port=config.kafka_port, controller_port=config.kafka_controller_port, data=home / "data")
    properties.write_text(text)
    if not (home / "data" / "meta.properties").exists():
        shutil.rmtree(home / "data", ignore_errors=True)  # left by an interrupted format
        format_storage(config, properties)
    command = java(config, "-Xms256m", "-Xmx512m", "kafka.Kafka", str(properties))
    os.execvp(command[0], command)


def format_storage(config: Settings, properties: Path) -> None:
    """Format the data folder with a new cluster id."""
    arguments = ["format", "-t", str(uuid.uuid4()), "--standalone", "-c", str(properties)]
    subprocess.run(java(config, "kafka.tools.StorageTool", *arguments), check=True)


def java(config: Settings, *arguments: str) -> list[str]:
    """Return the command line that runs a main class in Kafka's jars."""
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", "-cp", f"{config.jars / 'kafka'}/*", logging, *arguments]


if __name__ == "__main__":
    with one_line():
        main()
