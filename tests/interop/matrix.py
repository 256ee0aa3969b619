"""Runs cells of the matrix between two ends and judges them."""

import time

import judge
import roce
import sequences

SERVER_ENDS = 30  # seconds that a server has to end after its client


class Skip(Exception):
    """Why a cell cannot run here."""


def options_of(cell, end):
    """What `urxe run` is told."""
    return ("--fault", cell.faults, "--seed", "7") if cell.faults and end.kind == "urxe" else ()


def command_of(template, end, server):
    return template.format(server=server.address, share=end.share)


class Run:
    """One cell between a client and a server."""

    def __init__(self, cell, client, server, capture):
        self.cell, self.client, self.server = cell, client, server
        self.capture = capture
        self.reasons = []
        self.outputs = {}

    def check_possible(self):
        kinds = {self.client.kind, self.server.kind}
        if self.cell.faults and "urxe" not in kinds:
            raise Skip("--fault is urxe's")
        if self.cell.impaired and kinds == {"urxe"}:
            raise Skip("netem needs a guest")

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
        command = command_of(cell.server, self.server, self.server)
        limited = f"timeout {cell.seconds + SERVER_ENDS} {command}"
        server = self.server.start(limited, options_of(cell, self.server))
        try:
            if cell.port and not self.server.wait_for_tcp(cell.port):
                self.reasons.append("the server does not listen")
                return
            command = command_of(cell.client, self.client, self.server)
            client = self.client.start(f"timeout {cell.seconds} {command}",
                                       options_of(cell, self.client))
            self.note_status("client", client.wait(cell.seconds + SERVER_ENDS))
            self.outputs["client"] = client.text
            if cell.output and cell.output not in client.text:
                self.reasons.append(f"the client did not say {cell.output!r}")
        finally:
            if cell.server_stays:
                server.kill()
            status = server.wait(SERVER_ENDS)
            self.outputs["server"] = server.text
        if not cell.server_stays:
            self.note_status("server", status)

    def note_status(self, who, status):
        if status:
            self.reasons.append(f"the {who} ended with status {status}")

    def sequences(self):
        """For wire.py: what both sides said, case by case."""
        address = bytes(map(int, self.client.address.split(".")))
        return sequences.sequences(self.packets, self.outputs["client"], address)
