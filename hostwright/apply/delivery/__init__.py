"""Delivers the files of a plan to hosts: by HTTP from this machine or another host, over SSH, or from the vendor.

The calls that deliver one file:

    Delivery.start, .wait     the files of one host's plan, in the order of need
      Batch                   lists the files on the host (look), and chooses the next file
        Fetcher.deliver       one file, from one source after the other until it is complete
          FileSources.ask     layer one (sources/sources): chooses the source, for all hosts of the run
          Handout.grant       layer two (sources/handout, servers): the token, and the server that accepts the token
          pull, push          the transfer: the host fetches by HTTP, or reads from the SSH connection
"""
