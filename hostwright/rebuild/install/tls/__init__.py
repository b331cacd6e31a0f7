"""HTTPS for seeds (files for installers): this machine's certificate authority, and the delivery of its certificate by
boot loaders.
"""
