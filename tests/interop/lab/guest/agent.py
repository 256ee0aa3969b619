#!/usr/bin/env python3
"""Run commands in a guest.

  agent.py serve                        in the guest: listen on TCP port 7777
  agent.py call PORT SECONDS COMMAND    on the host: run COMMAND in the guest behind PORT

A request is a bash script and a NUL byte. The reply is the script's output as it comes, then
"\\n__RC__ STATUS\\n". If the caller goes away first, the script and its children are killed.
Commands left in the background keep running.
"""
import os
import re
import select
import signal
import socket
import socketserver
import subprocess
import sys
import time


class Agent(socketserver.BaseRequestHandler):
    def handle(self):
        script = b''
        while not script.endswith(b'\0'):
            data = self.request.recv(65536)
            if not data:
                return
            script += data
        child = subprocess.Popen(['/bin/bash', '-c', script[:-1]], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 start_new_session=True)
        try:
            self.relay(child)
            status = child.wait()
            self.request.sendall(b'\n__RC__ %d\n' % (status if status >= 0 else 128 - status))
        except OSError:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def relay(self, child):
        """Send the output until it ends, or the script has and what it left behind is silent."""
        while True:
            ready, _, _ = select.select([child.stdout, self.request], [], [], 0.5)
            if child.stdout in ready:
                data = os.read(child.stdout.fileno(), 65536)
                if not data:
                    return
                self.request.sendall(data)
            elif child.poll() is not None:
                return
            if self.request in ready and not self.request.recv(65536):
                raise ConnectionResetError


def serve():
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    socketserver.ThreadingTCPServer(('', 7777), Agent).serve_forever()


def call(port, seconds, command):
    """Copy the command's output to stdout; return its status (124: out of time, 125: no guest)."""
    deadline = time.monotonic() + seconds
    held, failure = b'', (125, 'the guest went away')
    try:
        with socket.create_connection(('127.0.0.1', port), 5) as connection:
            connection.sendall(command.encode() + b'\0')
            data = True
            while data:
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                data = connection.recv(65536)
                held += data
                sys.stdout.buffer.write(held[:-32])  # the last bytes may be the status
                sys.stdout.buffer.flush()
                held = held[-32:]
    except TimeoutError:
        failure = 124, f'no end after {seconds:g} s'
    except OSError as error:
        failure = 125, f'no answer from the guest: {error}'
    ended = re.search(rb'\n__RC__ (\d+)\n$', held)
    sys.stdout.buffer.write(held[:ended.start()] if ended else held)
    if ended:
        return int(ended[1])
    print(f'lab: {failure[1]}', file=sys.stderr)
    return failure[0]


if __name__ == '__main__':
    if sys.argv[1] == 'serve':
        serve()
    sys.exit(call(int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]))
