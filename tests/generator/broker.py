"""A Kafka broker that a test can kill, freeze and restart."""

import os
import signal
import socket
import subprocess
import uuid
from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from services.ports import free_ports
from services.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]
START_SECONDS = 60


class Broker:
    """One KRaft node on 127.0.0.1 with its own data folder."""

    def __init__(self, folder: Path) -> None:
        jars = Path(os.environ.get("FRESHET_JARS", REPOSITORY / ".freshet" / "jars")) / "kafka"
        if not any(jars.glob("kafka_*.jar")):
            raise FileNotFoundError(
                f"no Kafka jars in {jars}; install the services first, or set FRESHET_JARS to the jars' folder"
            )
        port, controller = free_ports(2)
        self.bootstrap = f"127.0.0.1:{port}"
        self._java = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-cp", f"{jars}/*"]
        self._data = folder / "data"
        self._config = folder / "server.properties"
        self._log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._config.write_text(
            "process.roles=broker,controller\n"
            "node.id=1\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n"
            f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={self._data}\n"
            "offsets.topic.replication.factor=1\n"
            "transaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\n"
            "auto.create.topics.enable=false\n"
        )
        node = ["kafka.tools.StorageTool", "format", "-t", "generator-tests-000001", "--standalone"]
        subprocess.run([*self._java, *node, "-c", str(self._config)], check=True, capture_output=True)

    def start(self) -> None:
        """Start the broker and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._config)], stdout=log, stderr=subprocess.STDOUT
            )
        wait_until(self._obstacle, what="the broker", seconds=START_SECONDS)
        KafkaAdminClient(bootstrap_servers=self.bootstrap, bootstrap_timeout_ms=START_SECONDS * 1000).close()

    def _obstacle(self) -> str | None:
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"the broker did not start:\n{self._log.read_text()[-2000:]}")
        host, port = self.bootstrap.split(":")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError as error:
            return str(error)
        return None

    def kill(self) -> None:
        """Kill the broker, as in a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Suspend the broker: its connections stay open, but it does not answer. Return when all its threads stand."""
        self._signal(signal.SIGSTOP)
        if self._process is not None:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def thaw(self) -> None:
        """Let a frozen broker continue."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def lose_tail(self, topic: str, partition: int, share: float) -> None:
        """Cut the end off a dead broker's log, as a power failure does before the disk has it."""
        log = self._data / f"{topic}-{partition}" / "00000000000000000000.log"
        os.truncate(log, int(log.stat().st_size * (1 - share)))

    def new_topic(self, partitions: int = 2) -> str:
        """Create an empty topic with a new name."""
        topic = f"sales-{uuid.uuid4().hex[:8]}"
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            admin.create_topics({topic: {"num_partitions": partitions}}, wait_for_metadata=True)
        finally:
            admin.close()
        return topic

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and wait until no client sees it."""
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            admin.delete_topics([topic])
            visible = "clients still see it"
            wait_until(
                lambda: visible if topic in admin.list_topics() else None, what=f"{topic} to go", seconds=START_SECONDS
            )
        finally:
            admin.close()

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic."""
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            return len(admin.describe_topics([topic])[0]["partitions"])
        finally:
            admin.close()

    def read(self, topic: str) -> list[tuple[int, bytes, bytes]]:
        """Read the whole topic: partition, key and value of each message."""
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False)
        try:
            partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic) or ()]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            ends = consumer.end_offsets(partitions)
            messages = []
            while any(consumer.position(p) < ends[p] for p in partitions):
                for records in consumer.poll(timeout_ms=1000, max_records=20_000).values():
                    messages += [(record.partition, record.key, record.value) for record in records]
            return messages
        finally:
            consumer.close()
