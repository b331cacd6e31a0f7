"""SBOMs (software bills of materials): the software on a host, and its origin."""
