"""Brings the files of a plan to hosts: by HTTP from this machine or from another host of the run, over SSH, or from the
vendor.

The calls that deliver one file:

    Delivery.start, .wait     the files of one host's plan, in the order of need
      Batch                   asks the host what it has (look), and chooses the next file
        Fetcher.deliver       one file, from one source after the other until it is there
          FileSources.ask     layer one (sources/sources): from where, decided for all hosts of the run
          Handout.grant       layer two (sources/handout, servers): the token, and the server that gives the file for it
          pull, push          the transfer: the host fetches by HTTP, or reads from the SSH connection
"""
