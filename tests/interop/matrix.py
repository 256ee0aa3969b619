"""Runs cells of the matrix between two ends and judges them."""

import time

import ends
import judge
import roce
import sequences

SERVER_ENDS = 30  # seconds that a server has to end after its client
# In the foreground: else timeout's child would not be in the process group that is killed.
LIMIT = "timeout --foreground"
SURVIVOR_ENDS = 90  # seconds that a program has to notice that its peer was killed
IN_FULL_SWING = 20000  # bytes that were captured


class Skip(Exception):
    """Why a cell cannot run here."""


def options_of(end, faults):
    """What `urxe run` is told."""
    return ("--fault", faults, "--seed", "7") if faults and end.kind == "urxe" else ()


class Run:
    """One cell between a client and a server."""

    def __init__(self, cell, client, server, capture):
        self.cell, self.client, self.server = cell, client, server
        self.capture = capture
        self.reasons = []
        self.outputs = {}

    def command(self, template, end):
        return template.format(server=self.server.address, client=self.client.address,
                               share=end.share)

    def check_possible(self):
        kinds = {self.client.kind, self.server.kind}
        if self.cell.faults and "urxe" not in kinds:
            raise Skip("--fault is urxe's")
        if self.cell.impaired and kinds == {"urxe"}:
            raise Skip("netem needs a guest")
        if self.cell.kill and self.survivor().kind != "urxe" and "urxe" in kinds:
            raise Skip("a killed urxe sends no DREQ, and rxe's retry_cnt 7 never ends")

    def survivor(self):
        return self.server if self.cell.kill == "client" else self.client

    def guests(self):
        return [end for end in (self.client, self.server) if end.kind != "urxe"]

    def run(self):
        """The result, as the table has it."""
        result = {"cell": self.cell.name, "gid": self.cell.gid, "mtu": self.cell.mtu,
                  "ends": f"{self.client.kind} → {self.server.kind}"}
        began = time.monotonic()
        try:
            self.check_possible()
        except Skip as skip:
            return result | {"outcome": "cannot run", "reasons": [str(skip)]}
        self.capture.mark()
        try:
            self.impair(self.cell.impaired)
            self.run_programs()
        finally:
            self.impair("off" if self.cell.impaired else "")
        data = self.capture.take()
        self.packets = roce.packets(data)
        verdict = judge.Judge(self.packets, self.strict_addresses())
        self.reasons += verdict.problems(self.cell.expected)
        result |= {"outcome": "FAILED" if self.reasons else "passed", "reasons": self.reasons}
        result |= verdict.summary() | {"seconds": round(time.monotonic() - began, 1)}
        self.data = data
        return result

    def strict_addresses(self):
        """Both addresses of the ends whose retransmissions are judged."""
        return [address for end in (self.client, self.server) if end.kind == "urxe"
                for address in end.addresses()]

    def impair(self, what):
        if what:
            for guest in self.guests():
                guest.netem(what)

    def run_programs(self):
        cell = self.cell
        command = self.command(cell.server, self.server)
        limited = f"{LIMIT} {cell.seconds + SERVER_ENDS} {command}"
        server = self.server.start(limited, options_of(self.server, cell.faults))
        try:
            if not self.is_ready(server):
                self.reasons.append("the server does not listen")
                return
            command = self.command(cell.client, self.client)
            client = self.client.start(f"{LIMIT} {cell.seconds} {command}",
                                       options_of(self.client, cell.faults or cell.client_faults))
            if cell.kill:
                self.kill_one(client, server)
            else:
                self.finish_client(client)
        finally:
            if cell.server_stays:
                server.kill()
            status = server.wait(SERVER_ENDS)
            self.outputs["server"] = server.text
        if not cell.server_stays and not cell.kill:
            self.note_status("server", status)

    def is_ready(self, server):
        cell = self.cell
        if cell.port:
            return self.server.wait_for_tcp(cell.port)
        if cell.listens:
            return self.server.wait_for_listener()
        return server.wait_for_text(cell.server_says, 30)

    def finish_client(self, client):
        status = client.wait(self.cell.seconds + SERVER_ENDS)
        self.outputs["client"] = client.text
        if self.cell.client_fails and status in (0, ends.TIMED_OUT, ends.LOST):
            self.reasons.append(f"the client ended with status {status}, it should fail")
        elif not self.cell.client_fails:
            self.note_status("client", status)
        if self.cell.output and self.cell.output not in client.text:
            self.reasons.append(f"the client did not say {self.cell.output!r}")

    def kill_one(self, client, server):
        """Kills the client or the server while they talk; the other has to notice."""
        victim, survivor = (client, server) if self.cell.kill == "client" else (server, client)
        if not self.capture.wait_for(IN_FULL_SWING, 30):
            self.reasons.append("they do not talk")
        victim.kill()
        victim.wait(10)
        if survivor.wait(SURVIVOR_ENDS) in (ends.TIMED_OUT, ends.LOST):
            self.reasons.append("the other side did not notice")
        self.outputs["client"] = client.text

    def note_status(self, who, status):
        if status:
            self.reasons.append(f"the {who} ended with status {status}")

    def sequences(self):
        """For wire.py: what both sides said, case by case."""
        address = bytes(map(int, self.client.address.split(".")))
        return sequences.sequences(self.packets, self.outputs["client"], address)
