"""Clients of a model server on its host: they ask without a pause until a file is there, and count what they got.

Arguments: port, path, number of clients, the file that ends them. Half of the clients keep their connection, half open
one for each request. Printed is JSON: how often each answer came, by status and prediction, or the error's name. The
file is given to the host's Python on its standard input.
"""

import json
import sys
import threading
import time
from collections import Counter
from http.client import HTTPConnection, HTTPException
from pathlib import Path

PORT, PATH, CLIENTS, END = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
BODY = json.dumps({"instances": [2.0]})
answers = [Counter() for _ in range(CLIENTS)]


def one(connection):
    connection.request("POST", PATH, BODY, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    text = reply.read()
    return f"{reply.status} {''.join(text.decode().split())}"


def client(number):
    kept = None
    while not END.exists():
        connection = kept or HTTPConnection("127.0.0.1", PORT, timeout=60)
        try:
            answers[number][one(connection)] += 1
        except (OSError, HTTPException) as error:
            answers[number]["lost: " + type(error).__name__] += 1
            kept = None
            time.sleep(0.05)  # a server that is away would be asked in a busy loop
            continue
        if number % 2:
            kept = connection
        else:
            connection.close()


threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps([sum(answers[number::2], Counter()) for number in (0, 1)]))
